// Graph: operations or services with their self times, and the counts of the calls between them.
import { useMemo } from 'preact/hooks';
import { GraphView } from '../components/graph-view';
import { NodeDetails } from '../components/node-details';
import { PageHead, Panel, Progress } from '../components/page';
import { Failure, Loading, NoData } from '../components/states';
import { busiest, matches, place } from '../graph/layout';
import { api, dotAddress, type Graph, type Params } from '../lib/api';
import { useResource } from '../lib/resource';
import { change, usePlace } from '../lib/router';
import { calls } from '../lib/units';
import type { WindowState } from '../lib/window';

/** Selectable numbers of nodes; larger drawings are unreadable. */
const COUNTS = ['20', '40', '80', '300'] as const;
const COUNT_DEFAULT = '40';

export function GraphPage({ window: state }: { window: WindowState }) {
  const { params } = usePlace();
  const level = params.get('level') === 'service' ? 'service' : 'operation';
  const filter: Params = { level, service: params.get('service') };
  const graph = useResource(`graph|${JSON.stringify(filter)}|${state.start}|${state.end}`, (signal) =>
    api.graph(filter, state, signal),
  );
  return (
    <>
      <PageHead title="Graph">
        <Controls filter={filter} level={level} window={state} graph={graph.data} />
      </PageHead>
      <Progress on={graph.loading && graph.data !== null} />
      {graph.error !== null && <Failure error={graph.error} />}
      {graph.data === null && graph.loading && <Loading what="Reading the graph" />}
      {graph.data !== null && graph.data.nodes.length === 0 && <NoData />}
      {graph.data !== null && graph.data.nodes.length > 0 && <Drawn graph={graph.data} />}
    </>
  );
}

function Drawn({ graph }: { graph: Graph }) {
  const { params } = usePlace();
  const [chosen, needle] = [params.get('node'), params.get('find') ?? ''];
  const count = Number(params.get('top') ?? COUNT_DEFAULT) || Number(COUNT_DEFAULT);
  const shown = useMemo(() => busiest(graph, count, chosen), [graph, count, chosen]);
  const drawn = shown.nodes.map((node) => node.id).join('\n');
  // Selecting a node must not move the drawing if the node and its neighbours are already drawn.
  const placed = useMemo(() => place(shown), [graph, drawn]);
  const found = useMemo(() => foundIn(graph, needle), [graph, needle]);
  const whole = graph.nodes.reduce((sum, node) => sum + node.self_ns, 0);
  const choose = (id: string | null): void => change({ node: id });
  return (
    <div class="graph-parts">
      <Panel class="graph-panel">
        <GraphView placed={placed} chosen={chosen} onChoose={choose} whole={whole} found={found} />
        {shown !== graph && (
          <p class="graph-note">
            {shown.nodes.length} of {graph.nodes.length} nodes are drawn: those with the largest total time, and the
            selected node with its neighbours. The search finds all nodes.
          </p>
        )}
        {graph.unknown_callers > 0 && (
          <p class="graph-note">
            No arrow shows the callers of {calls(graph.unknown_callers)}, because they were not found.
          </p>
        )}
      </Panel>
      <Panel title="Details">
        <NodeDetails graph={graph} id={chosen} onChoose={choose} />
      </Panel>
    </div>
  );
}

const foundIn = (graph: Graph, needle: string): ReadonlySet<string> | null =>
  needle === '' ? null : new Set(graph.nodes.filter((node) => matches(node, needle)).map((node) => node.id));

interface ControlsProps {
  filter: Params;
  level: 'operation' | 'service';
  window: WindowState;
  graph: Graph | null;
}

function Controls({ filter, level, window: state, graph }: ControlsProps) {
  const { params } = usePlace();
  const services = useResource(`services|${state.start}|${state.end}`, (signal) => api.services(state, signal));
  const needle = params.get('find') ?? '';
  /** Enter selects the next match. */
  const next = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter') return;
    const ids = (graph?.nodes ?? []).filter((node) => matches(node, needle)).map((node) => node.id);
    const after = ids[(ids.indexOf(params.get('node') ?? '') + 1) % Math.max(ids.length, 1)];
    if (after !== undefined) change({ node: after });
  };
  return (
    <>
      <input
        class="field find"
        type="search"
        data-search
        aria-label="Find a node"
        placeholder="Find a node (Enter goes to it)"
        value={needle}
        onInput={(event) => change({ find: event.currentTarget.value })}
        onKeyDown={next}
      />
      <select
        class="field service-choice"
        aria-label="Service"
        value={params.get('service') ?? ''}
        onChange={(event) => change({ service: event.currentTarget.value, node: null }, 'keep')}
      >
        <option value="">All services</option>
        {(services.data ?? []).map(({ service }) => (
          <option key={service} value={service}>
            {service}
          </option>
        ))}
      </select>
      <select
        class="field service-choice"
        aria-label="Nodes drawn"
        value={params.get('top') ?? COUNT_DEFAULT}
        onChange={(event) => change({ top: event.currentTarget.value })}
      >
        {COUNTS.map((count) => (
          <option key={count} value={count}>{`Top ${count}`}</option>
        ))}
      </select>
      <div class="segments" role="group" aria-label="Nodes are">
        <button
          type="button"
          aria-pressed={level === 'operation'}
          onClick={() => change({ level: null, node: null }, 'keep')}
        >
          Operations
        </button>
        <button
          type="button"
          aria-pressed={level === 'service'}
          onClick={() => change({ level: 'service', node: null }, 'keep')}
        >
          Services
        </button>
      </div>
      <a class="button" href={dotAddress(filter, state)} download="tachograph.dot">
        Download DOT
      </a>
    </>
  );
}
