// What is said on a connection, and when? The client's side of wire.md, without a socket, a timer or a wait: bytes go in,
// bytes come out, and a time is handed in. So the event loop (`link.js`) and the last moments of a process (`farewell.js`) say
// the same.
//
// Before: `outbox.js`. After: a socket, then `crates/server/src/listen/connection.rs`.

import { FRAME } from '../wire/constants.js';
import { FrameReader, byeFrame, helloFrame, pingFrame } from '../wire/frame.js';
import { readProbes } from '../wire/probes.js';
import { Damaged } from '../wire/reader.js';

const HEARTBEAT_MS_MIN = 100;
const SAID_MS_MAX = 600_000;
/** How long an answer to HELLO may take. */
const GREETING_MS = 5_000;
/** At least so long after any ERROR: a WELCOME before it has reset the back-off. */
const PAUSE_MS = 1_000;
/** After an answer that trying again at once cannot change. */
const REFUSED_MS = 60_000;

/** The server has said why it does not want us. */
export class Refused extends Error {
  /** @param {string} message @param {number} pauseMs at least, before the next try */
  constructor(message, pauseMs) {
    super(message);
    this.pauseMs = pauseMs;
  }
}

export class Protocol {
  /**
   * @param {object} parts
   * @param {Uint8Array} parts.session
   * @param {Uint8Array | null} [parts.secret]
   * @param {[string, string][]} parts.pairs what describes the process
   * @param {import('./outbox.js').Outbox} parts.outbox
   * @param {import('../wire/dictionary.js').Dictionary} parts.dictionary
   * @param {import('./totals.js').Totals} parts.totals
   * @param {import('../log.js').Log} parts.log
   */
  constructor({ session, secret = null, pairs, outbox, dictionary, totals, log }) {
    this.hello = helloFrame(session, pairs, { secret });
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
    /** Who follows the server's rules; nobody does without one. @type {import('../rules/switchboard.js').Switchboard | null} */
    this.switchboard = null;
  }

  /** @param {number} now ms: there is a connection */
  connected(now) {
    this.state = 'greeting';
    this.frames = new FrameReader();
    this.urgent = [this.hello];
    this.dictionarySent = 0;
    this.lastHeard = now;
    this.holdUntil = 0;
  }

  /** The connection is gone. */
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
      throw new Damaged(`frame type ${type} came before WELCOME`);
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
        this.lastHeard = this.holdUntil; // it has announced its silence
        this.log.sayOnce('wait', 'the server is full and asked to wait');
        break;
      case FRAME.ERROR:
        throw this.#refusal(Number(body.varint()), body.string());
      case FRAME.REJECT:
        this.totals.rejected++;
        this.log.sayOnce(
          'reject',
          `the server refused a record (frame ${body.varint()}, record ${body.varint()}): ${body.string()}`,
        );
        break;
      case FRAME.PROBES:
        this.switchboard?.take(readProbes(body));
        break;
      default:
      // PONG has done its work by arriving; a type of a later version is none of our business.
    }
  }

  /** @param {import('../wire/reader.js').Reader} body @param {number} now */
  #welcome(body, now) {
    if (this.state !== 'greeting') {
      return;
    }
    body.u8();
    this.outbox.acknowledge(body.varint());
    body.varint(); // our frames are far below any limit a server may name
    this.heartbeatMs = Math.max(HEARTBEAT_MS_MIN, Math.min(Number(body.varint()), SAID_MS_MAX));
    this.state = 'open';
    this.lastPing = now - this.heartbeatMs; // the first one goes out at once: it tells what was dropped meanwhile
    this.totals.connects++;
  }

  /**
   * What an ERROR means for us (wire.md, table of codes).
   * @param {number} code
   * @param {string} message
   */
  #refusal(code, message) {
    const text = `the server refuses: ${message} (error ${code})`;
    if ([3, 4, 5].includes(code)) {
      this.outbox.discard(this.totals); // the same frames would fail in the same way again
    }
    return new Refused(text, code === 2 || code === 6 || code > 9 ? REFUSED_MS : PAUSE_MS);
  }

  // ---- to the server ----

  /**
   * The next bytes to write, frames as they are.
   * @param {number} now ms
   * @param {number} bytesMax no further frame is added past this
   * @returns {Buffer | null} null if there is nothing to say now
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

  /** @param {Buffer} frame what the server has asked for */
  say(frame) {
    this.urgent.push(frame);
  }

  /** Nothing more will come. */
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

  /** Makes the next bytes tell the server the counts, whatever the time. */
  pingSoon() {
    if (this.totals.callsDropped !== this.droppedAtPing) {
      this.lastPing = -Infinity;
    }
  }

  /**
   * Too long without a word.
   * @param {number} now ms
   * @returns {string | null} the reason
   */
  silence(now) {
    const limit = this.state === 'open' ? 3 * this.heartbeatMs : GREETING_MS;
    return this.state !== 'closed' && now - this.lastHeard > limit ? `the server has not answered for ${limit} ms` : null;
  }
}
