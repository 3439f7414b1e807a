// Sends the remaining data at the end of the process. At `exit` Node.js delivers no more events, so this code does not use the
// event loop: it writes and reads the socket's descriptor directly, until a deadline. With TLS, another thread encrypts the
// data and sends it on its own connection (`relay.js`). If a connection fails, with or without TLS, such a thread makes the next
// connection, until the deadline. If another attempt would also fail (for example, because no program listens at the address),
// this code returns at once.
//
// Before: `endings.js`, `signals.js` and `threads.js` call it through `../agent.js`. After: the process ends.

import { readSync, writeSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { Lost } from './failure.js';
import { Refused } from './protocol.js';
import { Relay } from './relay.js';

/**
 * A connection with non-blocking reads and writes. `read` throws when the connection has failed, or was closed before
 * `end`; `write` may throw then, too.
 * @typedef {object} Peer
 * @property {(bytes: Uint8Array) => number} write returns the number of bytes written
 * @property {() => Uint8Array} read returns an empty array if nothing has arrived
 * @property {() => void} end called after the last write
 * @property {boolean} isClosed true after `end` if the process may end without losing written bytes
 * @property {number} greetingMs longest wait for the answer to HELLO
 */

/** `greetingMs` of a socket of the link. */
const GREETING_MS = 5_000;

const CHUNK_BYTES = 262_144;
const EMPTY = Buffer.alloc(0);

/**
 * @param {import('./link.js').Link} link
 * @param {import('./outbox.js').Outbox} outbox
 * @param {number} deadline ms of `performance.now`
 * @param {boolean} isLast whether to send BYE
 * @returns {boolean} true if the server has acknowledged everything
 */
export function farewell(link, outbox, deadline, isLast) {
  while (mayConnect(link, deadline)) {
    try {
      const peer = connection(link);
      if (peer !== null) {
        talk(peer, link, outbox, deadline, isLast);
      }
      break;
    } catch (error) {
      if (error instanceof Refused && error.isOfToken) {
        link.log.say(error.message);
      }
      link.log.detail(`a connection for the remaining data failed at the end of the process: ${error}`);
      link.failAtEnd(error);
    }
  }
  return outbox.isAcknowledged();
}

/**
 * True if there is a connection or an attempt to connect, or if another attempt may help and is due before the
 * deadline. Waits until that attempt is due.
 * @param {import('./link.js').Link} link
 * @param {number} deadline
 */
function mayConnect(link, deadline) {
  if (link.socket !== null || link.relay !== null) {
    return true;
  }
  if (!link.isHopeful || link.dueAtEnd >= deadline) {
    return false;
  }
  while (performance.now() < link.dueAtEnd) {
    pause();
  }
  return true;
}

/**
 * The current connection, or a new one.
 * @param {import('./link.js').Link} link
 * @returns {Peer | null} null on a platform that hides the descriptor, or if the token must not be sent
 */
function connection(link) {
  if (link.relay === null && link.tls === null && link.socket !== null) {
    return descriptor(link);
  }
  if (link.relay === null && (link.tls !== null || link.mayGreet())) {
    link.close(); // the new connection sends unacknowledged frames again
    link.relay = new Relay(link.tls, link.address);
  }
  return link.relay;
}

/**
 * @param {import('./link.js').Link} link
 * @returns {Peer | null} null without a connection, or on a platform that hides the descriptor, or if the token must not be sent
 */
function descriptor(link) {
  if (!link.isConnected && !link.mayGreet()) {
    return null;
  }
  const fd = /** @type {any} */ (link.socket)?._handle?.fd;
  if (typeof fd !== 'number' || fd < 0) {
    return null;
  }
  const input = Buffer.alloc(8_192);
  return {
    write: (bytes) => attempt(() => writeSync(fd, bytes)),
    read: () =>
      Buffer.from(
        input.subarray(
          0,
          attempt(() => readSync(fd, input)),
        ),
      ),
    end: () => {},
    isClosed: true, // the kernel sends the rest
    greetingMs: GREETING_MS,
  };
}

/**
 * @param {Peer} peer
 * @param {import('./link.js').Link} link
 * @param {import('./outbox.js').Outbox} outbox
 * @param {number} deadline
 * @param {boolean} isLast
 */
function talk(peer, link, outbox, deadline, isLast) {
  const { protocol } = link;
  /** @type {Uint8Array} */
  let out = link.unwritten();
  link.rest = out; // from now on the link sends nothing by itself
  if (!link.isConnected && protocol.state === 'closed') {
    protocol.connected(performance.now()); // the socket may still be connecting: writes are repeated until it is connected
  }
  protocol.pingSoon();
  const greeted = performance.now() + peer.greetingMs;
  for (let now = performance.now(); now < deadline; now = performance.now()) {
    if (out.length === 0) {
      out = protocol.next(now, CHUNK_BYTES) ?? EMPTY;
    }
    const written = out.length > 0 ? peer.write(out) : 0;
    out = out.subarray(written);
    link.rest = out;
    const read = peer.read();
    if (read.length > 0) {
      protocol.take(Buffer.from(read), performance.now());
    }
    if (protocol.state === 'open' && outbox.isAcknowledged() && out.length === 0) {
      if (isLast) {
        protocol.bye();
        peer.write(protocol.next(now, 0) ?? EMPTY);
        peer.end();
        untilClosed(peer, deadline);
      }
      return;
    }
    if (protocol.state === 'greeting' && now > greeted) {
      throw new Lost(`no answer within ${peer.greetingMs} ms`);
    }
    if (written === 0 && read.length === 0) {
      pause();
    }
  }
}

/** @param {Peer} peer @param {number} deadline */
function untilClosed(peer, deadline) {
  while (!peer.isClosed && performance.now() < deadline) {
    peer.read();
    pause();
  }
}

function pause() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
}

/**
 * @param {() => number} operation
 * @returns {number} 0 if it would block
 */
function attempt(operation) {
  try {
    const count = operation();
    if (count === 0) {
      throw new Lost('the server closed the connection');
    }
    return count;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EAGAIN') {
      return 0;
    }
    throw error;
  }
}
