// Agents: connected agents, the state of their probes, and the rules.
import { agentVariables } from '../agents/address';
import { nameOf, stateOf } from '../agents/words';
import { PageHead, Panel } from '../components/page';
import { ProbeRules } from '../components/probe-rules';
import { Command, Empty, Failure, Loading } from '../components/states';
import { Table, type Column } from '../components/table';
import { api, type Agent, type AgentList } from '../lib/api';
import { useResource } from '../lib/resource';
import { change, linkTo, usePlace } from '../lib/router';
import { useTick } from '../lib/tick';
import { fromNanos } from '../lib/time';
import { duration, grouped, NONE } from '../lib/units';
import type { WindowState } from '../lib/window';

/** Interval between requests. The page shows the current state, independent of the time range. */
const REFRESH_MS = 1_000;

export function AgentsPage({ window: state }: { window: WindowState }) {
  const { tick, next, busy } = useTick(REFRESH_MS);
  const key = `${tick}|${state.end}`;
  const agents = useResource(`agents|${key}`, (signal) => api.agents(signal));
  const rules = useResource(`probes|${key}`, (signal) => api.probes(signal));
  // Waits for a slow response instead of repeating the request.
  busy.current = agents.loading || rules.loading;
  const needle = usePlace().params.get('find') ?? '';
  const error = agents.error ?? rules.error;
  const now = Date.now() / 1000;
  const list = agents.data;
  return (
    <>
      <PageHead title="Agents">
        <input
          class="field find"
          type="search"
          data-search
          aria-label="Find an agent"
          placeholder="Find an agent"
          value={needle}
          onInput={(event) => change({ find: event.currentTarget.value })}
        />
      </PageHead>
      {error !== null && <Failure error={error} />}
      {list === null && agents.loading && <Loading what="Reading agents" />}
      {list !== null && (list.total === 0 ? <NoAgents /> : <Agents list={list} needle={needle} now={now} />)}
      {rules.data !== null && <ProbeRules rules={rules.data} agents={list?.agents ?? []} now={now} onChange={next} />}
      {list !== null && <Faults agents={list.agents} />}
      {list !== null && <Moved agents={list.agents} now={now} />}
    </>
  );
}

function NoAgents() {
  const status = useResource('status', api.status).data;
  const variables = agentVariables(window.location.hostname, status);
  return (
    <Panel title="Agents">
      <Empty title="No agent is connected">
        <p>No agent was connected within the last hour. To record a Java program, start it with the agent:</p>
        <Command text={`${variables} java -javaagent:tachograph-agent.jar -jar app.jar`} />
      </Empty>
    </Panel>
  );
}

function Agents({ list, needle, now }: { list: AgentList; needle: string; now: number }) {
  const shown = list.agents.filter((agent) => nameOf(agent).toLowerCase().includes(needle.toLowerCase()));
  const left = grouped(list.total - list.connected);
  return (
    <Panel
      title="Agents"
      aside={
        <span class="faint">{`${grouped(list.connected)} connected, ${left} disconnected within the last hour`}</span>
      }
    >
      {shown.length === 0 ? (
        <Empty title="No matching agent">
          <p>{`No name contains "${needle}".`}</p>
        </Empty>
      ) : (
        <Table label="Agents" columns={columns(now)} rows={shown} rowKey={(agent) => agent.session} sort="service" />
      )}
    </Panel>
  );
}

function columns(now: number): Column<Agent>[] {
  const age = (agent: Agent): number => Math.max(now - fromNanos(agent.since), 0) * 1e9;
  return [
    {
      id: 'service',
      title: 'Service',
      value: (agent) => agent.service,
      cell: (agent) => (
        <a class="name" href={linkTo(['services', agent.service])}>
          {agent.service}
        </a>
      ),
    },
    { id: 'host', title: 'Host', value: (agent) => agent.host, cell: (agent) => agent.host },
    { id: 'instance', title: 'Instance', value: (agent) => agent.instance, cell: (agent) => agent.instance },
    {
      id: 'runtime',
      title: 'Runtime',
      value: (agent) => agent.runtime,
      cell: (agent) => (
        <span class="muted" title={agent.agent}>
          {agent.runtime}
        </span>
      ),
    },
    { id: 'state', title: 'State', value: (agent) => agent.state, cell: (agent) => <State agent={agent} /> },
    { id: 'since', title: 'Connected', numeric: true, value: age, cell: (agent) => duration(age(agent)) },
    ...counts(),
  ];
}

function counts(): Column<Agent>[] {
  const count = (id: 'on' | 'aggregated' | 'off', title: string, hint: string): Column<Agent> => ({
    id,
    title,
    hint,
    numeric: true,
    value: (agent) => agent.probes?.[id] ?? null,
    cell: (agent) => (agent.probes === null ? NONE : grouped(agent.probes[id])),
  });
  const dropped = ({ dropped: lost }: Agent): number => lost.executions + lost.samples + lost.entries;
  return [
    count('on', 'On', 'Methods whose calls are recorded'),
    count('aggregated', 'Aggregated', 'Methods whose calls are counted (count, sum, histogram) instead of recorded'),
    count('off', 'Off', 'Methods switched off by a rule or by the agent itself'),
    {
      id: 'dropped',
      title: 'Dropped',
      hint: 'Records lost in the agent, usually because a buffer was full',
      numeric: true,
      value: dropped,
      cell: (agent) => <span class={dropped(agent) > 0 ? 'bad' : 'zero'}>{grouped(dropped(agent))}</span>,
    },
  ];
}

function State({ agent }: { agent: Agent }) {
  const { text, sign } = stateOf(agent);
  return <span class={`outcome ${sign}`}>{text}</span>;
}

function Faults({ agents }: { agents: readonly Agent[] }) {
  const faults = agents
    .filter((agent) => agent.state !== 'left')
    .flatMap((agent) => (agent.probes?.rules ?? []).map((rule) => ({ ...rule, agent })))
    .filter((rule) => rule.fault !== '');
  if (faults.length === 0) return null;
  return (
    <Panel title="Failed rules">
      <ul class="panel-body">
        {faults.map(({ id, agent, fault }) => (
          <li key={`${id} ${agent.session}`}>{`Rule ${id} in ${nameOf(agent)}: ${fault}`}</li>
        ))}
      </ul>
    </Panel>
  );
}

interface MovedRow {
  agent: Agent;
  operation: string;
  reason: string;
  since: string;
}

/** Operations that agents, by their own decision and not by a rule, aggregate or do not record. */
function Moved({ agents, now }: { agents: readonly Agent[]; now: number }) {
  const rows: MovedRow[] = agents.flatMap((agent) => (agent.probes?.moved ?? []).map((moved) => ({ ...moved, agent })));
  if (rows.length === 0) return null;
  const age = (row: MovedRow): number => Math.max(now - fromNanos(row.since), 0) * 1e9;
  const columns: Column<MovedRow>[] = [
    { id: 'agent', title: 'Agent', value: (row) => nameOf(row.agent), cell: (row) => nameOf(row.agent) },
    { id: 'operation', title: 'Operation', wide: true, value: (row) => row.operation, cell: (row) => row.operation },
    { id: 'reason', title: 'Reason', cell: (row) => row.reason },
    { id: 'since', title: 'Since', numeric: true, value: age, cell: (row) => duration(age(row)) },
  ];
  return (
    <Panel title="Aggregated or unrecorded by the agents' own decision">
      <Table
        label="Operations aggregated or not recorded by the agents' own decision"
        columns={columns}
        rows={rows}
        rowKey={(row) => `${row.agent.session} ${row.operation}`}
        sort="since"
        param="moved"
      />
    </Panel>
  );
}
