// Time windows, and parsing and formatting of times.

export interface TimeWindow {
  /** Unix seconds. */
  start: number;
  /** Unix seconds. */
  end: number;
}

/** Relative ranges in the picker, shortest first. */
export const RANGES = ['5m', '15m', '1h', '6h', '24h'] as const;
export const RANGE_DEFAULT = '1h';

/** Refresh intervals in the picker, in seconds; 0 is off. */
export const REFRESH_SECONDS = [0, 5, 10, 30, 60] as const;

const UNIT_SECONDS: Record<string, number> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 };

/** Reads a Prometheus duration such as `5m`, `1h30m`, `250ms`; null for other text. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim();
  if (!/^(\d+(ms|[smhdwy]))+$/.test(trimmed)) return null;
  let seconds = 0;
  for (const [, count, unit] of trimmed.matchAll(/(\d+)(ms|[smhdwy])/g)) {
    seconds += Number(count) * (UNIT_SECONDS[unit ?? ''] ?? 0);
  }
  return seconds > 0 ? seconds : null;
}

/** Reads a time: `now`, `now-15m`, Unix seconds (9 to 11 digits), or a date with or without a time, local or with a zone;
 * null for other text. */
export function parseMoment(text: string, now: number): number | null {
  const trimmed = text.trim();
  const relative = /^now(?:\s*-\s*(\S+))?$/.exec(trimmed);
  if (relative) {
    const back = relative[1] === undefined ? 0 : parseDuration(relative[1]);
    return back === null ? null : now - back;
  }
  if (/^\d{9,11}(\.\d+)?$/.test(trimmed)) return Number(trimmed);
  if (!/^\d{4}-\d{2}-\d{2}/.test(trimmed)) return null;
  const millis = Date.parse(/^\d{4}-\d{2}-\d{2}$/.test(trimmed) ? `${trimmed}T00:00:00` : trimmed.replace(' ', 'T'));
  return Number.isNaN(millis) ? null : millis / 1000;
}

const two = (value: number): string => String(value).padStart(2, '0');

/** Local date: 2026-11-21. */
export function day(seconds: number): string {
  const date = new Date(seconds * 1000);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** Local time of day with seconds; with milliseconds if `withMillis` is set. */
export function clock(seconds: number, withMillis = false): string {
  const date = new Date(Math.round(seconds * 1000));
  const base = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return withMillis ? `${base}.${String(date.getMilliseconds()).padStart(3, '0')}` : base;
}

/** Local date and time: 2026-11-21 20:58:49. */
export function moment(seconds: number, withMillis = false): string {
  return `${day(seconds)} ${clock(seconds, withMillis)}`;
}

/** Converts a time of the server, a string of Unix nanoseconds, to Unix seconds. A double keeps the microseconds. */
export function fromNanos(text: string): number {
  return Number(BigInt(text) / 1000n) / 1e6;
}

/** Text of the picker's button for a window. */
export function describe(window: TimeWindow): string {
  const sameDay = day(window.start) === day(window.end);
  return `${moment(window.start)} – ${sameDay ? clock(window.end) : moment(window.end)}`;
}

/** The smallest round step, in seconds, with which a chart of this width has at most about one point for each two pixels. The
 * limit is never below 100 or above 11,000 points. */
export function autoStep(window: TimeWindow, pixels: number): number {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400];
  const points = Math.min(Math.max(pixels / 2, 100), 11_000);
  const wanted = (window.end - window.start) / points;
  return steps.find((step) => step >= wanted) ?? Math.ceil(wanted / 86_400) * 86_400;
}
