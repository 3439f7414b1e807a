// Connects to the server, and connects again after each failure. There is one socket at a time, which never keeps the process
// alive.
//
//   resting --(time is up)--> connecting --> connected (Protocol: greeting, open)
//      ^                                          |
//      +--------(any fault; backs off)------------+
//
// With TLS, `connecting` includes reading the files and the handshake. Reading these files, or the file in `token_file`, keeps
// the process alive, because Node.js cannot unref a file operation.
//
// Before: `protocol.js`, the content of the exchange. After: the server.

import { connect } from 'node:net';
import { performance } from 'node:perf_hooks';
import * as messages from '../messages.js';
import { isLoopback } from '../secret.js';
import { Damaged } from '../wire/reader.js';
import { Lost, isPassing } from './failure.js';
import { Outage } from './outage.js';
import { Refused } from './protocol.js';

const BACKOFF_FIRST_MS = 100;
const BACKOFF_LAST_MS = 5_000;
/** Pause before the next attempt when the program ends. */
const ENDING_MS = 100;
/** Interval of checks: heartbeat, silence, pending log lines. */
const CHECK_MS = 500;
/** A write to the socket gets no further frames when it reaches this size. */
const CHUNK_BYTES = 262_144;

export class Link {
  /**
   * @param {object} parts
   * @param {{ host: string, port: number }} parts.address
   * @param {import('./protocol.js').Protocol} parts.protocol
   * @param {import('./totals.js').Totals} parts.totals
   * @param {import('../log.js').Log} parts.log
   * @param {import('./tls.js').Tls | null} [parts.tls] null: the connection is not encrypted
   */
  constructor({ address, protocol, totals, log, tls = null }) {
    this.address = address;
    this.tls = tls;
    this.protocol = protocol;
    this.totals = totals;
    this.log = log;
    /** @type {import('node:net').Socket | null} */
    this.socket = null;
    this.isConnected = false;
    this.isReached = false;
    /**
     * False if another attempt would probably also fail: no program listens at the address, a certificate is not trusted, the
     * token is refused.
     */
    this.isHopeful = true;
    /** The time of the next attempt if the program ends, ms. */
    this.dueAtEnd = 0;
    this.isEnded = false;
    this.isClearTold = false;
    this.backoffMs = BACKOFF_FIRST_MS;
    /** The last write to the socket. @type {Uint8Array} */
    this.chunk = Buffer.alloc(0);
    /**
     * The bytes that a farewell has not written yet; null before a farewell. A farewell writes to the descriptor directly.
     * @type {Uint8Array | null}
     */
    this.rest = null;
    /** The connection that a farewell has made in another thread. @type {import('./relay.js').Relay | null} */
    this.relay = null;
    this.outage = new Outage(`${address.host}:${address.port}`, totals, log);
    this.checkedAt = 0;
    this.check = setInterval(() => this.#check(), CHECK_MS).unref();
    this.pump = this.pump.bind(this);
  }

  start() {
    try {
      this.protocol.token.readNow();
      this.#connect();
    } catch (error) {
      this.#failWith(error, /** @type {Error} */ (error).message);
    }
  }

  async #restart() {
    if (this.isEnded) {
      return;
    }
    try {
      await this.protocol.token.read();
      this.#connect();
    } catch (error) {
      this.#failWith(error, /** @type {Error} */ (error).message);
    }
  }

  #connect() {
    if (this.isEnded) {
      return;
    }
    this.isReached = false;
    let socket;
    try {
      socket = connect({ ...this.address, noDelay: true });
    } catch (error) {
      this.#failWith(error);
      return;
    }
    socket.unref();
    socket.on('connect', () => this.socket === socket && (this.isReached = true));
    const { tls } = this;
    if (tls === null) {
      this.#use(socket, 'connect');
    } else {
      this.#watch(socket);
      socket.on('connect', () => this.#encrypt(tls, socket));
    }
    this.protocol.lastHeard = performance.now();
    this.checkedAt = performance.now();
  }

  /**
   * @param {import('./tls.js').Tls} tls
   * @param {import('node:net').Socket} plain connected; it has no listener for data, because a listener would consume the bytes
   * of the handshake
   */
  async #encrypt(tls, plain) {
    const mine = () => this.socket === plain && !plain.destroyed;
    try {
      const context = await tls.context();
      if (mine()) {
        this.#use(tls.encrypt(plain, this.address.host, context), 'secureConnect');
      }
    } catch (error) {
      if (mine()) {
        this.#failWith(error);
      }
    }
  }

  /** @param {import('node:net').Socket} socket for records @param {string} ready the event after which the socket accepts
   * records */
  #use(socket, ready) {
    const mine = this.#watch(socket);
    socket.on(ready, () => mine() && this.#connected());
    socket.on('data', (bytes) => mine() && this.#take(bytes));
  }

  /** @param {import('node:net').Socket} socket the current socket from now on; earlier sockets may still emit events */
  #watch(socket) {
    this.socket = socket;
    const mine = () => this.socket === socket;
    socket.on('error', (error) => mine() && this.#failWith(error));
    socket.on('close', () => mine() && this.#failWith(new Lost(), messages.SERVER_CLOSED));
    return mine;
  }

  /** @param {any} error */
  #cause(error) {
    return this.tls === null ? error.message : this.tls.cause(error, this.address.host);
  }

  /** False if the token must not be sent, because others could read it on the network. */
  mayGreet() {
    const { token } = this.protocol;
    // Before the connection exists, the host in the settings decides. If it is a name, its address is not known yet.
    const remote = this.socket?.remoteAddress ?? this.address.host;
    if (token.bytes === null || this.tls !== null || isLoopback(remote)) {
      return true;
    }
    if (token.isInsecure && !this.isClearTold) {
      this.isClearTold = true;
      this.log.say(messages.tokenSentInClear(this.outage.server));
    }
    return token.isInsecure;
  }

  #connected() {
    if (!this.mayGreet()) {
      this.#failWith(null, messages.TOKEN_IN_CLEAR);
      return;
    }
    this.isConnected = true;
    this.protocol.connected(performance.now());
    this.pump();
  }

  /** @param {Buffer} bytes */
  #take(bytes) {
    const wasOpen = this.protocol.state === 'open';
    const dropped = this.outage.dropped();
    try {
      this.protocol.take(bytes, performance.now());
    } catch (error) {
      if (error instanceof Refused) {
        this.#fail(error.message, error.pauseMs, dropped, error.isOfToken);
        this.#expect(!error.isLasting, error.pauseMs);
      } else {
        this.#failWith(error, error instanceof Damaged ? messages.serverIsOther(error.message) : String(error));
      }
      return;
    }
    if (!wasOpen && this.protocol.state === 'open') {
      this.#opened();
    }
    this.pump();
  }

  #opened() {
    this.backoffMs = BACKOFF_FIRST_MS;
    this.outage.over(performance.now());
  }

  /** Writes pending data, as far as the socket accepts it. */
  pump() {
    const { socket } = this;
    if (socket === null || !this.isConnected || this.rest !== null) {
      return;
    }
    // One piece at a time, so that the unwritten part is known when the process ends (farewell.js).
    while (socket.writableLength === 0 && !socket.destroyed) {
      const chunk = this.protocol.next(performance.now(), CHUNK_BYTES);
      if (chunk === null) {
        return;
      }
      this.chunk = chunk;
      socket.write(chunk, this.pump);
    }
  }

  /** The part of the last write that the kernel has not accepted. */
  unwritten() {
    const { socket, chunk, rest } = this;
    if (rest !== null) {
      return rest;
    }
    const handle = /** @type {any} */ (socket)?._handle;
    const left = socket !== null && socket.writableLength > 0 ? (handle?.writeQueueSize ?? 0) : 0;
    return chunk.subarray(chunk.length - Math.min(left, chunk.length));
  }

  #check() {
    const now = performance.now();
    const { protocol } = this;
    if (now - this.checkedAt > 3 * CHECK_MS) {
      protocol.lastHeard = Math.max(protocol.lastHeard, now); // the program has blocked the loop, so no bytes were received
    }
    this.checkedAt = now;
    const silence = this.isConnected ? protocol.silence(now) : null;
    if (silence !== null) {
      this.#failWith(new Lost(), silence);
    } else if (this.socket !== null && !this.isConnected && now - protocol.lastHeard > 10 * CHECK_MS) {
      this.#failWith(this.isReached ? new Lost() : null, 'no answer to the attempt to connect');
    } else {
      this.outage.look(now);
      this.pump();
    }
  }

  /**
   * The connection, or the attempt to connect, has failed.
   * @param {unknown} error
   * @param {string} [why] the reason for the log
   */
  #failWith(error, why = this.#cause(error)) {
    this.#fail(why, 0);
    this.#expect(isPassing(error), ENDING_MS);
  }

  /** @param {boolean} isHopeful another attempt may help @param {number} pauseMs the pause before it if the program ends */
  #expect(isHopeful, pauseMs) {
    this.isHopeful = isHopeful;
    this.dueAtEnd = performance.now() + pauseMs;
  }

  /**
   * The connection of a farewell has failed.
   * @param {unknown} error
   */
  failAtEnd(error) {
    if (error instanceof Refused) {
      this.#expect(!error.isLasting, error.pauseMs);
    } else {
      this.#expect(isPassing(error), ENDING_MS);
    }
    this.close();
    this.relay = null;
    this.rest = null;
  }

  /**
   * @param {string} why
   * @param {number} pauseMs minimum pause before the next attempt
   * @param {number[]} [dropped] numbers of dropped records before the failure, if they may have risen since then
   * @param {boolean} [isOfToken] as for `Outage.failed`
   */
  #fail(why, pauseMs, dropped, isOfToken) {
    const wasOpen = this.protocol.state === 'open';
    this.close();
    // jitter, so that many agents do not reconnect at the same time
    const wait = Math.max(pauseMs, this.backoffMs * (0.5 + Math.random() / 2));
    this.backoffMs = Math.min(BACKOFF_LAST_MS, this.backoffMs * 2);
    setTimeout(() => this.#restart(), wait).unref();
    this.outage.failed(performance.now(), wasOpen, why, dropped, isOfToken);
  }

  close() {
    const { socket } = this;
    this.socket = null;
    this.isConnected = false;
    this.chunk = Buffer.alloc(0); // does not keep HELLO, which may have a token
    socket?.on('error', () => {});
    socket?.destroy();
    this.protocol.closed();
  }

  /** Logs the last lines, and closes the connection permanently. */
  end() {
    this.isEnded = true;
    this.outage.tellPast(performance.now());
    this.outage.drops.look(performance.now(), true);
    clearInterval(this.check);
    this.close();
  }
}
