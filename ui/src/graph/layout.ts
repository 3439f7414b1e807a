// Positions of the graph's nodes and edges: layers from left to right (Sugiyama, by dagre).
import { graphlib, layout } from '@dagrejs/dagre';
import type { Graph, GraphEdge, GraphNode } from '../lib/api';

export interface Point {
  x: number;
  y: number;
}

export interface PlacedNode extends Point {
  node: GraphNode;
}

export interface PlacedEdge {
  edge: GraphEdge;
  points: Point[];
}

export interface Placed {
  nodes: PlacedNode[];
  edges: PlacedEdge[];
  width: number;
  height: number;
}

/** Size of a node in the units of the drawing. */
export const NODE_WIDTH = 252;
export const NODE_HEIGHT = 56;
/** The smallest scale at which all text in a node is readable. */
const NEAR = 0.8;

/** The `count` nodes with the largest total time (which includes their callees), the selected node and its neighbours, and
 *  the edges between all of these. */
export function busiest(graph: Graph, count: number, chosen: string | null): Graph {
  if (graph.nodes.length <= count) return graph;
  const sorted = [...graph.nodes].sort((a, b) => b.total_ns - a.total_ns);
  const ids = new Set(sorted.slice(0, count).map((node) => node.id));
  if (chosen !== null && graph.nodes.some((node) => node.id === chosen)) {
    const ends = graph.edges.filter((edge) => edge.from === chosen || edge.to === chosen);
    [chosen, ...ends.flatMap((edge) => [edge.from, edge.to])].forEach((id) => ids.add(id));
  }
  return {
    nodes: graph.nodes.filter((node) => ids.has(node.id)),
    edges: graph.edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to)),
    unknown_callers: graph.unknown_callers,
  };
}

export function place(graph: Graph): Placed {
  const drawing = new graphlib.Graph();
  drawing.setGraph({ rankdir: 'LR', nodesep: 18, ranksep: 72, marginx: 16, marginy: 16 });
  drawing.setDefaultEdgeLabel(() => ({}));
  const ids = new Set(graph.nodes.map((node) => node.id));
  graph.nodes.forEach((node) => drawing.setNode(node.id, { width: NODE_WIDTH, height: NODE_HEIGHT }));
  const edges = graph.edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to));
  edges.forEach((edge) => drawing.setEdge(edge.from, edge.to, {}));
  layout(drawing);
  const size = drawing.graph() as { width?: number; height?: number };
  const at = (id: string): Point => drawing.node(id) as unknown as Point;
  const route = (edge: GraphEdge): Point[] => (drawing.edge(edge.from, edge.to) as { points?: Point[] }).points ?? [];
  return {
    nodes: graph.nodes.map((node) => ({ node, x: at(node.id).x, y: at(node.id).y })),
    edges: edges.map((edge) => ({ edge, points: ports(at(edge.from), at(edge.to), route(edge)) })),
    width: finite(size.width),
    height: finite(size.height),
  };
}

const finite = (value: number | undefined): number =>
  value !== undefined && Number.isFinite(value) && value > 0 ? value : 1;

/**
 * The line of an edge: from the middle of the caller's right side to the middle of the callee's left side, around nodes
 * between them. If the callee is not at least `NODE_WIDTH` to the right of the caller, the edge keeps the given route.
 */
export function ports(from: Point, to: Point, route: readonly Point[]): Point[] {
  const forward = to.x - from.x >= NODE_WIDTH;
  if (!forward) return [...route];
  // A route between adjacent layers has one point in the middle. It is omitted, because it only adds a bend.
  const between = route.length > 3 ? route.slice(1, -1) : [];
  return [{ x: from.x + NODE_WIDTH / 2, y: from.y }, ...between, { x: to.x - NODE_WIDTH / 2, y: to.y }];
}

/** An SVG path through the points that is horizontal at each of them. */
export function pathOf(points: readonly Point[]): string {
  const text = (x: number, y: number): string => `${x.toFixed(1)} ${y.toFixed(1)}`;
  return points
    .map((point, index) => {
      const before = points[index - 1];
      if (before === undefined) return `M${text(point.x, point.y)}`;
      const half = (point.x - before.x) / 2;
      return `C${text(before.x + half, before.y)} ${text(point.x - half, point.y)} ${text(point.x, point.y)}`;
    })
    .join('');
}

/** Line width in pixels, 1 to 6: 1 + 5 (ln count / ln most)², because counts differ by powers of ten. `most` is the largest
 * count; if it is at most 1, the width is 1.5. */
export function strokeOf(count: number, most: number): number {
  return most <= 1 ? 1.5 : 1 + 5 * (Math.log(Math.max(count, 1)) / Math.log(most)) ** 2;
}

/** The transformation from drawing to window: scaled by k, then moved. */
export interface Camera extends Point {
  k: number;
}

/**
 * Centres the drawing at a scale between `least` and 1. If the drawing does not fit, its left side is visible, because
 * requests enter there.
 */
export function fit(drawing: { width: number; height: number }, width: number, height: number, least = 0): Camera {
  const k = Math.max(Math.min(width / drawing.width, height / drawing.height, 1), least);
  return { k, x: Math.max((width - drawing.width * k) / 2, 0), y: (height - drawing.height * k) / 2 };
}

/** Zooms by a factor; the point under `at` (in pixels of the window) stays in place. */
export function zoomAt(camera: Camera, factor: number, at: Point): Camera {
  const k = Math.min(Math.max(camera.k * factor, 0.05), 4);
  return { k, x: at.x - ((at.x - camera.x) * k) / camera.k, y: at.y - ((at.y - camera.y) * k) / camera.k };
}

/** Centres a point. Keeps the scale, but zooms in if the text would not be readable. */
export function centred(camera: Camera, point: Point, width: number, height: number): Camera {
  const k = Math.max(camera.k, NEAR);
  return { k, x: width / 2 - point.x * k, y: height / 2 - point.y * k };
}

export type Direction = 'left' | 'right' | 'up' | 'down';

/** The nearest node in a direction; sideways distance counts double. Returns `from` if there is no node in that direction. */
export function nodeTowards(nodes: readonly PlacedNode[], from: PlacedNode, direction: Direction): PlacedNode {
  let best = from;
  let least = Infinity;
  for (const candidate of nodes) {
    const [dx, dy] = [candidate.x - from.x, candidate.y - from.y];
    const along = direction === 'left' ? -dx : direction === 'right' ? dx : direction === 'up' ? -dy : dy;
    const across = direction === 'left' || direction === 'right' ? Math.abs(dy) : Math.abs(dx);
    if (along > 1 && along + 2 * across < least) {
      least = along + 2 * across;
      best = candidate;
    }
  }
  return best;
}

/** Whether the name of the node contains `needle`, ignoring case. The name is the operation, or the service if the operation is
 * empty. */
export function matches(node: GraphNode, needle: string): boolean {
  return needle !== '' && (node.operation || node.service).toLowerCase().includes(needle.toLowerCase());
}
