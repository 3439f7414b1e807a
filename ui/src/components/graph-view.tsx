// The graph as a drawing to move about in: wheel or + and - zoom, dragging moves, arrows go from node to node.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { GraphEdge } from '../lib/api';
import { number, percent, share } from '../lib/units';
import {
  centred, fit, NODE_HEIGHT, NODE_WIDTH, nodeTowards, pathOf, strokeOf, zoomAt,
  type Camera, type Direction, type Placed, type PlacedEdge, type PlacedNode, type Point,
} from '../graph/layout';
import { shortName } from '../trace/icicle';
import { Fit, Minus, Plus } from './icons';

interface Props {
  placed: Placed;
  chosen: string | null;
  onChoose: (id: string | null) => void;
  /** Nodes that a search found; null when nothing is searched. */
  found: ReadonlySet<string> | null;
}

const ARROWS: Record<string, Direction> = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' };

export function GraphView({ placed, chosen, onChoose, found }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const size = useSize(svg);
  const [camera, setCamera] = useState<Camera>({ k: 1, x: 0, y: 0 });
  const showAll = (): void => setCamera(fit(placed, size.width, size.height));
  useEffect(showAll, [placed, size.width, size.height]);
  const node = placed.nodes.find((one) => one.node.id === chosen);
  useEffect(() => {
    if (node !== undefined && !inSight(node, camera, size)) setCamera(centred(camera, node, size.width, size.height));
  }, [node]);
  const middle = { x: size.width / 2, y: size.height / 2 };
  const zoom = (factor: number): void => setCamera(zoomAt(camera, factor, middle));
  useWheel(svg, camera, setCamera);
  const press = (event: KeyboardEvent): void => {
    const direction = ARROWS[event.key];
    if (direction !== undefined && event.shiftKey) setCamera(moved(camera, direction));
    else if (direction !== undefined) onChoose((node === undefined ? placed.nodes[0] : nodeTowards(placed.nodes, node, direction))?.node.id ?? null);
    else if (event.key === '+' || event.key === '=') zoom(1.4);
    else if (event.key === '-') zoom(1 / 1.4);
    else if (event.key === '0') showAll();
    else if (event.key === 'Escape') onChoose(null);
    else return;
    event.preventDefault();
  };
  return (
    <div class="graph-view">
      <svg ref={svg} tabindex={0} role="application" onKeyDown={press} {...useDrag(camera, setCamera, onChoose)}
        aria-label="Dependency graph. Arrow keys go from node to node, with Shift they move the drawing; plus and minus zoom, 0 shows all.">
        <Arrows />
        <g transform={`translate(${camera.x.toFixed(2)} ${camera.y.toFixed(2)}) scale(${camera.k.toFixed(4)})`}>
          <Edges placed={placed} chosen={chosen} />
          {placed.nodes.map((one) => (
            <NodeBox key={one.node.id} placed={one} chosen={one.node.id === chosen} dim={found !== null && !found.has(one.node.id)}
              whole={placed.nodes.reduce((sum, { node: other }) => sum + other.self_ns, 0)} />
          ))}
        </g>
      </svg>
      <div class="corner" role="group" aria-label="Zoom">
        <button type="button" class="button icon" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoom(1.4)}><Plus /></button>
        <button type="button" class="button icon" aria-label="Zoom out" title="Zoom out (-)" onClick={() => zoom(1 / 1.4)}><Minus /></button>
        <button type="button" class="button icon" aria-label="Show all" title="Show all (0)" onClick={showAll}><Fit /></button>
      </div>
      <div class="hidden" aria-live="polite">{node === undefined ? '' : `${node.node.operation || node.node.service}, ${node.node.count} calls`}</div>
    </div>
  );
}

interface Size { width: number; height: number }

function useSize(svg: { current: SVGSVGElement | null }): Size {
  const [size, setSize] = useState<Size>({ width: 800, height: 500 });
  useEffect(() => {
    const element = svg.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return size;
}

function inSight(node: PlacedNode, camera: Camera, size: Size): boolean {
  const [x, y] = [node.x * camera.k + camera.x, node.y * camera.k + camera.y];
  const [dx, dy] = [(NODE_WIDTH / 2) * camera.k, (NODE_HEIGHT / 2) * camera.k];
  return x - dx >= 0 && x + dx <= size.width && y - dy >= 0 && y + dy <= size.height;
}

function moved(camera: Camera, direction: Direction): Camera {
  const far = 60;
  const dx = direction === 'left' ? far : direction === 'right' ? -far : 0;
  const dy = direction === 'up' ? far : direction === 'down' ? -far : 0;
  return { ...camera, x: camera.x + dx, y: camera.y + dy };
}

function useWheel(svg: { current: SVGSVGElement | null }, camera: Camera, setCamera: (camera: Camera) => void): void {
  const latest = useRef(camera);
  latest.current = camera;
  useEffect(() => {
    const element = svg.current;
    const turn = (event: WheelEvent): void => {
      event.preventDefault();
      const box = element?.getBoundingClientRect();
      const at = { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) };
      setCamera(zoomAt(latest.current, Math.exp(-event.deltaY / 400), at));
    };
    element?.addEventListener('wheel', turn, { passive: false });
    return () => element?.removeEventListener('wheel', turn);
  }, []);
}

/** Dragging moves; a press without a move chooses the node under it, or none. */
function useDrag(camera: Camera, setCamera: (camera: Camera) => void, onChoose: (id: string | null) => void) {
  const drag = useRef<{ x: number; y: number; camera: Camera; moved: boolean; id: string | null } | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      const id = (event.target as Element).closest('[data-node]')?.getAttribute('data-node') ?? null;
      drag.current = { x: event.clientX, y: event.clientY, camera, moved: false, id };
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const from = drag.current;
      if (from === null) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.abs(dx) + Math.abs(dy) < 5) return;
      from.moved = true;
      setCamera({ k: from.camera.k, x: from.camera.x + dx, y: from.camera.y + dy });
    },
    onPointerUp: () => {
      if (drag.current?.moved === false) onChoose(drag.current.id);
      drag.current = null;
    },
  };
}

function Arrows() {
  return (
    <defs>
      {['arrow', 'arrow-lit', 'arrow-bad'].map((id) => (
        <marker key={id} id={id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
          <path class={id} d="M0 0.5 8 4 0 7.5z" />
        </marker>
      ))}
    </defs>
  );
}

function Edges({ placed, chosen }: { placed: Placed; chosen: string | null }) {
  const most = placed.edges.reduce((max, { edge }) => Math.max(max, edge.count), 0);
  const touches = (edge: GraphEdge): boolean => edge.from === chosen || edge.to === chosen;
  const [rest, lit] = [placed.edges.filter(({ edge }) => !touches(edge)), placed.edges.filter(({ edge }) => touches(edge))];
  return (
    <>
      {[...rest, ...lit].map((one) => <EdgeLine key={`${one.edge.from} ${one.edge.to}`} placed={one} most={most} lit={touches(one.edge)} dim={chosen !== null && !touches(one.edge)} />)}
    </>
  );
}

function EdgeLine({ placed: { edge, points }, most, lit, dim }: { placed: PlacedEdge; most: number; lit: boolean; dim: boolean }) {
  const failed = edge.errors > 0;
  const middle = middleOf(points);
  const arrow = lit ? 'arrow-lit' : failed ? 'arrow-bad' : 'arrow';
  return (
    <g class={`edge${lit ? ' lit' : ''}${dim ? ' dim' : ''}${failed ? ' failed' : ''}`}>
      <path d={pathOf(points)} stroke-width={strokeOf(edge.count, most).toFixed(2)} marker-end={`url(#${arrow})`} />
      <title>{`${number(edge.count)} calls${failed ? `, ${number(edge.errors)} failed` : ''}`}</title>
      {lit && middle !== undefined && <text x={middle.x} y={middle.y - 5} text-anchor="middle">{number(edge.count)}</text>}
    </g>
  );
}

/** Where the count stands: half way between the ends, or at the middle bend. */
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

function NodeBox({ placed: { node, x, y }, chosen, dim, whole }: NodeProps) {
  const part = share(node.self_ns, whole) ?? 0;
  const name = node.operation === '' ? node.service : shortName(node.operation);
  const failed = share(node.errors, node.count) ?? 0;
  return (
    <g class={`node${chosen ? ' chosen' : ''}${dim ? ' dim' : ''}`} data-node={node.id} transform={`translate(${x - NODE_WIDTH / 2} ${y - NODE_HEIGHT / 2})`}>
      <title>{`${node.service} ${node.operation}`}</title>
      <rect class="box" width={NODE_WIDTH} height={NODE_HEIGHT} rx="5" />
      <rect class={`strip ${node.kind}`} width="5" height={NODE_HEIGHT} rx="2" />
      <text class="name" x="14" y="20">{cut(name)}</text>
      <text class="facts" x="14" y="37">
        {`${number(node.count)} calls`}
        {failed > 0 && <tspan class="bad">{`   ${percent(failed)} failed`}</tspan>}
      </text>
      <text class="facts" x={NODE_WIDTH - 10} y="37" text-anchor="end">{`${percent(part)} self`}</text>
      <rect class="track" x="14" y={NODE_HEIGHT - 11} width={NODE_WIDTH - 24} height="4" rx="2" />
      <rect class="self" x="14" y={NODE_HEIGHT - 11} width={((NODE_WIDTH - 24) * part).toFixed(1)} height="4" rx="2" />
    </g>
  );
}
