// The ids of the spans of this session, and of the traces that begin in it. They are derived from the 16 bytes of the session and
// the numbers of segment and call (wire.md, DATA, segment). So a segment is sent with its number instead of the ids of its calls.
// A number of 64 bits is stored as two halves of 32 bits, because a BigInt would cost more than all other work for a call.

import { Buffer } from 'node:buffer';
import { createHash, randomBytes } from 'node:crypto';

/**
 * An id of 64 bits, or half of a trace id.
 * @typedef {{ high: number, low: number }} Half
 */

export class Session {
  /**
   * @param {Uint8Array} bytes 16
   * @param {Uint8Array | null} secret 16 bytes from which `bytes` is derived; used only in HELLO
   */
  constructor(bytes, secret = null) {
    this.bytes = Buffer.from(bytes);
    this.secret = secret;
    this.high = { high: this.bytes.readUInt32BE(0), low: this.bytes.readUInt32BE(4) };
    this.low = { high: this.bytes.readUInt32BE(8), low: this.bytes.readUInt32BE(12) };
  }

  static draw() {
    return Session.of(randomBytes(16));
  }

  /**
   * Derives the session from a secret. Session ids are public; without the secret, others cannot send as this process.
   * @param {Uint8Array} secret 16
   */
  static of(secret) {
    const hash = createHash('sha256').update('tachograph session').update(secret).digest();
    return new Session(Buffer.concat([Buffer.from('tach'), hash.subarray(0, 12)]), secret);
  }

  /**
   * Id of call `call` of segment `number`: mix64(session_low + (number << 24) + call).
   * @param {number | bigint} number
   * @param {number} call
   * @returns {Half}
   */
  span(number, call) {
    const upper = typeof number === 'bigint' ? Number((number >> 8n) & 0xffff_ffffn) : Math.floor(number / 256) % 2 ** 32;
    const lowest = typeof number === 'bigint' ? Number(number & 0xffn) : number % 256;
    let low = this.low.low + lowest * 2 ** 24;
    let high = this.low.high + upper;
    low += call;
    high += Math.floor(low / 2 ** 32);
    return mix64(high | 0, low | 0);
  }

  /**
   * Id of a trace that begins with segment `number`, 16 bytes.
   * @param {number | bigint} number
   */
  trace(number) {
    const bytes = Buffer.from(this.bytes);
    const { high, low } = this.span(number, 0);
    bytes.writeUInt32BE(high, 8);
    bytes.writeUInt32BE(low, 12);
    return bytes;
  }
}

/**
 * Finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), the same as `tacho_model::mix64`.
 * @param {number} high
 * @param {number} low
 * @returns {Half}
 */
function mix64(high, low) {
  let first = times(high ^ (high >>> 30), low ^ ((low >>> 30) | (high << 2)), 0xbf58476d, 0x1ce4e5b9);
  first = times(first.high ^ (first.high >>> 27), first.low ^ ((first.low >>> 27) | (first.high << 5)), 0x94d049bb, 0x133111eb);
  const { high: h, low: l } = first;
  return { high: (h ^ (h >>> 31)) >>> 0, low: (l ^ ((l >>> 31) | (h << 1))) >>> 0 };
}

/**
 * The lower 64 bits of a product.
 * @param {number} aHigh
 * @param {number} aLow
 * @param {number} bHigh
 * @param {number} bLow
 * @returns {Half}
 */
function times(aHigh, aLow, bHigh, bLow) {
  const a0 = aLow & 0xffff;
  const a1 = aLow >>> 16;
  const b0 = bLow & 0xffff;
  const b1 = bLow >>> 16;
  const p00 = Math.imul(a0, b0) >>> 0;
  const middle = (p00 >>> 16) + (Math.imul(a1, b0) >>> 0) + (Math.imul(a0, b1) >>> 0);
  const carry = Math.floor(middle / 0x1_0000);
  const upper = (Math.imul(a1, b1) >>> 0) + carry;
  return { high: (upper + Math.imul(aHigh, bLow) + Math.imul(aLow, bHigh)) | 0, low: (p00 & 0xffff) | (middle << 16) };
}
