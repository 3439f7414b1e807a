// The header `traceparent` of W3C Trace Context, level 1, which names a caller in another process: reads it from incoming
// requests, writes it for outgoing requests. Before: the probe of incoming requests (`parse`) and `recorder.js` (`format`).

import { Buffer } from 'node:buffer';

/**
 * A call of another process.
 * @typedef {object} Remote
 * @property {Uint8Array} trace 16 bytes
 * @property {import('./session.js').Half} span
 */

const LENGTH = 55;
const SHAPE = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/s;

/**
 * The flags are ignored, also the sampled flag: this agent records all traces.
 * @param {unknown} header `00-<32 hex>-<16 hex>-<2 hex>`; later versions may append fields
 * @returns {Remote | null} null for a header that the recommendation calls invalid
 */
export function parse(header) {
  const match = typeof header === 'string' && header.length >= LENGTH ? SHAPE.exec(header) : null;
  if (match === null || match[1] === 'ff' || (match[1] === '00' && match[4] !== undefined)) {
    return null;
  }
  const trace = Buffer.from(match[2], 'hex');
  const span = { high: parseInt(match[3].slice(0, 8), 16), low: parseInt(match[3].slice(8), 16) };
  return trace.every((byte) => byte === 0) || (span.high === 0 && span.low === 0) ? null : { trace, span };
}

/**
 * The header to send. Its sampled flag is always set.
 * @param {string} trace 32 hex digits
 * @param {import('./session.js').Half} span
 */
export function format(trace, span) {
  return `00-${trace}-${hex8(span.high)}${hex8(span.low)}-01`;
}

/** @param {number} half */
function hex8(half) {
  return half.toString(16).padStart(8, '0');
}
