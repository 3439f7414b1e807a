import { expect, test } from 'vitest';
import {
  busiest,
  centred,
  fit,
  matches,
  NODE_WIDTH,
  nodeTowards,
  pathOf,
  place,
  strokeOf,
  zoomAt,
} from '../../src/graph/layout';
import type { Graph, GraphNode } from '../../src/lib/api';

const node = (id: string, count: number): GraphNode => ({
  id,
  service: 'shop',
  operation: `op ${id}`,
  kind: 'method',
  count,
  errors: 0,
  total_ns: count,
  self_ns: 0,
});

/** Ids are single letters. `a>b` is an edge. Earlier nodes have more calls and more time. */
function graph(nodes: string, edges: string): Graph {
  return {
    nodes: nodes.split(' ').map((id, index) => node(id, 100 - index)),
    edges: edges
      .split(' ')
      .filter((edge) => edge !== '')
      .map((edge) => ({ from: edge.charAt(0), to: edge.charAt(2), count: 1, errors: 0, total_ns: 0 })),
    unknown_callers: 0,
  };
}

test('a callee is to the right of its caller, and the line connects their facing sides', () => {
  const placed = place(graph('a b c', 'a>b a>c'));
  const [a, b, c] = placed.nodes;
  if (a === undefined || b === undefined || c === undefined) throw new Error('the graph must have three nodes');
  expect(b.x).toBeGreaterThan(a.x);
  expect(b.y).not.toBe(c.y);
  expect(placed.edges[0]?.points).toEqual([
    { x: a.x + NODE_WIDTH / 2, y: a.y },
    { x: b.x - NODE_WIDTH / 2, y: b.y },
  ]);
});

test.each([
  ['a', 'a>a'],
  ['a b', 'a>b b>a'],
  ['a', ''],
  ['a b', 'a>z'],
])('nodes %j with edges %j are placed', (nodes, edges) => {
  const placed = place(graph(nodes, edges));
  expect(placed.nodes.every((one) => Number.isFinite(one.x) && Number.isFinite(one.y))).toBe(true);
  expect(placed.width > 0 && placed.height > 0).toBe(true);
});

test('the busiest of many nodes are kept, with the edges between them', () => {
  const kept = busiest(graph('a b c d', 'a>b b>c c>d'), 2, null);
  expect(kept.nodes.map((one) => one.id)).toEqual(['a', 'b']);
  expect(kept.edges).toHaveLength(1);
  const chosen = busiest(graph('a b c d e', 'a>b b>c c>d'), 1, 'c');
  expect(chosen.nodes.map((one) => one.id)).toEqual(['a', 'b', 'c', 'd']);
  expect(busiest(graph('a b', ''), 1, 'gone').nodes).toHaveLength(1);
});

test('arrow keys select the nearest node in their direction', () => {
  const placed = place(graph('a b c', 'a>b a>c')).nodes;
  const [a, b] = placed;
  if (a === undefined || b === undefined) throw new Error('the graph must have two nodes');
  expect(nodeTowards(placed, a, 'left')).toBe(a);
  expect(['b', 'c']).toContain(nodeTowards(placed, a, 'right').node.id);
  expect(nodeTowards(placed, b, 'left')).toBe(a);
});

test('the camera centres, zooms and limits the scale', () => {
  expect(fit({ width: 2000, height: 500 }, 1000, 500)).toEqual({ k: 0.5, x: 0, y: 125 });
  expect(fit({ width: 100, height: 100 }, 1000, 500)).toEqual({ k: 1, x: 450, y: 200 });
  expect(fit({ width: 4000, height: 100 }, 1000, 500, 0.5)).toEqual({ k: 0.5, x: 0, y: 225 });
  expect(zoomAt({ k: 1, x: 0, y: 0 }, 2, { x: 10, y: 20 })).toEqual({ k: 2, x: -10, y: -20 });
  expect(zoomAt({ k: 4, x: 0, y: 0 }, 9, { x: 0, y: 0 }).k).toBe(4);
  expect(centred({ k: 0.1, x: 0, y: 0 }, { x: 0, y: 0 }, 400, 400).k).toBe(0.8);
  expect(centred({ k: 2, x: 0, y: 0 }, { x: 100, y: 50 }, 400, 400)).toEqual({ k: 2, x: 0, y: 100 });
});

test('lines are wider for more calls, between 1 and 6', () => {
  expect([strokeOf(1, 1), strokeOf(1, 1000), strokeOf(1000, 1000)]).toEqual([1.5, 1, 6]);
});

test('a path goes through every point', () =>
  expect(
    pathOf([
      { x: 0, y: 0 },
      { x: 10, y: 4 },
    ]),
  ).toBe('M0.0 0.0C5.0 0.0 5.0 4.0 10.0 4.0'));

test.each([
  ['op', 'OP', true],
  ['op', 'shop', false],
  ['', 'SHOP', true],
  ['op', '', false],
])('a node of operation %j is found by %j: %s', (operation, needle, found) => {
  expect(matches({ ...node('a', 1), operation }, needle)).toBe(found);
});
