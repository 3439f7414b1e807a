// Converts entries to marks on a time axis and rows of a table.
import type { EntryList, Metric, RecordForm } from './api';
import type { TimeWindow } from './time';

export interface EntryRow {
  key: string;
  /** Unix seconds. */
  at: number;
  metric: Metric;
  text: string;
  /** Members of the text if it is a JSON object, otherwise null. */
  members: Record<string, unknown> | null;
}

/** Members become columns if all texts are objects that together have at most this many different members. */
const COLUMNS_MAX = 24;

export function rowsOf(list: EntryList): EntryRow[] {
  return list.entries.map((entry, index) => ({
    key: `${entry.time} ${entry.series} ${index}`,
    at: Number(entry.time) / 1e9,
    metric: list.series[entry.series] ?? {},
    text: entry.text ?? `bytes ${entry.hex ?? ''}`,
    members: entry.text === undefined ? null : objectOf(entry.text),
  }));
}

function objectOf(text: string): Record<string, unknown> | null {
  if (!text.startsWith('{')) return null;
  try {
    return parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** Matches the numbers of a JSON text. It also matches whole strings, so that digits in a string do not match as numbers. */
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** Prefix of strings that replace whole numbers beyond the precision of a double. */
const EXACT = '\u0001';

/** Parses JSON; whole numbers keep all digits. */
function parse(text: string): unknown {
  const quoted = (token: string): string =>
    /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? JSON.stringify(EXACT + token) : token;
  const exact = (_key: string, value: unknown): unknown =>
    typeof value === 'string' && /^\u0001-?\d+$/.test(value) ? BigInt(value.slice(1)) : value;
  return /\d{16}/.test(text) ? JSON.parse(text.replace(TOKENS, quoted), exact) : JSON.parse(text);
}

/** Names of the members in order of appearance. Empty if a text is not an object, or if there are more than `COLUMNS_MAX`. */
export function membersOf(rows: readonly EntryRow[]): string[] {
  if (rows.some((row) => row.members === null)) return [];
  const names = new Set(rows.flatMap((row) => Object.keys(row.members ?? {})));
  return names.size > COLUMNS_MAX ? [] : [...names];
}

export function memberText(value: unknown): string {
  if (value === undefined) return '';
  const written = (_key: string, part: unknown): unknown => (typeof part === 'bigint' ? part.toString() : part);
  return typeof value === 'string' || typeof value === 'bigint' ? String(value) : JSON.stringify(value, written);
}

/** How rows are sorted by a member: as numbers if all its values, apart from null, are numbers. */
export function memberOrder(rows: readonly EntryRow[], name: string): 'number' | 'text' {
  const values = rows.map((row) => row.members?.[name]).filter((value) => value !== undefined && value !== null);
  const isNumber = (value: unknown): boolean => typeof value === 'number' || typeof value === 'bigint';
  return values.length > 0 && values.every(isNumber) ? 'number' : 'text';
}

/** Unit of a member by the declared types of these entries; empty if they declare none or disagree. */
export function unitOf(forms: readonly RecordForm[], rows: readonly EntryRow[], member: string): string {
  const shown = new Set(rows.map((row) => row.metric['__name__']));
  const fields = forms
    .filter((form) => shown.has(form.name))
    .flatMap((form) => form.fields.filter((field) => field.name === member));
  const units = new Set(fields.map((field) => field.unit));
  return units.size === 1 ? ([...units][0] ?? '') : '';
}

/** True for a trace id as records contain it: 32 lower-case hex digits. */
export const isTraceId = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{32}$/.test(value);

/** Position of a time on an axis of `width` pixels. */
export const placeOf = (at: number, window: TimeWindow, width: number): number =>
  ((at - window.start) / (window.end - window.start)) * width;

export interface Bar {
  x: number;
  width: number;
  /** As a fraction of the height of the highest bar. */
  height: number;
  count: number;
}

/** Bars of counts over the axis; no bar for a count of 0. */
export function barsOf(counts: readonly number[], width: number): Bar[] {
  const most = Math.max(...counts, 1);
  const each = width / Math.max(counts.length, 1);
  return counts.flatMap((count, index) =>
    count === 0 ? [] : [{ x: index * each, width: each, height: count / most, count }],
  );
}
