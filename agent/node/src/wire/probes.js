// Decodes rules for probes, encodes the report on them (wire.md, PROBES and PROBED). Before: `../send/protocol.js`. After:
// `../rules/switchboard.js`.

import { Bytes } from './bytes.js';
import { FRAME, PROBED_TEXT_BYTES_MAX, PROBE_RULES_MAX } from './constants.js';
import { beginFrame, finishFrame } from './frame.js';
import { Damaged } from './reader.js';

/** One rule, not parsed yet. @typedef {{ state: number, pattern: string }} ProbeRule */

/**
 * The result of applying the rules.
 * @typedef {object} Report
 * @property {number | bigint} revision of the PROBES that is answered
 * @property {number} on
 * @property {number} aggregated
 * @property {number} off
 * @property {{ matched: number, fault: string }[]} rules in the order of PROBES
 * @property {{ operation: string, reason: string, since: bigint }[]} [moved] operations aggregated or off without a rule
 */

/**
 * @param {import('./reader.js').Reader} body
 * @returns {{ revision: number | bigint, rules: ProbeRule[] }}
 * @throws {Damaged}
 */
export function readProbes(body) {
  const revision = body.varint();
  const count = body.varint();
  if (count > PROBE_RULES_MAX) {
    throw new Damaged(`PROBES claims ${count} rules, at most ${PROBE_RULES_MAX} are allowed`);
  }
  const rules = Array.from({ length: Number(count) }, () => ({ state: body.u8(), pattern: body.string() }));
  return { revision, rules };
}

/** @param {Report} report */
export function probedFrame({ revision, on, aggregated, off, rules, moved = [] }) {
  const out = beginFrame(new Bytes(64)).varint(revision).varint(on).varint(aggregated).varint(off).varint(rules.length);
  rules.forEach(({ matched, fault }, at) => out.varint(at).varint(matched).stringCut(fault, PROBED_TEXT_BYTES_MAX));
  out.varint(moved.length);
  for (const { operation, reason, since } of moved) {
    out.stringCut(operation, PROBED_TEXT_BYTES_MAX).stringCut(reason, PROBED_TEXT_BYTES_MAX).u64(since);
  }
  return finishFrame(out, FRAME.PROBED).copy();
}
