// Reads the time window from the parameters of an address.
import { parseDuration, RANGE_DEFAULT, type TimeWindow } from './time';

export interface WindowState extends TimeWindow {
  /** Length of a range up to now, such as `15m`; null for a fixed range. */
  range: string | null;
  /** Seconds between refreshes, 0 for none. */
  refresh: number;
}

/** `at` is now, in Unix seconds. Invalid parameters are ignored. */
export function windowOf(params: URLSearchParams, at: number): WindowState {
  const refresh = Math.max(0, Number(params.get('refresh') ?? 0) || 0);
  const from = Number(params.get('from'));
  const to = Number(params.get('to'));
  if (from > 0 && to > from) return { start: from, end: to, range: null, refresh };
  const asked = params.get('range') ?? RANGE_DEFAULT;
  const seconds = parseDuration(asked);
  const range = seconds === null ? RANGE_DEFAULT : asked;
  return { start: at - (seconds ?? 3600), end: at, range, refresh };
}
