// A monotonic clock in whole ns since the process began, and its offset to the Unix epoch. The offset is measured repeatedly, so
// that the recorder follows changes of the wall clock; a segment keeps its initial offset, so its durations have no jump.

import { performance } from 'node:perf_hooks';

const MS = 1e6;

/** Ns since the process began, accurate to 1 ns for the first 198 days. */
export function now() {
  return Math.round(performance.now() * MS);
}

export class Clock {
  /** @param {() => number} [wall] ms since the epoch; may jump in either direction */
  constructor(wall = Date.now) {
    this.wall = wall;
    /** The time at which `now()` was 0, as measured when the process began, ns since the epoch. */
    this.originNs =
      BigInt(Math.floor(performance.timeOrigin)) * 1_000_000n + BigInt(Math.round((performance.timeOrigin % 1) * MS));
    this.originMs = performance.timeOrigin;
    /** Change of the wall clock since then, ns; added to `now()`. */
    this.skew = 0;
  }

  /** Measures the skew again. The wall clock has ms resolution, so smaller differences are ignored. */
  update() {
    const seen = this.wall();
    const expected = this.originMs + performance.now() + this.skew / MS;
    if (expected < seen || expected >= seen + 1) {
      this.skew += Math.round((seen - expected) * MS);
    }
  }

  /**
   * @param {number} ns since the process began, including the skew
   * @returns {bigint} since the epoch
   */
  epoch(ns) {
    return this.originNs + BigInt(ns);
  }
}
