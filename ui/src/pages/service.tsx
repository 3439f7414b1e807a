// One service: load, latency and errors over time, and its operations.
import { CallTree } from '../components/call-tree';
import { Chart, type Line } from '../components/chart';
import { OperationsTable } from '../components/operations-table';
import { PageHead, Panel, Progress, Tiles } from '../components/page';
import { Empty, Failure, Loading, NoData } from '../components/states';
import { api, type Operation, type Service } from '../lib/api';
import { useResource } from '../lib/resource';
import { change, linkTo, usePlace } from '../lib/router';
import type { TimeWindow } from '../lib/time';
import { column, errorShares, gridOf, percentile, perSecond } from '../lib/timeline';
import { duration, grouped, number, percent, rate, share } from '../lib/units';
import type { WindowState } from '../lib/window';

export function ServicePage({ name, window: state }: { name: string; window: WindowState }) {
  const time = `${state.start}|${state.end}`;
  const services = useResource(`services|${time}`, (signal) => api.services(state, signal));
  const operations = useResource(`operations|${name}|${time}`, (signal) => api.operations(name, state, signal));
  const service = services.data?.find((one) => one.service === name);
  const tab = usePlace().params.get('tab') === 'tree' ? 'tree' : 'operations';
  const error = services.error ?? operations.error;
  return (
    <>
      <PageHead title={name} crumbs={<a href={linkTo(['services'])}>Overview</a>}>
        <a class="button" href={linkTo(['graph'], { service: name })}>
          Graph
        </a>
        <a class="button" href={linkTo(['traces'], { service: name })}>
          Traces
        </a>
      </PageHead>
      <Progress on={operations.loading && operations.data !== null} />
      {error !== null && <Failure error={error} />}
      {services.data === null && services.loading && <Loading what="Reading the service" />}
      {services.data !== null && service === undefined && <NoData />}
      {service !== undefined && <Summary service={service} window={state} />}
      {service !== undefined && (
        <Panel title={tab === 'tree' ? 'Call tree' : 'Operations'} aside={<Tabs tab={tab} />}>
          {tab === 'tree' ? (
            <CallTree service={name} window={state} />
          ) : (
            operations.data !== null && <Operations rows={operations.data} window={state} />
          )}
        </Panel>
      )}
    </>
  );
}

function Tabs({ tab }: { tab: 'operations' | 'tree' }) {
  const needle = usePlace().params.get('find') ?? '';
  return (
    <>
      {tab === 'operations' && (
        <input
          class="field find"
          type="search"
          data-search
          aria-label="Find an operation"
          placeholder="Find an operation"
          value={needle}
          onInput={(event) => change({ find: event.currentTarget.value })}
        />
      )}
      <div class="segments" role="group" aria-label="Show">
        <button type="button" aria-pressed={tab === 'operations'} onClick={() => change({ tab: null })}>
          Operations
        </button>
        <button type="button" aria-pressed={tab === 'tree'} onClick={() => change({ tab: 'tree' })}>
          Call tree
        </button>
      </div>
    </>
  );
}

function Summary({ service, window: range }: { service: Service; window: TimeWindow }) {
  const grid = gridOf([service.timeline], range);
  const line = (values: (number | null)[], token = '--s1', color = 'c1'): Line[] => [
    { label: service.service, token, color, values },
  ];
  const shared = { times: grid.times, window: range, sync: 'service', height: 150 };
  return (
    <>
      <Tiles
        tiles={[
          { name: 'Rate', value: rate(service.rate) },
          { name: 'Requests', value: number(service.requests), title: grouped(service.requests) },
          {
            name: 'Failed',
            value: percent(share(service.errors, service.requests) ?? 0),
            bad: service.errors > 0,
            title: `${grouped(service.errors)} of ${grouped(service.requests)}`,
          },
          { name: 'p50', value: duration(service.p50_ns) },
          { name: 'p95', value: duration(service.p95_ns) },
          { name: 'p99', value: duration(service.p99_ns) },
          { name: 'Calls', value: number(service.calls), title: grouped(service.calls) },
          {
            name: 'Hosts',
            value: service.hosts.length === 1 ? (service.hosts[0] ?? '') : String(service.hosts.length),
            title: service.hosts.join(', '),
          },
        ]}
      />
      <div class="panels">
        <Panel title="Requests per second">
          <Chart
            label="Requests per second"
            {...shared}
            lines={line(perSecond(column(service.timeline, grid, 1, 0), grid, range))}
            unit="rate"
          />
        </Panel>
        <Panel title="Failed requests">
          <Chart
            label="Share of failed requests"
            {...shared}
            lines={line(errorShares(service.timeline, grid), '--error', 'ce')}
            unit="percent"
          />
        </Panel>
        <Panel title="95th percentile of duration">
          <Chart
            label="95th percentile of duration"
            {...shared}
            lines={line(percentile(service.timeline, grid, 3, 1))}
            unit="duration"
          />
        </Panel>
      </div>
    </>
  );
}

function Operations({ rows, window: range }: { rows: Operation[]; window: TimeWindow }) {
  const needle = (usePlace().params.get('find') ?? '').toLowerCase();
  const found = rows.filter((one) => one.operation.toLowerCase().includes(needle));
  if (found.length > 0) return <OperationsTable rows={found} window={range} several={false} sort="total" />;
  return (
    <Empty title="No operation">
      <p>{needle === '' ? 'No call was recorded in this time range.' : `Nothing matches "${needle}".`}</p>
    </Empty>
  );
}
