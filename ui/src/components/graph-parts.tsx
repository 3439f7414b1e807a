// The parts of the drawing: nodes, edges, arrow heads.
import type { GraphEdge } from '../lib/api';
import {
  NODE_HEIGHT,
  NODE_WIDTH,
  pathOf,
  strokeOf,
  type Placed,
  type PlacedEdge,
  type PlacedNode,
  type Point,
} from '../graph/layout';
import { calls, number, percent, share } from '../lib/units';
import { shortName } from '../trace/icicle';

export function Arrows() {
  return (
    <defs>
      {['arrow', 'arrow-lit', 'arrow-bad'].map((id) => (
        <marker
          key={id}
          id={id}
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="8"
          markerHeight="8"
          markerUnits="userSpaceOnUse"
          orient="auto"
        >
          <path class={id} d="M0 0.5 8 4 0 7.5z" />
        </marker>
      ))}
    </defs>
  );
}

export function Edges({ placed, chosen }: { placed: Placed; chosen: string | null }) {
  const most = placed.edges.reduce((max, { edge }) => Math.max(max, edge.count), 0);
  const touches = (edge: GraphEdge): boolean => edge.from === chosen || edge.to === chosen;
  const [rest, lit] = [
    placed.edges.filter(({ edge }) => !touches(edge)),
    placed.edges.filter(({ edge }) => touches(edge)),
  ];
  return (
    <>
      {[...rest, ...lit].map((one) => (
        <EdgeLine
          key={`${one.edge.from} ${one.edge.to}`}
          placed={one}
          most={most}
          lit={touches(one.edge)}
          dim={chosen !== null && !touches(one.edge)}
        />
      ))}
    </>
  );
}

function EdgeLine({
  placed: { edge, points },
  most,
  lit,
  dim,
}: {
  placed: PlacedEdge;
  most: number;
  lit: boolean;
  dim: boolean;
}) {
  const failed = edge.errors > 0;
  const middle = middleOf(points);
  const arrow = lit ? 'arrow-lit' : failed ? 'arrow-bad' : 'arrow';
  return (
    <g class={`edge${lit ? ' lit' : ''}${dim ? ' dim' : ''}${failed ? ' failed' : ''}`}>
      <path d={pathOf(points)} stroke-width={strokeOf(edge.count, most).toFixed(2)} marker-end={`url(#${arrow})`} />
      <title>{`${calls(edge.count)}${failed ? `, ${number(edge.errors)} failed` : ''}`}</title>
      {lit && middle !== undefined && (
        <text x={middle.x} y={middle.y - 5} text-anchor="middle">
          {number(edge.count)}
        </text>
      )}
    </g>
  );
}

/** Position of the count: half way between the ends, or at the middle bend. */
function middleOf(points: readonly Point[]): Point | undefined {
  const [first, second] = points;
  if (points.length !== 2 || first === undefined || second === undefined) return points[Math.floor(points.length / 2)];
  return { x: (first.x + second.x) / 2, y: (first.y + second.y) / 2 };
}

const LETTERS_MAX = 33;
const cut = (text: string): string => (text.length > LETTERS_MAX ? `${text.slice(0, LETTERS_MAX - 1)}…` : text);

interface NodeProps {
  placed: PlacedNode;
  chosen: boolean;
  dim: boolean;
  /** Self time of all nodes, ns. */
  whole: number;
}

export function NodeBox({ placed: { node, x, y }, chosen, dim, whole }: NodeProps) {
  const part = share(node.self_ns, whole) ?? 0;
  const name = node.operation === '' ? node.service : shortName(node.operation);
  const failed = share(node.errors, node.count) ?? 0;
  return (
    <g
      class={`node${chosen ? ' chosen' : ''}${dim ? ' dim' : ''}`}
      data-node={node.id}
      transform={`translate(${x - NODE_WIDTH / 2} ${y - NODE_HEIGHT / 2})`}
    >
      <title>{`${node.service} ${node.operation}`}</title>
      <rect class="box" width={NODE_WIDTH} height={NODE_HEIGHT} rx="5" />
      <rect class={`strip ${node.kind}`} width="5" height={NODE_HEIGHT} rx="2" />
      <text class="name" x="14" y="20">
        {cut(name)}
      </text>
      <text class="facts" x="14" y="37">
        {calls(node.count)}
        {failed > 0 && <tspan class="bad">{`   ${percent(failed)} failed`}</tspan>}
      </text>
      <text class="facts" x={NODE_WIDTH - 10} y="37" text-anchor="end">{`${percent(part)} self`}</text>
      <rect class="track" x="14" y={NODE_HEIGHT - 11} width={NODE_WIDTH - 24} height="4" rx="2" />
      <rect class="self" x="14" y={NODE_HEIGHT - 11} width={((NODE_WIDTH - 24) * part).toFixed(1)} height="4" rx="2" />
    </g>
  );
}
