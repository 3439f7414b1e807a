// Converts query results to lines and rows.
import type { Metric, Point, QueryData } from '../lib/api';
import type { Unit } from '../lib/units';

export interface SeriesOf<T> {
  metric: Metric;
  values: T;
}

/** `name{label="value"}`, labels sorted. */
export function seriesName(metric: Metric): string {
  const labels = Object.keys(metric)
    .filter((name) => name !== '__name__')
    .sort();
  const inner = labels.map((name) => `${name}="${metric[name]}"`).join(', ');
  const name = metric.__name__ ?? '';
  return inner === '' ? name || '{}' : `${name}{${inner}}`;
}

/** The selector of all series of a name. Some names are not PromQL identifiers, such as `cpu.load` from an imported file. */
export function selectorOf(name: string): string {
  return /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name) ? name : `{${JSON.stringify(name)}}`;
}

/** The default query for a metric: the rate of a counter, otherwise the metric itself. */
export function suggestedQuery(name: string): string {
  const selector = selectorOf(name);
  return /_(total|count|sum|bucket)$/.test(name) ? `rate(${selector}[5m])` : selector;
}

/** Names for a legend. Labels that all series share are omitted if there is more than one series. A
 *  series without other labels keeps all. */
export function legendNames(metrics: readonly Metric[]): string[] {
  const first = metrics[0];
  if (first === undefined || metrics.length === 1) return metrics.map(seriesName);
  const shared = Object.keys(first).filter((name) => metrics.every((metric) => metric[name] === first[name]));
  return metrics.map((metric) => {
    const rest = Object.fromEntries(Object.entries(metric).filter(([name]) => !shared.includes(name)));
    return Object.keys(rest).length === 0 ? seriesName(metric) : seriesName(rest);
  });
}

/** A vector becomes series with one value each. A scalar or a string becomes one series without labels. */
export function matrixOf(data: QueryData): SeriesOf<Point[]>[] {
  if (data.resultType === 'matrix') return data.result;
  if (data.resultType === 'vector') return data.result.map(({ metric, value }) => ({ metric, values: [value] }));
  return [{ metric: {}, values: [data.result] }];
}

/** The last value of each series. */
export function vectorOf(data: QueryData): SeriesOf<Point>[] {
  return matrixOf(data).flatMap(({ metric, values }) => {
    const last = values.at(-1);
    return last === undefined ? [] : [{ metric, values: last }];
  });
}

/** Values on the regular grid of a range query; NaN and infinities are gaps. */
export function onGrid(points: readonly Point[], start: number, step: number, count: number): (number | null)[] {
  const values = new Array<number | null>(count).fill(null);
  for (const [time, text] of points) {
    const at = Math.round((time - start) / step);
    const value = Number(text);
    if (at >= 0 && at < count && Number.isFinite(value)) values[at] = value;
  }
  return values;
}

/** The unit that the names in a query suggest: `heap_bytes` are bytes, `rate(http_seconds_total[5m])` is a plain number. */
export function unitOf(query: string): Unit {
  if (/^\s*(count|group|changes|resets)\b/.test(query)) return 'number';
  const perTime = /\b(rate|irate|deriv)\s*\(/.test(query);
  if (/histogram_quantile/.test(query) && /_seconds_bucket\b/.test(query)) return 'seconds';
  if (/[*/]/.test(query.replace(/"[^"]*"/g, ''))) return 'number';
  if (/_bytes(_total|_sum)?\b/.test(query)) return 'bytes';
  if (/_(ns|nanos|nanoseconds)(_total|_sum)?\b/.test(query)) return perTime ? 'number' : 'duration';
  if (/_seconds(_total|_sum)?\b/.test(query)) return perTime ? 'number' : 'seconds';
  if (/_ratio\b/.test(query)) return 'percent';
  return perTime ? 'rate' : 'number';
}

/**
 * Position of an error as index into the query. The message ends with the position: `(at column 7)` or `(at line 2, column 5)`.
 * Lines and columns count from 1, columns in characters.
 */
export function faultAt(message: string, query: string): number | null {
  const place = /\(at (?:line (\d+), )?column (\d+)\)$/.exec(message);
  if (place === null) return null;
  const lines = query.split('\n');
  const line = Number(place[1] ?? 1) - 1;
  const before = lines.slice(0, line).reduce((length, text) => length + text.length + 1, 0);
  const characters = [...(lines[line] ?? '')].slice(0, Number(place[2]) - 1);
  return Math.min(before + characters.join('').length, query.length);
}
