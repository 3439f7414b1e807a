// A server of the protocol that discards all frames and acknowledges DATA. It shows the cost of sending without the cost of a
// store on the same machine. Prints its port. `overhead.js` starts it.

import { createServer } from 'node:net';
import { Bytes } from '../src/wire/bytes.js';
import { FRAME } from '../src/wire/constants.js';
import { beginFrame, finishFrame } from '../src/wire/frame.js';

const HEADER = 12;
const bytes = new Bytes(64);
const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  let rest = Buffer.alloc(0);
  socket.on('data', (data) => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data]);
    let seq = -1;
    while (rest.length >= HEADER && rest.length >= HEADER + rest.readUInt32LE(0)) {
      const body = rest.subarray(HEADER, HEADER + rest.readUInt32LE(0));
      if (rest[4] === FRAME.HELLO) {
        socket.write(finishFrame(beginFrame(bytes).u8(1).varint(0).varint(4_194_304).varint(5_000), FRAME.WELCOME).copy());
      } else if (rest[4] === FRAME.DATA) {
        seq = 0;
        for (let at = 0, factor = 1; ; at++, factor *= 128) {
          seq += (body[at] & 0x7f) * factor;
          if (body[at] < 0x80) break;
        }
      }
      rest = rest.subarray(HEADER + body.length);
    }
    if (seq >= 0) socket.write(finishFrame(beginFrame(bytes).varint(seq), FRAME.ACK).copy());
  });
});
server.listen(0, '127.0.0.1', () => console.log(/** @type {any} */ (server.address()).port));
