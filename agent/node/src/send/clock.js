// What time is it? A monotonic clock in whole ns since the process began, and what has to be added to it for the time since the
// Unix epoch. The difference is looked at again and again, so the recorder follows a clock that is set; a segment keeps the
// difference it began with, so its durations do not see the jump.

import { performance } from 'node:perf_hooks';

const MS = 1e6;

/** Ns since the process began. Exact for 104 days, to 2 ns for the next 104. */
export function now() {
  return Math.round(performance.now() * MS);
}

export class Clock {
  /** @param {() => number} [wall] ms since the epoch; may jump in either direction */
  constructor(wall = Date.now) {
    this.wall = wall;
    /** Time of `now() === 0` as the process saw it when it began. */
    this.originNs =
      BigInt(Math.floor(performance.timeOrigin)) * 1_000_000n + BigInt(Math.round((performance.timeOrigin % 1) * MS));
    this.originMs = performance.timeOrigin;
    /** To be added to `now()`: how far the wall clock was moved since, ns. */
    this.skew = 0;
  }

  /** Compares both clocks. The wall's shows whole ms, so a difference below that is none. */
  update() {
    const seen = this.wall();
    const expected = this.originMs + performance.now() + this.skew / MS;
    if (expected < seen || expected >= seen + 1) {
      this.skew += Math.round((seen - expected) * MS);
    }
  }

  /**
   * @param {number} ns since the process began, moved by the skew
   * @returns {bigint} since the epoch
   */
  epoch(ns) {
    return this.originNs + BigInt(ns);
  }
}
