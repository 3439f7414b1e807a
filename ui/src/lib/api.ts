// The server's HTTP API (docs/api.md): a function for each request that the pages send, and the types of the responses.
// Path of one record: before, `crates/server/src/http/executions/answer.rs` writes the JSON; after, `pages/` draws
// it.
import { take, type Told } from './notices';
import { begin, end } from './running';
import { expire, state, type Session } from './session';
import type { TimeWindow } from './time';

export type Kind = 'method' | 'http-server' | 'http-client' | 'database' | 'connection-wait' | 'task';

export interface Service {
  service: string;
  hosts: string[];
  requests: number;
  calls: number;
  errors: number;
  /** Requests with a status from 400 to 499; they are not errors. */
  refused: number;
  rate: number;
  p50_ns: number;
  p95_ns: number;
  p99_ns: number;
  /** Unix seconds, requests, errors, p95 in ns. */
  timeline: [number, number, number, number | null][];
}

export interface Operation {
  service: string;
  operation: string;
  kind: Kind;
  count: number;
  errors: number;
  /** Calls with a status from 400 to 499; they are not errors. */
  refused: number;
  p50_ns: number;
  p95_ns: number;
  p99_ns: number;
  min_ns: number;
  max_ns: number;
  total_ns: number;
  /** Null for an operation of kind http-client if the server used summaries of chunks instead of single calls. */
  self_ns: number | null;
  /** Unix seconds, count, errors. */
  timeline: [number, number, number][];
}

export interface TraceSummary {
  trace_id: string;
  service: string;
  operation: string;
  kind: Kind;
  /** Unix nanoseconds. */
  start: string;
  duration_ns: number;
  calls: number;
  outcome: 'ok' | 'failed' | 'running';
  request_id: string | null;
  http_status: number | null;
  /** The first call, in the requested order, that met the conditions. Null if the search has no service and no operation. */
  match: TraceMatch | null;
}

export interface TraceMatch {
  service: string;
  operation: string;
  kind: Kind;
  /** Unix nanoseconds. */
  start: string;
  duration_ns: number;
  outcome: 'ok' | 'failed' | 'running';
}

export interface TraceList {
  traces: TraceSummary[];
  truncated: boolean;
  scanned: number;
  /** The end of this page, if there may be another page. */
  next?: string;
}

export interface Span {
  id: string;
  parent: string | null;
  depth: number;
  service: string;
  host: string;
  thread: string;
  operation: string;
  kind: Kind;
  offset_ns: number;
  duration_ns: number;
  self_ns: number;
  outcome: 'ok' | 'failed' | 'running';
  attributes: Record<string, string | number | boolean>;
}

export interface Trace {
  trace_id: string;
  /** Unix nanoseconds. */
  start: string;
  duration_ns: number;
  spans: Span[];
}

export interface CallNode {
  operation: string;
  kind: Kind;
  service: string;
  count: number;
  errors: number;
  total_ns: number;
  self_ns: number;
  children: CallNode[];
}

export interface GraphNode {
  id: string;
  service: string;
  operation: string;
  kind: Kind;
  count: number;
  errors: number;
  total_ns: number;
  self_ns: number;
}

export interface GraphEdge {
  from: string;
  to: string;
  count: number;
  errors: number;
  total_ns: number;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** Calls whose caller was not found. They are in no edge. */
  unknown_callers: number;
}

export interface Status {
  version: string;
  /** Unix nanoseconds. */
  started: string;
  data_dir?: string;
  driver?: string;
  /** Port for agents; absent from responses of older servers. */
  records_port?: number;
  /** The server's access settings; absent from responses of older servers. */
  access?: { tokens: 'none' | 'used' | 'broken'; exposed: boolean; warnings: string[] };
  /** All members from here on, and `data_dir` and `driver`, describe the whole store. They are absent for a confined token. */
  series?: { sample: number; entry: number; execution: number };
  chunks?: number;
  chunk_bytes?: number;
  records?: { sample: number; entry: number; execution: number };
  open_bytes?: number;
  journal_bytes?: number;
}

export type Metric = Record<string, string>;
/** Unix seconds and the value as text, as in Prometheus responses. */
export type Point = [number, string];

export type QueryData =
  | { resultType: 'vector'; result: { metric: Metric; value: Point }[] }
  | { resultType: 'matrix'; result: { metric: Metric; values: Point[] }[] }
  | { resultType: 'scalar' | 'string'; result: Point };

export interface EntryList {
  series: Metric[];
  /** `time` is in Unix nanoseconds. `series` is an index into the list `series` of the response. A text is in `text`, a byte
   * string in `hex`. */
  entries: { time: string; series: number; text?: string; hex?: string }[];
  /** Number of all matching entries, including those not listed. */
  matched: number;
  histogram: { start: string; end: string; counts: number[] };
}

/** One version of a declared record type. */
export interface RecordForm {
  name: string;
  service: string;
  fields: { name: string; type: string; unit: string }[];
}

export type ProbeState = 'on' | 'off' | 'aggregate';

/** An agent's report on the rules. `on`, `aggregated` and `off` are numbers of methods. */
export interface ProbeReport {
  on: number;
  aggregated: number;
  off: number;
  rules: { id: number; matched: number; fault: string }[];
  /** Operations that the agent, by its own decision, aggregates or does not record. */
  moved: { operation: string; reason: string; since: string }[];
  /** True if `rules` and `moved` are omitted, because the report or the response would be too large. */
  cut: boolean;
}

/** Times are Unix nanoseconds. */
export interface Agent {
  session: string;
  service: string;
  host: string;
  instance: string;
  runtime: string;
  agent: string;
  since: string;
  heard: string;
  left: string | null;
  state: 'none' | 'waiting' | 'silent' | 'follows' | 'left';
  dropped: { executions: number; samples: number; entries: number };
  probes: ProbeReport | null;
}

export interface AgentList {
  agents: Agent[];
  total: number;
  connected: number;
}

export interface ProbeRule {
  id: number;
  /** Empty for all services. Likewise, `instance` is empty for all instances. */
  service: string;
  instance: string;
  state: ProbeState;
  pattern: string;
  since: string;
  kept: boolean;
  /** `told` counts the connected agents to which the rule was sent, `answered` those that have reported on it, and `faults` those
   * that cannot apply it. `matched` sums, over the agents that answered, the methods whose state
   * the rule decides. */
  agents: { told: number; answered: number; matched: number; faults: number };
}

/** A rule to add. */
export interface ProbeWish {
  state: ProbeState;
  pattern: string;
  service: string;
  instance: string;
  keep: boolean;
}

/** An error response of the server, or no response (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

export type Params = Record<string, string | number | null | undefined>;

async function get<T>(path: string, params: Params, signal: AbortSignal): Promise<T> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== '') query.set(name, String(value));
  }
  return ask<T>(`${path}?${query}`, { signal });
}

async function ask<T>(address: string, request: RequestInit): Promise<T> {
  // A change is not stopped half way.
  if (request.method !== undefined) return exchange<T>(address, request);
  const own = new AbortController();
  const stop = (): void => own.abort(new ApiError(0, 'canceled', 'you have stopped this request'));
  const { signal } = request;
  const leave = (): void => own.abort(signal?.reason);
  if (signal?.aborted === true) leave();
  signal?.addEventListener('abort', leave, { once: true });
  const id = begin(address, stop);
  try {
    return await exchange<T>(address, {
      ...request,
      signal: own.signal,
      headers: { 'x-tacho-query': id },
    });
  } finally {
    signal?.removeEventListener('abort', leave);
    end(id);
  }
}

async function exchange<T>(address: string, request: RequestInit): Promise<T> {
  let response: Response;
  const before = state.get();
  const headers = new Headers(request.headers);
  headers.set('accept', 'application/json');
  // A form of another page cannot send this header. So the header proves that this page sends the change.
  if (request.method !== undefined) headers.set('x-tacho', '1');
  try {
    response = await fetch(address, { ...request, headers });
  } catch (cause) {
    if (request.signal?.aborted === true) throw cause;
    throw new ApiError(0, 'unreachable', 'no response from the server; is `tacho serve` still running?');
  }
  const text = await response.text();
  if (response.status === 401) expire(before);
  if (!response.ok) throw errorOf(response.status, text);
  const answer = JSON.parse(text === '' ? '{}' : text) as T & Told;
  take(address, answer);
  return answer;
}

function errorOf(status: number, text: string): ApiError {
  try {
    const body = JSON.parse(text) as { errorType?: string; error?: string };
    return new ApiError(status, body.errorType ?? 'error', body.error ?? text);
  } catch {
    return new ApiError(status, 'error', text.trim() === '' ? `HTTP status ${status}` : text.trim().slice(0, 400));
  }
}

const between = (window: TimeWindow): Params => ({ start: window.start.toFixed(3), end: window.end.toFixed(3) });

export const api = {
  /** Whether the server needs tokens, and the name, roles and selector of the token behind this page's cookie. */
  session: (signal: AbortSignal) => get<{ data: Session }>('api/session', {}, signal).then((answer) => answer.data),
  /** Exchanges a token for a cookie, which scripts cannot read. */
  login: (token: string) =>
    ask<{ data: Session }>('api/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    }).then((answer) => answer.data),
  logout: () => ask<unknown>('api/session', { method: 'DELETE' }),
  status: (signal: AbortSignal) => get<Status>('api/status', {}, signal),
  services: (window: TimeWindow, signal: AbortSignal) =>
    get<{ services: Service[] }>('api/services', between(window), signal).then((answer) => answer.services),
  operations: (service: string | null, window: TimeWindow, signal: AbortSignal) =>
    get<{ operations: Operation[] }>('api/operations', { service, ...between(window) }, signal).then(
      (answer) => answer.operations,
    ),
  traces: (filter: Params, window: TimeWindow, signal: AbortSignal) =>
    get<TraceList>('api/traces', { ...filter, ...between(window) }, signal),
  trace: (id: string, signal: AbortSignal) => get<Trace>(`api/traces/${encodeURIComponent(id)}`, {}, signal),
  calltree: (service: string, operation: string | null, window: TimeWindow, signal: AbortSignal) =>
    get<{ root: CallNode }>('api/calltree', { service, operation, ...between(window) }, signal).then(
      (answer) => answer.root,
    ),
  graph: (filter: Params, window: TimeWindow, signal: AbortSignal) =>
    get<Graph>('api/graph', { ...filter, ...between(window) }, signal),
  query: (query: string, time: number, signal: AbortSignal) =>
    get<{ data: QueryData }>('api/v1/query', { query, time: time.toFixed(3) }, signal).then((answer) => answer.data),
  queryRange: (query: string, window: TimeWindow, step: number, signal: AbortSignal) =>
    get<{ data: QueryData }>('api/v1/query_range', { query, step, ...between(window) }, signal).then(
      (answer) => answer.data,
    ),
  entries: (
    match: string,
    contains: string,
    window: TimeWindow,
    bounds: { limit: number; parts: number },
    signal: AbortSignal,
  ) =>
    get<{ data: EntryList }>(
      'api/v1/entries',
      { 'match[]': match, contains, ...bounds, ...between(window) },
      signal,
    ).then((answer) => answer.data),
  records: (signal: AbortSignal) =>
    get<{ data: { types: RecordForm[] } }>('api/v1/records', {}, signal).then((answer) => answer.data.types),
  labelNames: (match: string | null, window: TimeWindow, signal: AbortSignal) =>
    get<{ data: string[] }>('api/v1/labels', { 'match[]': match, ...between(window) }, signal).then(
      (answer) => answer.data,
    ),
  labelValues: (name: string, match: string | null, window: TimeWindow, signal: AbortSignal) =>
    get<{ data: string[] }>(
      `api/v1/label/${encodeURIComponent(name)}/values`,
      { 'match[]': match, ...between(window) },
      signal,
    ).then((answer) => answer.data),
  agents: (signal: AbortSignal) =>
    get<{ data: AgentList }>('api/v1/agents', { limit: 4096 }, signal).then((answer) => answer.data),
  probes: (signal: AbortSignal) =>
    get<{ data: { rules: ProbeRule[] } }>('api/v1/probes', {}, signal).then((answer) => answer.data.rules),
  addProbe: (wish: ProbeWish) =>
    ask<unknown>('api/v1/probes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      // Omits an empty service or instance, because the server refuses empty values.
      body: JSON.stringify(wish, (_, value: unknown) => (value === '' ? undefined : value)),
    }),
  /** Removes all rules if `id` is null. */
  removeProbe: (id: number | null) =>
    ask<unknown>(`api/v1/probes?${id === null ? 'all=1' : `id=${id}`}`, { method: 'DELETE' }),
};

/** Address of the graph as Graphviz text. */
export function dotAddress(filter: Params, window: TimeWindow): string {
  const query = new URLSearchParams({ format: 'dot' });
  for (const [name, value] of Object.entries({ ...filter, ...between(window) })) {
    if (value !== null && value !== undefined && value !== '') query.set(name, String(value));
  }
  return `api/graph?${query}`;
}
