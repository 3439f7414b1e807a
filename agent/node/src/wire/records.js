// Encodes samples and entries (wire.md, DATA, records 1 and 2). Before: `../sample/`. After: `../send/outbox.js`.

import { VALUE } from './constants.js';

/** @typedef {import('./bytes.js').Bytes} Bytes */

/**
 * The head of a sample record; `n` pairs of `zigzag dt` and a value follow.
 * @param {Bytes} out
 * @param {number} type
 * @param {number} series
 * @param {number} n
 */
export function samplesHead(out, type, series, n) {
  return out.u8(type).varint(series).varint(n);
}

/**
 * @param {Bytes} out
 * @param {number} type
 * @param {number | bigint} value
 */
export function sampleValue(out, type, value) {
  if (type === VALUE.F64) {
    return out.f64(Number(value));
  }
  return type === VALUE.I64 ? out.zigzag(value) : out.varint(value);
}

/**
 * @param {Bytes} out
 * @param {number} series
 * @param {number | bigint} dt
 * @param {string | Uint8Array} body
 * @param {number} bytesMax of a text
 */
export function entry(out, series, dt, body, bytesMax) {
  out.varint(series).zigzag(dt);
  return typeof body === 'string' ? out.u8(0).stringCut(body, bytesMax) : out.u8(1).varint(body.length).raw(body);
}
