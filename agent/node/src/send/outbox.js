// Packs records into numbered DATA frames. Keeps the frames, across reconnects, until the server has them on disk. The memory of
// the frames is bounded. If `isFull`, callers add no record and count it as dropped.
//
// Before: `../record/recorder.js`, `../sample/samples.js`. After: `protocol.js`.

import { Bytes } from '../wire/bytes.js';
import { FRAME } from '../wire/constants.js';
import { beginFrame, finishFrame } from '../wire/frame.js';

/** A frame is closed when it reaches this size; a single record may be larger. */
const FRAME_BYTES = 65_536;
/** Memory of a frame in the queue in addition to its content, in bytes. */
const FRAME_OVERHEAD = 128;

/**
 * A frame to send, possibly again.
 * @typedef {object} Sent
 * @property {number} seq
 * @property {Buffer} frame
 * @property {number} dictionarySize bytes of definitions when the frame was closed; they must be sent before the frame
 * @property {number} calls
 * @property {number} samples
 * @property {number} entries
 */

export class Outbox {
  /**
   * @param {object} parts
   * @param {import('../wire/dictionary.js').Dictionary} parts.dictionary
   * @param {import('./clock.js').Clock} parts.clock
   * @param {number} parts.bytesMax
   * @param {() => void} parts.wake called when a frame was begun
   * @param {() => void} [parts.settled] called when all closed frames are acknowledged or discarded
   */
  constructor({ dictionary, clock, bytesMax, wake, settled = () => {} }) {
    this.dictionary = dictionary;
    this.clock = clock;
    this.bytesMax = bytesMax;
    this.wake = wake;
    this.settled = settled;
    this.frame = new Bytes(FRAME_BYTES + 8_192);
    this.record = new Bytes(8_192);
    /** Unacknowledged frames, oldest first; those before `next` were sent on this connection. @type {Sent[]} */
    this.frames = [];
    this.next = 0;
    this.bytes = 0;
    this.seq = 0;
    this.isOpen = false;
    /** Base of the current frame: ns since the process began, including the clock's skew. */
    this.base = 0;
    this.calls = 0;
    this.samples = 0;
    this.entries = 0;
  }

  isFull() {
    return this.bytes + this.frame.size >= this.bytesMax;
  }

  /**
   * Begins a record.
   * @param {number} at time of the record; the time of the first record is the base of the frame
   * @returns {Bytes} the buffer for its content; `end` must follow
   */
  begin(at) {
    const record = this.record.clear();
    if (!this.isOpen) {
      this.wake();
      const seq = this.seq + 1;
      beginFrame(this.frame).varint(seq).u64(this.clock.epoch(at));
      // No function call follows that could overflow the stack. So `isOpen` is true only if the head of the frame is complete.
      this.seq = seq;
      this.base = at;
      this.isOpen = true;
      this.calls = this.samples = this.entries = 0;
    }
    return record;
  }

  /**
   * Adds the record to the frame.
   * @param {number} tag
   * @param {number} calls number of calls that end in it
   * @param {number} samples
   * @param {number} entries
   */
  end(tag, calls, samples, entries) {
    const before = this.frame.size;
    try {
      this.frame.u8(tag).varint(this.record.size).append(this.record);
    } catch (fault) {
      this.frame.size = before; // removes a partly written record: the program's stack may overflow inside this function
      throw fault;
    }
    this.calls += calls;
    this.samples += samples;
    this.entries += entries;
    if (this.frame.size >= FRAME_BYTES) {
      try {
        this.close();
      } catch {
        // The record is in the frame. The next record, or the timer of the agent, closes the frame.
      }
    }
  }

  /** Closes the current frame, so that it can be sent. */
  close() {
    if (this.isOpen) {
      const frame = finishFrame(this.frame, FRAME.DATA).copy();
      const { seq, calls, samples, entries } = this;
      this.frames.push({ seq, frame, dictionarySize: this.dictionary.size(), calls, samples, entries });
      // No function call follows that could overflow the stack. So no frame is added twice.
      this.bytes += frame.length + FRAME_OVERHEAD;
      this.frame.size = 0;
      this.isOpen = false;
    }
  }

  /** The next frame to send; null if there is none. */
  peek() {
    return this.next < this.frames.length ? this.frames[this.next] : null;
  }

  sent() {
    this.next++;
  }

  /** @param {number | bigint} upTo all frames up to this one are on the disk of the server */
  acknowledge(upTo) {
    let count = 0;
    while (count < this.frames.length && this.frames[count].seq <= upTo) {
      this.bytes -= this.frames[count++].frame.length + FRAME_OVERHEAD;
    }
    if (count > 0) {
      this.frames.splice(0, count);
      this.next = Math.max(0, this.next - count);
      if (this.frames.length === 0) {
        this.settled();
      }
    }
  }

  /** True if the server has acknowledged all closed frames. */
  isAcknowledged() {
    return this.frames.length === 0;
  }

  /** The connection is lost: all unacknowledged frames are sent again. */
  rewind() {
    this.next = 0;
  }

  /**
   * Drops all closed frames, because the server refuses at least one of them permanently.
   * @param {import('./totals.js').Totals} totals
   */
  discard(totals) {
    for (const lost of this.frames) {
      totals.callsDropped += lost.calls;
      totals.samplesDropped += lost.samples;
      totals.entriesDropped += lost.entries;
    }
    this.acknowledge(Infinity);
  }
}
