// Encodes one part of a segment (wire.md, DATA, record 3). The caller adds events in order; `write` appends the bytes to a
// record. An event, a call or an attribute is counted after its bytes are complete, because the program's stack may overflow in
// each called function.
// Before: `../record/strand.js`. After: `../send/outbox.js`.

import { Buffer } from 'node:buffer';
import { Bytes } from './bytes.js';
import { ATTRIBUTE_BYTES_MAX, FLAG, FORM, SEGMENT_ATTRIBUTES_MAX } from './constants.js';

/**
 * Fields before the events.
 * @typedef {object} Head
 * @property {number | bigint} number of the segment in its session
 * @property {{ high: number, low: number } | null} parent span id in two halves, null for none
 * @property {Uint8Array | null} trace 16 bytes of a trace that began in another process
 * @property {number | bigint} traceOf segment that began the trace, if `trace` is null and there is a parent
 * @property {number} part
 * @property {number} firstCall
 * @property {number} thread text id
 */

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export class SegmentPart {
  constructor() {
    this.events = new Bytes(128);
    this.eventCount = 0;
    /** Number of calls that end in this part. If the part is discarded, they count as dropped. */
    this.exits = 0;
    this.carriedCount = 0;
    this.attributeCount = 0;
    /** Memory of this part that the recorder has counted, bytes. */
    this.charged = 0;
    /** Carried calls: those that are open when the part begins. @type {Bytes | null} created for the first one */
    this.carried = null;
    /** @type {Bytes | null} created for the first attribute */
    this.attributes = null;
  }

  clear() {
    this.events.size = 0;
    this.eventCount = 0;
    this.exits = 0;
    this.carriedCount = 0;
    this.attributeCount = 0;
    if (this.carried !== null) this.carried.size = 0;
    if (this.attributes !== null) this.attributes.size = 0;
  }

  /** True if this part holds more memory than the recorder has counted. */
  hasGrown() {
    return this.capacity() > this.charged;
  }

  /** Bytes of memory that this part holds. */
  capacity() {
    return this.events.array.length + (this.carried?.array.length ?? 0) + (this.attributes?.array.length ?? 0);
  }

  /**
   * Adds a call that is already open.
   * @param {number} operation
   * @param {number} call
   * @param {number} age ns before the part's first event
   */
  carry(operation, call, age) {
    this.carried ??= new Bytes(64);
    this.carried.varint(operation).varint(call).varint(age);
    this.carriedCount++;
  }

  /**
   * @param {number} dt ns since the previous event
   * @param {number} operation
   */
  enter(dt, operation) {
    const bytes = this.events;
    // Nearly all times need at most four bytes. The ids of the dictionary need at most three.
    if (dt < 0x800_0000 && operation < 0x20_0000 && bytes.array.length - bytes.size >= 8) {
      const array = bytes.array;
      let at = bytes.size;
      for (dt = (dt << 1) | 1; dt >= 0x80; dt >>>= 7) array[at++] = dt | 0x80;
      array[at++] = dt;
      for (; operation >= 0x80; operation >>>= 7) array[at++] = operation | 0x80;
      array[at++] = operation;
      bytes.size = at;
    } else {
      bytes.varint(odd(dt)).varint(operation);
    }
    this.eventCount++;
  }

  /**
   * Changes the operation of the outermost call: the first carried call, or else the call that the part's first event enters.
   * @param {number} operation
   */
  renameOutermost(operation) {
    if (this.carried !== null && this.carriedCount > 0) {
      this.carried.replaceVarint(0, operation);
    } else if (this.eventCount > 0) {
      this.events.replaceVarint(this.events.skipVarint(0), operation);
    }
  }

  /** @param {number} dt */
  exit(dt) {
    const bytes = this.events;
    if (dt < 0x800_0000 && bytes.array.length - bytes.size >= 4) {
      const array = bytes.array;
      let at = bytes.size;
      for (dt <<= 1; dt >= 0x80; dt >>>= 7) array[at++] = dt | 0x80;
      array[at++] = dt;
      bytes.size = at;
    } else {
      bytes.varint(dt * 2);
    }
    this.eventCount++;
    this.exits++;
  }

  /**
   * Ends the innermost call as failed.
   * @param {number} dt
   */
  failed(dt) {
    this.events.varint(odd(dt)).u8(0);
    this.eventCount++;
    this.exits++;
  }

  /** @param {number} call @param {number} key text id @param {number} form */
  #attribute(call, key, form) {
    this.attributes ??= new Bytes(96);
    return this.attributes.varint(call).varint(key).u8(form);
  }

  hasRoomForAttribute() {
    return this.attributeCount < SEGMENT_ATTRIBUTES_MAX;
  }

  /**
   * @param {number} call
   * @param {number} key text id
   * @param {string} value
   * @param {number} valueId text id of the value, 0 if it has none
   */
  attributeText(call, key, value, valueId) {
    if (value.length === 36 && UUID.test(value)) {
      this.#attribute(call, key, FORM.UUID).raw(Buffer.from(value.replaceAll('-', ''), 'hex'));
    } else if (valueId !== 0) {
      this.#attribute(call, key, FORM.TEXT_ID).varint(valueId);
    } else {
      this.#attribute(call, key, FORM.STRING).stringCut(value, ATTRIBUTE_BYTES_MAX);
    }
    this.attributeCount++;
  }

  /** @param {number} call @param {number} key text id @param {number | bigint} value */
  attributeInteger(call, key, value) {
    this.#attribute(call, key, FORM.INTEGER).zigzag(value);
    this.attributeCount++;
  }

  /**
   * @param {Head} head
   * @param {number} start time of the first event relative to the frame's base, ns
   * @param {Bytes} out
   */
  write(head, start, out) {
    const flags =
      (head.part > 0 ? FLAG.CONTINUED : 0) |
      (head.parent !== null ? FLAG.PARENT : 0) |
      (head.trace !== null ? FLAG.TRACE_FULL : 0) |
      (head.parent !== null && head.trace === null ? FLAG.TRACE_OF_SEGMENT : 0) |
      (this.attributeCount > 0 ? FLAG.ATTRIBUTES : 0);
    out.u8(flags).varint(head.number);
    if (head.trace !== null) {
      out.raw(head.trace);
    } else if (head.parent !== null) {
      out.varint(head.traceOf);
    }
    out.varint(head.thread).zigzag(start);
    if (head.parent !== null) {
      out.id8(head.parent.high, head.parent.low);
    }
    if (head.part > 0) {
      out.varint(head.part).varint(head.firstCall).varint(this.carriedCount);
      if (this.carried !== null) out.append(this.carried);
    }
    out.varint(this.eventCount).append(this.events);
    if (this.attributes !== null && this.attributeCount > 0) {
      out.varint(this.attributeCount).append(this.attributes);
    }
  }
}

/**
 * `dt << 1 | 1`; a bigint above the exact range of numbers.
 * @param {number} dt
 */
function odd(dt) {
  return dt < 2 ** 51 ? dt * 2 + 1 : BigInt(dt) * 2n + 1n;
}
