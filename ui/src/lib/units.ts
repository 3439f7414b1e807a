// Formats numbers with at most three significant digits and a unit: ns, µs, ms, s; B to PB; k to P; /s; %. There are two
// exceptions. Plain numbers have all digits before the point up to 10^5. From a minute on, a duration is whole numbers of two
// units: min and s, h and min, or d and h.

/** The kind of a number; determines its unit on axes, in tables and in tooltips. */
export type Unit = 'duration' | 'bytes' | 'rate' | 'count' | 'percent' | 'number' | 'seconds';

/** Shown for a missing value. */
export const NONE = '–';

/** Three significant digits, at most three after the point, without trailing zeros there: 1.24, 12.4, 124, 0.012. From 1000
 * on, all digits before the point. */
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size < 0.0005) return '0';
  const places = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.995 ? 2 : 3;
  const text = value.toFixed(places);
  return places === 0 ? text : text.replace(/\.?0+$/, '') || '0';
}

/** Formats a duration given in nanoseconds. */
export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return NONE;
  const size = Math.abs(ns);
  if (size < 999.5) return `${digits(ns)} ns`;
  if (size < 999.5e3) return `${digits(ns / 1e3)} µs`;
  if (size < 999.5e6) return `${digits(ns / 1e6)} ms`;
  if (size < 59.95e9) return `${digits(ns / 1e9)} s`;
  return longDuration(ns / 1e9);
}

function longDuration(seconds: number): string {
  const sign = seconds < 0 ? '-' : '';
  const whole = Math.round(Math.abs(seconds));
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86_400) return `${sign}${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${sign}${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

/** Bytes with decimal prefixes, as for disks and networks. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const prefixes = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let scaled = value;
  let step = 0;
  while (Math.abs(scaled) >= 999.5 && step < prefixes.length - 1) {
    scaled /= 1000;
    step += 1;
  }
  return `${digits(scaled)} ${prefixes[step]}`;
}

/** A plain number: with separated thousands up to 10^5, then with k, M, G, T, P; very small and very large numbers with
 * powers of ten. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const size = Math.abs(value);
  if (size !== 0 && size < 0.0005)
    return value
      .toExponential(2)
      .replace('e-', 'e-')
      .replace(/\.?0+e/, 'e');
  if (size < 999.5) return digits(value);
  if (size < 99_999.5) return grouped(value);
  const prefixes: [number, string][] = [
    [1e15, 'P'],
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ];
  for (const [scale, prefix] of prefixes) {
    if (size >= scale * 0.9995) return size >= 1e18 ? value.toExponential(2) : `${digits(value / scale)} ${prefix}`;
  }
  return digits(value);
}

/** The number, rounded to an integer, with all digits; thousands are separated by a narrow space. */
export function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** A number of calls with its noun. */
export const calls = (count: number): string => (count === 1 ? '1 call' : `${number(count)} calls`);

export function rate(perSecond: number | null | undefined): string {
  return perSecond === null || perSecond === undefined ? NONE : `${number(perSecond)} /s`;
}

/** Formats a share between 0 and 1 as a percentage. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return NONE;
  if (share === 0) return '0 %';
  const value = share * 100;
  return Math.abs(value) < 0.01 ? '< 0.01 %' : `${digits(Number(value.toFixed(2)))} %`;
}

/** `part` of `whole` as a share; null if `whole` is 0. */
export function share(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null;
}

/** Writes a value in its unit. `duration` is in ns, `seconds` in s. */
export function format(unit: Unit, value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  switch (unit) {
    case 'duration':
      return duration(value);
    case 'seconds':
      return duration(value * 1e9);
    case 'bytes':
      return bytes(value);
    case 'rate':
      return rate(value);
    case 'percent':
      return percent(value);
    case 'count':
    case 'number':
      return number(value);
  }
}

const NANOS: Record<string, number> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  min: 60e9,
  h: 3600e9,
};

/** Parses a duration such as `1.5ms`, `200 µs` or `2s` to nanoseconds; null for other text. */
export function parseNanos(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?|\.\d+)\s*(ns|us|µs|μs|ms|s|min|m|h)$/i.exec(text.trim());
  const scale = NANOS[found?.[2]?.toLowerCase() ?? ''];
  return found === null || scale === undefined ? null : Number(found[1]) * scale;
}
