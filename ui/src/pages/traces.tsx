// Traces: search by service, operation, duration, outcome, request id, or conditions on calls; page by page.
import { PageHead, Panel, Progress } from '../components/page';
import { Scatter, type Selection } from '../components/scatter';
import { Empty, Failure, Loading, NoData } from '../components/states';
import { Table, type Column } from '../components/table';
import { TraceSearch } from '../components/trace-search';
import { api, type TraceList, type TraceSummary } from '../lib/api';
import { useResource } from '../lib/resource';
import { change, goTo, linkTo, usePlace } from '../lib/router';
import { fromNanos, moment } from '../lib/time';
import { duration, grouped, NONE } from '../lib/units';
import type { WindowState } from '../lib/window';
import { cursorOf, filterOf, inWords, orderOf, pageOf, shownOf, type Shown } from '../trace/filter';

export function TracesPage({ window: state }: { window: WindowState }) {
  const { params } = usePlace();
  const { filter, problem } = filterOf(params);
  const order = orderOf(params.get('sort'));
  const key = problem === null ? JSON.stringify([filter, state.start, state.end]) : null;
  const found = useResource(key, (signal) => api.traces(filter, state, signal));
  const services = useResource(`services|${state.start}|${state.end}`, (signal) => api.services(state, signal));
  const list = found.data;
  return (
    <>
      <PageHead title="Traces" />
      <Progress on={found.loading && list !== null} />
      <Panel>
        <TraceSearch services={services.data ?? []} window={state} />
      </Panel>
      {problem !== null && (
        <p class="notice" role="alert">
          {problem}
        </p>
      )}
      {found.error !== null && <Failure error={found.error} />}
      {list === null && found.loading && <Loading what="Searching traces" />}
      {list !== null &&
        list.traces.length === 0 &&
        (services.data?.length === 0 ? <NoData /> : <Nothing scanned={list.scanned} />)}
      {list !== null && list.traces.length === 0 && <Pages next={list.next} order={order} />}
      {list !== null && list.traces.length > 0 && <Results list={list} order={order} window={state} />}
    </>
  );
}

function Nothing({ scanned }: { scanned: number }) {
  return (
    <Panel>
      <Empty title="No trace matches">
        <p>
          {grouped(scanned)} segments were searched. Widen the time range at the top right, or remove a search
          condition.
        </p>
        <a class="button" href={linkTo(['traces'])}>
          Clear the search
        </a>
      </Empty>
    </Panel>
  );
}

interface ResultsProps {
  list: TraceList;
  order: string;
  window: WindowState;
}

function Results({ list, order, window: state }: ResultsProps) {
  const traces = list.traces.map(shownOf);
  const failed = traces.filter((trace) => trace.outcome === 'failed').length;
  const columns = traces.some((trace) => trace.match !== null) ? [...COLUMNS, WHOLE] : COLUMNS;
  const open = (trace: TraceSummary): void => goTo(linkTo(['traces', trace.trace_id]));
  return (
    <>
      <Panel title="Durations" aside={<ScatterKey failed={failed} ok={traces.length - failed} />}>
        <Scatter traces={traces} window={state} part={list.truncated} onOpen={open} onSelect={narrow} />
      </Panel>
      <Panel title="Results" aside={<Counts list={list} order={order} />}>
        <Table
          label="Traces"
          columns={columns}
          rows={traces}
          rowKey={(trace) => trace.trace_id}
          rowLink={(trace) => linkTo(['traces', trace.trace_id])}
          sort="start"
        />
        <Pages next={list.next} order={order} />
      </Panel>
    </>
  );
}

function Pages({ next, order }: { next: string | undefined; order: string }) {
  const { params } = usePlace();
  const isFirst = cursorOf(params.get('after'), order) === null;
  if (next === undefined && isFirst) return null;
  const go = (after: string | null): void => change({ after }, 'keep');
  return (
    <div class="pages">
      {!isFirst && (
        <button type="button" class="button" onClick={() => go(null)}>
          First page
        </button>
      )}
      {next !== undefined && (
        <button type="button" class="button" onClick={() => go(pageOf(next, order))}>
          Next page
        </button>
      )}
    </div>
  );
}

function narrow({ start, end, shortest, longest }: Selection): void {
  change(
    {
      range: null,
      from: start.toFixed(3),
      to: end.toFixed(3),
      after: null,
      min: inWords(shortest),
      max: inWords(longest),
    },
    'keep',
  );
}

function ScatterKey({ ok, failed }: { ok: number; failed: number }) {
  return (
    <>
      <span class="outcome">{grouped(ok)} ok</span>
      <span class="outcome failed">{grouped(failed)} failed</span>
    </>
  );
}

function Counts({ list, order }: { list: TraceList; order: string }) {
  return (
    <span class="faint">
      {list.truncated ? `the ${order} ${grouped(list.traces.length)}, more match` : grouped(list.traces.length)}
      {` · ${grouped(list.scanned)} segments scanned`}
    </span>
  );
}

const COLUMNS: Column<Shown>[] = [
  {
    id: 'start',
    title: 'Start',
    numeric: true,
    left: true,
    value: (one) => fromNanos(one.start),
    cell: (one) => <span class="muted">{moment(fromNanos(one.start), true)}</span>,
  },
  {
    id: 'operation',
    title: 'Operation',
    wide: true,
    value: (one) => one.operation,
    cell: (one) => (
      <a class="name" href={linkTo(['traces', one.trace_id])} title={one.operation}>
        {one.operation}
      </a>
    ),
  },
  {
    id: 'service',
    title: 'Service',
    value: (one) => one.service,
    cell: (one) => <span class="muted">{one.service}</span>,
  },
  {
    id: 'duration',
    title: 'Duration',
    numeric: true,
    value: (one) => one.duration_ns,
    cell: (one) => duration(one.duration_ns),
  },
  { id: 'calls', title: 'Calls', numeric: true, value: (one) => one.calls, cell: (one) => grouped(one.calls) },
  {
    id: 'outcome',
    title: 'Outcome',
    value: (one) => one.outcome,
    cell: (one) => <span class={`outcome ${one.outcome}`}>{one.outcome}</span>,
  },
  {
    id: 'status',
    title: 'Status',
    numeric: true,
    value: (one) => one.http_status,
    cell: (one) => one.http_status ?? NONE,
  },
  {
    id: 'request',
    title: 'Request id',
    value: (one) => one.request_id,
    cell: (one) => <span class="mono muted">{one.request_id ?? NONE}</span>,
  },
];

const WHOLE: Column<Shown> = {
  id: 'whole',
  title: 'Trace',
  hint: 'Duration of the whole trace',
  numeric: true,
  value: (one) => one.trace_ns,
  cell: (one) => duration(one.trace_ns),
};
