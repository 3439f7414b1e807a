// Writes the primitive types of the protocol into a growing buffer. Numbers of fixed length are little endian, ids big endian.
// Before: `segment.js`, `records.js`, `dictionary.js`. After: `frame.js`.

import { Buffer } from 'node:buffer';

const ELLIPSIS = Buffer.from('…');

export class Bytes {
  /** @param {number} capacity */
  constructor(capacity) {
    this.array = Buffer.allocUnsafeSlow(capacity);
    this.size = 0;
  }

  /** The written bytes, valid until the next write. */
  view() {
    return this.array.subarray(0, this.size);
  }

  copy() {
    return Buffer.from(this.view());
  }

  clear() {
    this.size = 0;
    return this;
  }

  /** @param {number} count of bytes that can then be written */
  reserve(count) {
    if (this.array.length - this.size < count) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.array.length * 2, this.size + count));
      this.array.copy(larger, 0, 0, this.size);
      this.array = larger;
    }
  }

  /**
   * @param {number} at start of the number to replace
   * @param {number} value
   */
  replaceVarint(at, value) {
    const rest = Buffer.from(this.array.subarray(this.skipVarint(at), this.size));
    this.size = at;
    this.varint(value).raw(rest);
  }

  /** @param {number} at start of a number @returns {number} its end */
  skipVarint(at) {
    while (this.array[at] >= 0x80) at++;
    return at + 1;
  }

  /** @param {number} value */
  u8(value) {
    this.reserve(1);
    this.array[this.size++] = value;
    return this;
  }

  /** @param {number} value */
  u32(value) {
    this.reserve(4);
    this.array.writeUInt32LE(value >>> 0, this.size);
    this.size += 4;
    return this;
  }

  /** @param {bigint} value modulo 2^64 */
  u64(value) {
    this.reserve(8);
    this.array.writeBigUInt64LE(BigInt.asUintN(64, value), this.size);
    this.size += 8;
    return this;
  }

  /** @param {number} value */
  f64(value) {
    this.reserve(8);
    this.array.writeDoubleLE(value, this.size);
    this.size += 8;
    return this;
  }

  /**
   * Eight bytes of an id, most significant first.
   * @param {number} high the upper 32 bits
   * @param {number} low
   */
  id8(high, low) {
    this.reserve(8);
    this.array.writeUInt32BE(high >>> 0, this.size);
    this.array.writeUInt32BE(low >>> 0, this.size + 4);
    this.size += 8;
    return this;
  }

  /** @param {number | bigint} value not negative; a number is exact up to 2^53 */
  varint(value) {
    this.reserve(10);
    if (typeof value === 'bigint') {
      for (; value >= 0x80n; value >>= 7n) {
        this.array[this.size++] = Number(value & 0x7fn) | 0x80;
      }
      this.array[this.size++] = Number(value);
      return this;
    }
    const array = this.array;
    let at = this.size;
    for (; value >= 0x8000_0000; value = Math.floor(value / 128)) {
      array[at++] = (value % 128) | 0x80;
    }
    let small = value | 0;
    for (; small >= 0x80; small >>>= 7) {
      array[at++] = small | 0x80;
    }
    array[at++] = small;
    this.size = at;
    return this;
  }

  /** @param {number | bigint} value @returns {Bytes} */
  zigzag(value) {
    if (typeof value === 'bigint') {
      return this.varint(BigInt.asUintN(64, (value << 1n) ^ (value >> 63n)));
    }
    const doubled = value >= 0 ? value * 2 : value * -2 - 1;
    return Number.isSafeInteger(doubled) ? this.varint(doubled) : this.zigzag(BigInt(value));
  }

  /** @param {string} text */
  string(text) {
    const length = Buffer.byteLength(text);
    this.varint(length).reserve(length);
    this.size += this.array.write(text, this.size);
    return this;
  }

  /**
   * As `string`; longer text is cut between characters and ends with an ellipsis.
   * @param {string} text
   * @param {number} bytesMax
   */
  stringCut(text, bytesMax) {
    // A UTF-16 unit becomes at least one byte, so units after the first `bytesMax` are not needed.
    const head = text.length > bytesMax ? text.slice(0, bytesMax) : text;
    if (head.length === text.length && (text.length * 3 <= bytesMax || Buffer.byteLength(text) <= bytesMax)) {
      return this.string(text);
    }
    const bytes = Buffer.from(head);
    let end = Math.min(bytes.length, bytesMax - ELLIPSIS.length);
    while (end > 0 && end < bytes.length && (bytes[end] & 0xc0) === 0x80) {
      end--;
    }
    return this.varint(end + ELLIPSIS.length)
      .raw(bytes.subarray(0, end))
      .raw(ELLIPSIS);
  }

  /** @param {Uint8Array} bytes */
  raw(bytes) {
    this.reserve(bytes.length);
    this.array.set(bytes, this.size);
    this.size += bytes.length;
    return this;
  }

  /** @param {Bytes} other */
  append(other) {
    this.reserve(other.size);
    // Most inputs have a few dozen bytes: a loop is faster than setting up a copy.
    if (other.size < 64) {
      for (let from = 0, to = this.size; from < other.size;) {
        this.array[to++] = other.array[from++];
      }
    } else {
      other.array.copy(this.array, this.size, 0, other.size);
    }
    this.size += other.size;
    return this;
  }
}
