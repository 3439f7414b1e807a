// Sends the remaining data at the end of the process. At `exit` Node.js delivers no more events, so this code does not use the
// event loop: it writes and reads the socket's descriptor directly, until a deadline. Without a connection it returns at once.
//
// Step before: `endings.js`, `signals.js` and `threads.js` call it through `../agent.js`. Step after: the process ends.

import { readSync, writeSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

const CHUNK_BYTES = 262_144;
const EMPTY = Buffer.alloc(0);

/**
 * @param {import('./link.js').Link} link
 * @param {import('./outbox.js').Outbox} outbox
 * @param {number} deadline ms of `performance.now`
 * @param {boolean} isLast whether to send BYE
 * @returns {boolean} whether the server has acknowledged everything
 */
export function farewell(link, outbox, deadline, isLast) {
  const fd = /** @type {any} */ (link.socket)?._handle?.fd;
  if (typeof fd !== 'number' || fd < 0) {
    return outbox.isAcknowledged(); // no connection, or a platform that hides the descriptor
  }
  try {
    talk(fd, link, outbox, deadline, isLast);
  } catch (error) {
    link.log.detail(`the farewell ended early: ${error}`);
  }
  return outbox.isAcknowledged();
}

/**
 * @param {number} fd
 * @param {import('./link.js').Link} link
 * @param {import('./outbox.js').Outbox} outbox
 * @param {number} deadline
 * @param {boolean} isLast
 */
function talk(fd, link, outbox, deadline, isLast) {
  const { protocol } = link;
  const input = Buffer.alloc(8_192);
  /** @type {Uint8Array} */
  let out = link.unwritten();
  link.rest = out; // from now on the link itself sends nothing
  if (!link.isConnected && protocol.state === 'closed') {
    protocol.connected(performance.now()); // still connecting: writes are repeated until the socket is connected
  }
  protocol.pingSoon();
  for (let now = performance.now(); now < deadline; now = performance.now()) {
    if (out.length === 0) {
      out = protocol.next(now, CHUNK_BYTES) ?? EMPTY;
    }
    const written = out.length > 0 ? attempt(() => writeSync(fd, out)) : 0;
    out = out.subarray(written);
    link.rest = out;
    const read = attempt(() => readSync(fd, input));
    if (read > 0) {
      protocol.take(Buffer.from(input.subarray(0, read)), performance.now());
    }
    if (protocol.state === 'open' && outbox.isAcknowledged() && out.length === 0) {
      if (isLast) {
        protocol.bye();
        writeSync(fd, protocol.next(now, 0) ?? EMPTY);
      }
      return;
    }
    if (written === 0 && read === 0) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

/**
 * @param {() => number} operation
 * @returns {number} 0 if it would block
 */
function attempt(operation) {
  try {
    const count = operation();
    if (count === 0) {
      throw new Error('the server closed the connection');
    }
    return count;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EAGAIN') {
      return 0;
    }
    throw error;
  }
}
