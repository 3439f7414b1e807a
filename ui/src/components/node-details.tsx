// One node of the graph: its figures, callers and callees.
import type { Graph, GraphEdge, GraphNode } from '../lib/api';
import { linkTo } from '../lib/router';
import { duration, grouped, percent, share } from '../lib/units';
import { shortName } from '../trace/icicle';
import { KindBadge } from './page';

interface Props {
  graph: Graph;
  id: string | null;
  onChoose: (id: string) => void;
}

export function NodeDetails({ graph, id, onChoose }: Props) {
  const node = graph.nodes.find((one) => one.id === id);
  if (node === undefined) {
    return (
      <div class="panel-body details muted">
        <p>Select a node to see its figures, callers and callees.</p>
        <p>Line width shows the number of calls; the bar in a node shows its share of all self time.</p>
      </div>
    );
  }
  const whole = graph.nodes.reduce((sum, one) => sum + one.self_ns, 0);
  const whose =
    node.operation === '' ? { service: node.service } : { service: node.service, operation: node.operation };
  return (
    <div class="panel-body details">
      <h3 class="operation">{node.operation === '' ? node.service : node.operation}</h3>
      {node.operation !== '' && (
        <div class="row">
          <KindBadge kind={node.kind} />
          <a href={linkTo(['services', node.service])}>{node.service}</a>
        </div>
      )}
      <dl class="facts">
        <dt>Calls</dt>
        <dd>{grouped(node.count)}</dd>
        <dt>Failed</dt>
        <dd class={node.errors > 0 ? 'bad' : undefined}>
          {grouped(node.errors)} ({percent(share(node.errors, node.count) ?? 0)})
        </dd>
        <dt>Total</dt>
        <dd>{duration(node.total_ns)}</dd>
        <dt>Self</dt>
        <dd>
          {duration(node.self_ns)} ({percent(share(node.self_ns, whole) ?? 0)} of all)
        </dd>
        <dt>Mean</dt>
        <dd>{duration(share(node.total_ns, node.count))}</dd>
      </dl>
      <Neighbours
        title="Called by"
        graph={graph}
        edges={graph.edges.filter((edge) => edge.to === id)}
        end="from"
        onChoose={onChoose}
      />
      <Neighbours
        title="Calls"
        graph={graph}
        edges={graph.edges.filter((edge) => edge.from === id)}
        end="to"
        onChoose={onChoose}
      />
      <a class="button" href={linkTo(['traces'], whose)}>
        {node.operation === '' ? 'Traces of this service' : 'Traces with this operation'}
      </a>
    </div>
  );
}

interface NeighboursProps {
  title: string;
  graph: Graph;
  edges: GraphEdge[];
  end: 'from' | 'to';
  onChoose: (id: string) => void;
}

function Neighbours({ title, graph, edges, end, onChoose }: NeighboursProps) {
  const byId = new Map<string, GraphNode>(graph.nodes.map((node) => [node.id, node]));
  return (
    <section>
      <h3>{title}</h3>
      {edges.length === 0 && <p class="faint">Nothing recorded.</p>}
      <ul class="neighbours">
        {[...edges]
          .sort((a, b) => b.count - a.count)
          .map((edge) => {
            const other = byId.get(edge[end]);
            return other === undefined ? null : (
              <li key={other.id}>
                <button type="button" class="button plain" title={other.operation} onClick={() => onChoose(other.id)}>
                  <span class="grow">{other.operation === '' ? other.service : shortName(other.operation)}</span>
                  <span class="faint">{grouped(edge.count)}</span>
                </button>
              </li>
            );
          })}
      </ul>
    </section>
  );
}
