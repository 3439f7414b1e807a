// Overview: the services with their load, latency and errors.
import { Chart, type Line } from '../components/chart';
import { Legend, type Hidden } from '../components/legend';
import { OperationsTable } from '../components/operations-table';
import { Errors, PageHead, Panel, Progress } from '../components/page';
import { Spark } from '../components/spark';
import { Empty, Failure, Loading, NoData } from '../components/states';
import { Table, type Column } from '../components/table';
import { useState } from 'preact/hooks';
import { api, type Service } from '../lib/api';
import { colorClass, colorToken } from '../lib/palette';
import { useResource } from '../lib/resource';
import { change, linkTo, usePlace } from '../lib/router';
import type { TimeWindow } from '../lib/time';
import { column, errorShares, gridOf, percentile, perSecond, type Grid } from '../lib/timeline';
import { duration, grouped, rate, share } from '../lib/units';
import type { WindowState } from '../lib/window';

/** Largest number of lines in a chart. The services with the most requests have lines. */
const LINES_MAX = 8;
/** Largest number of operations under "Where the time goes". */
const HOT = 10;

export function Overview({ window: state }: { window: WindowState }) {
  const services = useResource(`services|${state.start}|${state.end}`, (signal) => api.services(state, signal));
  const needle = usePlace().params.get('find') ?? '';
  const all = services.data ?? [];
  const shown = all.filter((one) => one.service.toLowerCase().includes(needle.toLowerCase()));
  return (
    <>
      <PageHead title="Overview">
        <input
          class="field find"
          type="search"
          data-search
          aria-label="Find a service"
          placeholder="Find a service"
          value={needle}
          onInput={(event) => change({ find: event.currentTarget.value })}
        />
      </PageHead>
      <Progress on={services.loading && services.data !== null} />
      {services.error !== null && <Failure error={services.error} />}
      {services.data === null && services.loading && <Loading what="Reading services" />}
      {services.data !== null && all.length === 0 && <NoData />}
      {all.length > 0 && <Charts services={shown.length > 0 ? shown : all} window={state} />}
      {all.length > 0 && <Services services={shown} window={state} needle={needle} />}
      {all.length > 0 && <HotOperations window={state} needle={needle} />}
    </>
  );
}

function Charts({ services, window: range }: { services: Service[]; window: TimeWindow }) {
  const [hidden, setHidden] = useState<Hidden>(new Set());
  const busiest = [...services].sort((a, b) => b.requests - a.requests).slice(0, LINES_MAX);
  const grid = gridOf(
    busiest.map((one) => one.timeline),
    range,
  );
  const lines = (values: (one: Service) => (number | null)[]): Line[] =>
    busiest.map((one, index) => ({
      label: one.service,
      token: colorToken(index),
      color: colorClass(index),
      values: values(one),
      hidden: hidden.has(one.service),
    }));
  const shared = { times: grid.times, window: range, sync: 'overview', height: 168 };
  const rates = lines((one) => perSecond(column(one.timeline, grid, 1, 0), grid, range));
  return (
    <>
      <div class="panels">
        <Panel title="Requests per second">
          <Chart label="Requests per second of each service" {...shared} lines={rates} unit="rate" />
        </Panel>
        <Panel title="Failed requests">
          <Chart
            label="Share of failed requests of each service"
            {...shared}
            lines={lines((one) => errorShares(one.timeline, grid))}
            unit="percent"
          />
        </Panel>
        <Panel title="95th percentile of duration">
          <Chart
            label="95th percentile of duration of each service"
            {...shared}
            lines={lines((one) => percentile(one.timeline, grid, 3, 1))}
            unit="duration"
          />
        </Panel>
      </div>
      {busiest.length > 1 && <Legend lines={rates} hidden={hidden} onChange={setHidden} />}
    </>
  );
}

function Services({ services, window: range, needle }: { services: Service[]; window: TimeWindow; needle: string }) {
  const grid = gridOf(
    services.map((one) => one.timeline),
    range,
  );
  return (
    <Panel title="Services" aside={<span class="faint">{services.length}</span>}>
      {services.length === 0 ? (
        <Empty title="No matching service">
          <p>{`No name contains "${needle}".`}</p>
        </Empty>
      ) : (
        <Table
          label="Services"
          columns={columns(grid)}
          rows={services}
          rowKey={(one) => one.service}
          rowLink={(one) => linkTo(['services', one.service])}
          sort="requests"
        />
      )}
    </Panel>
  );
}

function columns(grid: Grid): Column<Service>[] {
  return [
    {
      id: 'service',
      title: 'Service',
      value: (one) => one.service,
      cell: (one) => (
        <a class="name" href={linkTo(['services', one.service])}>
          {one.service}
        </a>
      ),
    },
    {
      id: 'hosts',
      title: 'Hosts',
      cell: (one) => (
        <span class="muted" title={one.hosts.join(', ')}>
          {hostsText(one.hosts)}
        </span>
      ),
    },
    {
      id: 'trend',
      title: 'Trend',
      cell: (one) => (
        <Spark
          values={column(one.timeline, grid, 1, 0)}
          errors={column(one.timeline, grid, 2, 0)}
          label={`Requests of ${one.service} over time`}
        />
      ),
    },
    { id: 'rate', title: 'Rate', numeric: true, value: (one) => one.rate, cell: (one) => rate(one.rate) },
    {
      id: 'requests',
      title: 'Requests',
      numeric: true,
      value: (one) => one.requests,
      cell: (one) => grouped(one.requests),
    },
    {
      id: 'calls',
      title: 'Calls',
      hint: 'All recorded calls, methods and statements included',
      numeric: true,
      value: (one) => one.calls,
      cell: (one) => grouped(one.calls),
    },
    {
      id: 'errors',
      title: 'Failed',
      numeric: true,
      value: (one) => share(one.errors, one.requests),
      cell: (one) => <Errors count={one.errors} of={one.requests} />,
    },
    { id: 'p50', title: 'p50', numeric: true, value: (one) => one.p50_ns, cell: (one) => duration(one.p50_ns) },
    { id: 'p95', title: 'p95', numeric: true, value: (one) => one.p95_ns, cell: (one) => duration(one.p95_ns) },
    { id: 'p99', title: 'p99', numeric: true, value: (one) => one.p99_ns, cell: (one) => duration(one.p99_ns) },
  ];
}

function hostsText(hosts: string[]): string {
  return hosts.length > 2 ? `${hosts.slice(0, 2).join(', ')} and ${hosts.length - 2} more` : hosts.join(', ');
}

/** The operations with most self time, over all services that match the search. */
function HotOperations({ window: state, needle }: { window: WindowState; needle: string }) {
  const operations = useResource(`operations||${state.start}|${state.end}`, (signal) =>
    api.operations(null, state, signal),
  );
  const rows = (operations.data ?? [])
    .filter((one) => one.service.toLowerCase().includes(needle.toLowerCase()))
    .sort((a, b) => (b.self_ns ?? 0) - (a.self_ns ?? 0))
    .slice(0, HOT);
  if (operations.error !== null) return <Failure error={operations.error} />;
  if (rows.length === 0) return null;
  return (
    <Panel title="Where the time goes" aside={<span class="faint">{rows.length} operations with most self time</span>}>
      <OperationsTable rows={rows} window={state} several sort="self" param="by" />
    </Panel>
  );
}
