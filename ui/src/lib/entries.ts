// How do entries become marks on a time axis and rows of a table?
import type { EntryList, Metric } from './api';
import type { TimeWindow } from './time';

export interface EntryRow {
  key: string;
  /** Unix seconds. */
  at: number;
  metric: Metric;
  text: string;
  /** Of a text that is a JSON object. */
  members: Record<string, unknown> | null;
}

/** Members are columns when all texts are objects; more than this are no table any more. */
const COLUMNS_MAX = 8;

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
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** Names of the members in the order in which they are met; none when there is a text that is no object. */
export function membersOf(rows: readonly EntryRow[]): string[] {
  if (rows.some((row) => row.members === null)) return [];
  const names = new Set(rows.flatMap((row) => Object.keys(row.members ?? {})));
  return names.size > COLUMNS_MAX ? [] : [...names];
}

export const memberText = (value: unknown): string =>
  value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);

/** Where a moment lies on an axis of `width` pixels. */
export const placeOf = (at: number, window: TimeWindow, width: number): number =>
  ((at - window.start) / (window.end - window.start)) * width;

export interface Bar {
  x: number;
  width: number;
  /** Share of the highest. */
  height: number;
  count: number;
}

/** Bars of counts over the axis; where nothing is, there is none. */
export function barsOf(counts: readonly number[], width: number): Bar[] {
  const most = Math.max(...counts, 1);
  const each = width / Math.max(counts.length, 1);
  return counts.flatMap((count, index) =>
    count === 0 ? [] : [{ x: index * each, width: each, height: count / most, count }],
  );
}
