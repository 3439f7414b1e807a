// Converts the server's timelines to lines of a chart. Several services share one grid of times. A bucket is an interval of a
// timeline. An empty one is 0 for a count and a gap for a percentile. The rate of a bucket that is only partly in the window
// refers to that part.
import type { TimeWindow } from './time';
import { share } from './units';

/** Unix seconds of the bucket's start, then its values. */
export type Row = readonly [number, ...(number | null)[]];

export interface Grid {
  times: number[];
  /** Length of a bucket in seconds. */
  step: number;
}

const BUCKETS = 120;
const GRID_POINTS_MAX = 2000;

/** The regular grid of the buckets of all timelines. A grid of more than `GRID_POINTS_MAX` points is replaced by the
 * times of the buckets. */
export function gridOf(timelines: (readonly Row[])[], window: TimeWindow): Grid {
  const known = [...new Set(timelines.flatMap((rows) => rows.map((row) => row[0])))].sort((a, b) => a - b);
  const first = known[0];
  const last = known.at(-1);
  if (first === undefined || last === undefined) return { times: [], step: (window.end - window.start) / BUCKETS };
  let step = Infinity;
  known.forEach((time, index) => {
    const before = known[index - 1];
    if (before !== undefined) step = Math.min(step, time - before);
  });
  if (!Number.isFinite(step)) step = (window.end - window.start) / BUCKETS;
  const count = Math.round((last - first) / step) + 1;
  if (count > GRID_POINTS_MAX) return { times: known, step };
  return { times: Array.from({ length: count }, (_, index) => first + index * step), step };
}

/** Values of one column on the grid; `absent` where the timeline has no bucket. */
export function column(rows: readonly Row[], grid: Grid, index: number, absent: number | null): (number | null)[] {
  const values = new Map(rows.map((row) => [slot(row[0], grid), row[index] ?? null]));
  return grid.times.map((time) => {
    const at = slot(time, grid);
    return values.has(at) ? (values.get(at) ?? null) : absent;
  });
}

/** A percentile column. It has a gap where the count, in column `counts`, is 0, even if the timeline contains a value. */
export function percentile(rows: readonly Row[], grid: Grid, index: number, counts: number): (number | null)[] {
  const values = column(rows, grid, index, null);
  return column(rows, grid, counts, 0).map((count, at) => (count === 0 ? null : (values[at] ?? null)));
}

const slot = (time: number, grid: Grid): number => Math.round((time - (grid.times[0] ?? 0)) / grid.step);

/** Counts of buckets as a rate per second. */
export function perSecond(counts: (number | null)[], grid: Grid, window: TimeWindow): (number | null)[] {
  return counts.map((count, index) => {
    const from = grid.times[index] ?? 0;
    const covered = Math.min(from + grid.step, window.end) - Math.max(from, window.start);
    // Divides by at least half a bucket; otherwise one request in a very short part of a bucket would become a peak.
    return count === null ? null : count / Math.min(grid.step, Math.max(covered, grid.step / 2));
  });
}

/** Share of failed requests in each bucket of a timeline of requests and errors; 0 without requests. */
export function errorShares(rows: readonly Row[], grid: Grid): (number | null)[] {
  const requests = column(rows, grid, 1, 0);
  return column(rows, grid, 2, 0).map((errors, index) => share(errors ?? 0, requests[index] ?? 0) ?? 0);
}
