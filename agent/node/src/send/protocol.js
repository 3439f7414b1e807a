// The client's side of the protocol (wire.md), without a socket, a timer or a wait. Its methods take and return bytes, and get
// the time as an argument. So both the event loop (`link.js`) and the end of a process (`farewell.js`) can use it.
//
// Before: `outbox.js`. After: a socket, then `crates/server/src/listen/connection.rs`.

import * as messages from '../messages.js';
import { Token } from '../secret.js';
import { FRAME } from '../wire/constants.js';
import { FrameReader, byeFrame, helloFrame, pingFrame } from '../wire/frame.js';
import { readProbes } from '../wire/probes.js';
import { Damaged } from '../wire/reader.js';

const HEARTBEAT_MS_MIN = 100;
const SAID_MS_MAX = 600_000;
/** Longest wait for the answer to HELLO. */
const GREETING_MS = 5_000;
/**
 * Minimum pause after an ERROR, unless the token is the reason. It is needed because a WELCOME before the ERROR resets the
 * back-off.
 */
const PAUSE_MS = 1_000;
/** Codes of an ERROR: the server requires TLS; the token is missing or invalid; the token does not permit writing. */
const NEEDS_TLS = 11;
const UNAUTHORIZED = 12;
const FORBIDDEN = 13;
/** First and longest pause after a refused token, which may become valid later. Up to half of it is subtracted at random. */
const TOKEN_MS_MIN = 1_000;
const TOKEN_MS_MAX = 60_000;
/** Pause after a refusal, if the server would refuse an immediate retry for the same reason. */
const REFUSED_MS = 60_000;

/** The server refused the connection and gave the reason. */
export class Refused extends Error {
  /**
   * @param {string} message
   * @param {number} pauseMs minimum pause before the next attempt
   * @param {boolean} [isOfToken] the token is the reason
   * @param {boolean} [isLasting] an immediate next attempt would not help
   */
  constructor(message, pauseMs, isOfToken = false, isLasting = true) {
    super(message);
    this.pauseMs = pauseMs;
    this.isOfToken = isOfToken;
    this.isLasting = isLasting;
  }
}

export class Protocol {
  /**
   * @param {object} parts
   * @param {Uint8Array} parts.session
   * @param {Uint8Array | null} [parts.secret]
   * @param {[string, string][]} parts.pairs attributes of the process
   * @param {import('./outbox.js').Outbox} parts.outbox
   * @param {import('../wire/dictionary.js').Dictionary} parts.dictionary
   * @param {import('./totals.js').Totals} parts.totals
   * @param {import('../log.js').Log} parts.log
   * @param {Token} [parts.token] read by `link.js` before each connection
   */
  constructor({ session, secret = null, pairs, outbox, dictionary, totals, log, token = Token.none() }) {
    this.hello = () => helloFrame(session, pairs, { secret, token: token.bytes });
    this.token = token;
    this.tokenMs = TOKEN_MS_MIN;
    this.outbox = outbox;
    this.dictionary = dictionary;
    this.totals = totals;
    this.log = log;
    /** @type {'closed' | 'greeting' | 'open'} */
    this.state = 'closed';
    this.frames = new FrameReader();
    /** @type {Buffer[]} */
    this.urgent = [];
    this.dictionarySent = 0;
    this.heartbeatMs = 5_000;
    this.lastHeard = 0;
    this.lastPing = 0;
    this.droppedAtPing = 0;
    this.holdUntil = 0;
    /** Applies the server's rules. Without a switchboard the rules are ignored. @type
     * {import('../rules/switchboard.js').Switchboard | null} */
    this.switchboard = null;
  }

  /** Begins the exchange on a new connection with HELLO. @param {number} now ms */
  connected(now) {
    this.state = 'greeting';
    this.frames = new FrameReader();
    this.urgent = [this.hello()];
    this.dictionarySent = 0;
    this.lastHeard = now;
    this.holdUntil = 0;
  }

  closed() {
    this.state = 'closed';
    this.urgent = [];
    this.switchboard?.closed();
    this.outbox.rewind();
  }

  // ---- from the server ----

  /**
   * @param {Buffer} bytes
   * @param {number} now ms
   * @throws {Damaged | Refused}
   */
  take(bytes, now) {
    this.frames.push(bytes);
    for (let frame = this.frames.next(); frame !== null; frame = this.frames.next()) {
      this.#frame(frame.type, frame.body, now);
    }
  }

  /** @param {number} type @param {import('../wire/reader.js').Reader} body @param {number} now */
  #frame(type, body, now) {
    this.lastHeard = now;
    if (this.state === 'greeting' && type !== FRAME.WELCOME && type !== FRAME.ERROR) {
      throw new Damaged(messages.frameEarly(type));
    }
    switch (type) {
      case FRAME.WELCOME:
        this.#welcome(body, now);
        break;
      case FRAME.ACK:
        this.outbox.acknowledge(body.varint());
        break;
      case FRAME.WAIT:
        this.holdUntil = now + Math.min(Number(body.varint()), SAID_MS_MAX);
        this.log.sayOnce('wait', messages.SERVER_IS_FULL);
        break;
      case FRAME.ERROR:
        throw this.#refusal(Number(body.varint()), body.string());
      case FRAME.REJECT:
        this.totals.rejected++;
        this.log.sayOnce('reject', messages.recordRefused(body.varint(), body.varint(), body.string()));
        break;
      case FRAME.PROBES:
        this.switchboard?.take(readProbes(body));
        break;
      default:
      // PONG needs no action; types of later versions are ignored.
    }
  }

  /** @param {import('../wire/reader.js').Reader} body @param {number} now */
  #welcome(body, now) {
    if (this.state !== 'greeting') {
      return;
    }
    body.u8();
    this.outbox.acknowledge(body.varint());
    body.varint(); // frame_body_bytes_max is ignored: frames of this agent are far below any limit of a server
    this.heartbeatMs = Math.max(HEARTBEAT_MS_MIN, Math.min(Number(body.varint()), SAID_MS_MAX));
    this.state = 'open';
    this.tokenMs = TOKEN_MS_MIN;
    this.lastPing = now - this.heartbeatMs; // the first PING goes out at once: it reports the dropped records
    this.totals.connects++;
  }

  /**
   * The reaction to an ERROR (wire.md, table of codes).
   * @param {number} code
   * @param {string} message
   */
  #refusal(code, message) {
    if (code === UNAUTHORIZED || code === FORBIDDEN) {
      return this.#tokenRefusal(code, message);
    }
    const text = code === NEEDS_TLS ? messages.tlsRequired(code) : messages.serverRefuses(message, code);
    if ([3, 4, 5].includes(code)) {
      this.outbox.discard(this.totals); // the same frames would fail again in the same way
    }
    const isLasting = ![1, 7, 8, 9].includes(code);
    return new Refused(text, code === 2 || code === 6 || code > 9 ? REFUSED_MS : PAUSE_MS, false, isLasting);
  }

  /** @param {number} code @param {string} message */
  #tokenRefusal(code, message) {
    const { bytes, setting } = this.token;
    const told = code === UNAUTHORIZED ? messages.tokenRefused : messages.tokenForbids;
    const text = bytes === null ? messages.tokenNeeded(code) : told(message, code, setting);
    const pauseMs = this.tokenMs * (0.5 + Math.random() / 2);
    this.tokenMs = Math.min(TOKEN_MS_MAX, 2 * this.tokenMs);
    return new Refused(text, pauseMs, true);
  }

  // ---- to the server ----

  /**
   * The next bytes to write, as whole frames.
   * @param {number} now ms
   * @param {number} bytesMax when the bytes reach this limit, no further DATA frame is added. Definitions that a DATA frame needs
   * precede it, even if they exceed the limit
   * @returns {Buffer | null} null if there is nothing to send now
   */
  next(now, bytesMax) {
    const chunks = this.urgent;
    this.urgent = [];
    if (this.state === 'open') {
      if (this.#pingIsDue(now)) {
        chunks.push(this.#ping(now));
      }
      let bytes = 0;
      while (bytes < bytesMax && now >= this.holdUntil) {
        const sent = this.outbox.peek();
        if (sent === null) {
          break;
        }
        while (this.dictionarySent < sent.dictionarySize) {
          const { frame, end } = this.dictionary.frame(this.dictionarySent, sent.dictionarySize);
          this.dictionarySent = end;
          bytes += chunks.push(frame) && frame.length;
        }
        bytes += chunks.push(sent.frame) && sent.frame.length;
        this.outbox.sent();
      }
    }
    if (chunks.length === 0) {
      return null;
    }
    const whole = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
    this.totals.bytesSent += whole.length;
    return whole;
  }

  /** @param {Buffer} frame an answer to a request of the server */
  say(frame) {
    this.urgent.push(frame);
  }

  bye() {
    this.urgent.push(byeFrame());
  }

  /** @param {number} now */
  #pingIsDue(now) {
    const news = this.totals.callsDropped !== this.droppedAtPing && now - this.lastPing > this.heartbeatMs / 5;
    return news || now - this.lastPing >= this.heartbeatMs;
  }

  /** @param {number} now */
  #ping(now) {
    const { callsDropped, samplesDropped, entriesDropped } = this.totals;
    this.lastPing = now;
    this.droppedAtPing = callsDropped;
    return pingFrame(callsDropped, samplesDropped, entriesDropped, this.outbox.bytes);
  }

  /** Adds a PING with the counts to the next bytes if calls were dropped since the last PING, even if no PING is due. */
  pingSoon() {
    if (this.totals.callsDropped !== this.droppedAtPing) {
      this.lastPing = -Infinity;
    }
  }

  /**
   * Checks the time limits on silence of the server.
   * @param {number} now ms
   * @returns {string | null} a text for the log if the server was silent for too long
   */
  silence(now) {
    const limit = this.state === 'open' ? 3 * this.heartbeatMs : GREETING_MS;
    // The server may be silent until holdUntil, even if a frame arrives before.
    const silence = now - Math.max(this.lastHeard, this.holdUntil);
    return this.state !== 'closed' && silence > limit ? messages.serverSilent(`${limit} ms`) : null;
  }
}
