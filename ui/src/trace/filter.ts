// Converts the search in the address to request parameters. The address holds durations as the user wrote them; the server
// expects seconds.
import type { Params, TraceSummary } from '../lib/api';
import { duration, parseNanos } from '../lib/units';

export const LIMITS = ['100', '500', '1000'] as const;
export const LIMIT_DEFAULT = '500';
export const OUTCOMES = ['ok', 'failed'] as const;

export interface Filter {
  filter: Params;
  /** Why the address is not a valid search. */
  problem: string | null;
}

export function filterOf(params: URLSearchParams): Filter {
  const min = nanosOf(params.get('min'));
  const max = nanosOf(params.get('max'));
  const order = orderOf(params.get('sort'));
  const filter: Params = {
    service: params.get('service'),
    operation: params.get('operation'),
    text: params.get('text'),
    status: params.get('status'),
    attribute: params.get('attribute'),
    exception: params.get('exception'),
    outcome: params.get('outcome'),
    request_id: params.get('request'),
    min_duration: min === undefined || min === null ? null : seconds(min),
    max_duration: max === undefined || max === null ? null : seconds(max),
    order,
    after: cursorOf(params.get('after'), order),
    limit: params.get('limit') ?? LIMIT_DEFAULT,
  };
  return { filter, problem: problemOf(params, min, max) };
}

function problemOf(
  params: URLSearchParams,
  min: number | null | undefined,
  max: number | null | undefined,
): string | null {
  if (min === null) return `Not a duration: "${params.get('min')}". Write 250us, 1.5ms or 2s.`;
  if (max === null) return `Not a duration: "${params.get('max')}". Write 250us, 1.5ms or 2s.`;
  if (min !== undefined && max !== undefined && min > max)
    return `The minimum duration (${duration(min)}) is above the maximum (${duration(max)}).`;
  return null;
}

/** Which traces the server returns first: if the table is sorted by start or duration, those at its top; otherwise the newest. */
export function orderOf(sort: string | null): 'newest' | 'oldest' | 'slowest' | 'fastest' {
  switch (sort) {
    case '-start':
      return 'oldest';
    case 'duration':
      return 'slowest';
    case '-duration':
      return 'fastest';
    default:
      return 'newest';
  }
}

/** The page after `next` as a parameter of the address. It is valid for one order only, and the table may be sorted again. */
export const pageOf = (next: string, order: string): string => `${order}:${next}`;

/** The cursor of a page in the address. Null for the first page, and for a page of another order. */
export function cursorOf(page: string | null, order: string): string | null {
  return page !== null && page.startsWith(`${order}:`) ? page.slice(order.length + 1) : null;
}

/** A trace as the table and the chart show it: with start, duration and outcome of the call that matched, if there is one. */
export interface Shown extends TraceSummary {
  /** Duration of the whole trace. */
  trace_ns: number;
}

export function shownOf(trace: TraceSummary): Shown {
  const { start, duration_ns, outcome } = trace.match ?? trace;
  return { ...trace, start, duration_ns, outcome, trace_ns: trace.duration_ns };
}

/** Undefined if absent, null if invalid. */
function nanosOf(text: string | null): number | null | undefined {
  return text === null || text.trim() === '' ? undefined : parseNanos(text);
}

const seconds = (nanos: number): string => (nanos / 1e9).toFixed(9);

/** Formats a duration from the chart for the form. */
export function inWords(nanos: number): string {
  if (nanos < 1e3) return `${Math.round(nanos)}ns`;
  if (nanos < 1e6) return `${Number((nanos / 1e3).toPrecision(3))}us`;
  if (nanos < 1e9) return `${Number((nanos / 1e6).toPrecision(3))}ms`;
  return `${Number((nanos / 1e9).toPrecision(3))}s`;
}
