import { describe, expect, test } from 'vitest';
import type { CallNode, Span, TraceSummary } from '../../src/lib/api';
import { orderOf, shownOf } from '../../src/trace/filter';
import {
  callFrames,
  clamp,
  frameAt,
  neighbour,
  rowCount,
  shortName,
  ticks,
  traceFrames,
  viewOf,
  viewText,
  zoom,
} from '../../src/trace/icicle';
import { belowDepth, move, reveal, rowsOf, summary, visibleRows } from '../../src/trace/tree';

/** `a` (0..100) calls `b` (10..40) and `d` (50..90), and `b` calls `c` (20..30). Each line is `id parent start end`;
 * a root has the parent `-`. */
const TREE = ['a - 0 100', 'b a 10 40', 'c b 20 30', 'd a 50 90'];

function spans(lines: string[]): Span[] {
  return lines.map((line) => {
    const [id = '', parent, start, end] = line.split(' ');
    return {
      id,
      parent: parent === '-' ? null : (parent ?? null),
      depth: 0,
      service: 's',
      host: 'h',
      thread: 't',
      operation: id,
      kind: 'method',
      offset_ns: Number(start),
      duration_ns: Number(end) - Number(start),
      self_ns: 0,
      outcome: 'ok',
      attributes: {},
    };
  });
}

describe('tree', () => {
  const rows = rowsOf(spans(TREE));
  const closed = (...ids: string[]): ReadonlySet<string> => new Set(ids);

  test('rows know their depth, parent and last descendant', () => {
    expect(rows.map((row) => [row.depth, row.parent, row.last])).toEqual([
      [0, -1, 3],
      [1, 0, 2],
      [2, 1, 2],
      [1, 0, 3],
    ]);
  });

  test('a span whose parent is missing is a root', () => {
    expect(rowsOf(spans(['a - 0 9', 'x gone 1 2'])).map((row) => row.depth)).toEqual([0, 0]);
  });

  test.each([
    [[], [0, 1, 2, 3]],
    [['b'], [0, 1, 3]],
    [['a'], [0]],
    [['a', 'b'], [0]],
    [['c'], [0, 1, 2, 3]],
  ])('with %j closed, rows %j are visible', (ids, shown) => {
    expect(visibleRows(rows, closed(...ids))).toEqual(shown);
  });

  test('revealing a row opens only its ancestors', () => {
    expect([...reveal(rows, closed('a', 'b', 'd'), 2)]).toEqual(['d']);
    const same = closed('d');
    expect(reveal(rows, same, 1)).toBe(same);
  });

  test('all rows that have children, except the roots, are found', () =>
    expect([...belowDepth(rows, 1)]).toEqual(['b']));

  test.each([
    ['down', 0, [], { to: 1 }],
    ['down', 3, [], { to: 3 }],
    ['up', 0, [], { to: 0 }],
    ['up', 3, ['b'], { to: 1 }],
    ['down', 1, ['b'], { to: 3 }],
    ['home', 3, [], { to: 0 }],
    ['end', 0, [], { to: 3 }],
    ['left', 1, [], { to: 1, collapse: 'b' }],
    ['left', 2, [], { to: 1 }],
    ['left', 1, ['b'], { to: 0 }],
    ['right', 1, ['b'], { to: 1, expand: 'b' }],
    ['right', 1, [], { to: 2 }],
    ['right', 2, [], { to: 2 }],
  ] as const)('the step %s from row %d with %j closed is %j', (step, from, ids, expected) => {
    const collapsed = closed(...ids);
    expect(move(rows, visibleRows(rows, collapsed), collapsed, from, step)).toEqual(expected);
  });

  test('10,000 spans, each the child of the span before, have their depths', () => {
    const deep = rowsOf(
      spans(
        Array.from({ length: 10_000 }, (_, index) => `s${index} ${index === 0 ? '-' : `s${index - 1}`} ${index} 20000`),
      ),
    );
    expect(deep.at(-1)?.depth).toBe(9999);
    expect(visibleRows(deep, closed('s5'))).toHaveLength(6);
  });

  test('a summary lists the services and counts errors and threads', () => {
    const list = spans(TREE);
    Object.assign(list[1] ?? {}, { outcome: 'failed', service: 'other', thread: 'u' });
    expect(summary(list)).toEqual({ services: ['s', 'other'], errors: 1, threads: 2 });
  });
});

describe('icicle', () => {
  const frames = traceFrames(rowsOf(spans(TREE)));

  test('a call is below its caller', () => {
    expect(frames.map((frame) => [frame.start, frame.width, frame.row, frame.parent])).toEqual([
      [0, 100, 0, -1],
      [10, 30, 1, 0],
      [20, 10, 2, 1],
      [50, 40, 1, 0],
    ]);
    expect(rowCount(frames)).toBe(3);
  });

  test('a call concurrent with its sibling goes to a free row', () => {
    expect(
      traceFrames(rowsOf(spans(['a - 0 100', 'b a 10 60', 'c a 30 80', 'd a 60 70']))).map((frame) => frame.row),
    ).toEqual([0, 1, 2, 1]);
  });

  test.each([
    ['down', 0, 3],
    ['down', 2, 2],
    ['up', 2, 1],
    ['up', 0, 0],
    ['right', 1, 3],
    ['left', 3, 1],
    ['right', 3, 3],
    ['up', -1, 0],
  ] as const)('the arrow key %s leads from frame %d to frame %d', (direction, from, to) => {
    expect(neighbour(frames, from, direction)).toBe(to);
  });

  test.each([
    [15, 1, 1],
    [45, 1, -1],
    [95, 0, 0],
    [25, 2, 2],
    [25, 9, -1],
  ])('the frame at %d ns in row %d is %d', (at, row, index) => {
    expect(frameAt(frames, at, row, 0)).toBe(index);
  });

  test('views stay inside the whole', () => {
    const whole = { start: 0, end: 1000 };
    expect(clamp({ start: -50, end: 50 }, whole)).toEqual({ start: 0, end: 100 });
    expect(clamp({ start: 990, end: 1090 }, whole)).toEqual({ start: 900, end: 1000 });
    expect(clamp({ start: 500, end: 500 }, whole)).toEqual({ start: 500, end: 510 });
    expect(clamp({ start: -1, end: 5000 }, whole)).toEqual(whole);
    expect(zoom(whole, whole, 0.5, 250)).toEqual({ start: 125, end: 625 });
  });

  test.each([
    [-400, -100, '-400--100'],
    [-400, 300, '-400-300'],
    [0, 300.4, '0-300'],
    [-500, 1000, null],
  ])('the view from %d to %d is %j in the address', (start, end, text) => {
    const whole = { start: -500, end: 1000 };
    expect(viewText({ start, end }, whole)).toBe(text);
    expect(viewOf(text, whole)).toEqual({ start, end: Math.round(end) });
  });

  test.each(['', '5', '-', '1-x', '1-2-3', '--5-9'])('the text %j is no view', (text) => {
    const whole = { start: -500, end: 1000 };
    expect(viewOf(text, whole)).toEqual(whole);
  });

  test('the ruler has round steps', () => {
    expect(ticks({ start: 0, end: 1000 }, 550)).toEqual([0, 200, 400, 600, 800, 1000]);
    expect(ticks({ start: 5, end: 5 }, 550)).toEqual([]);
  });

  const node = (operation: string, total: number, children: CallNode[] = []): CallNode => ({
    operation,
    kind: 'method',
    service: 's',
    count: 1,
    errors: 0,
    total_ns: total,
    self_ns: 0,
    children,
  });

  test('calls of an aggregated tree are side by side, and are scaled down if they ran in parallel', () => {
    const tree = node('', 100, [node('a', 60, [node('b', 60), node('c', 60)]), node('d', 30)]);
    expect(callFrames(tree).frames.map((frame) => [frame.start, frame.width, frame.row])).toEqual([
      [0, 100, 0],
      [0, 60, 1],
      [0, 30, 2],
      [30, 30, 2],
      [60, 30, 1],
    ]);
  });

  test('an aggregated tree without time has frames without width', () => {
    expect(callFrames(node('', 0, [node('a', 0)])).frames.map((frame) => frame.width)).toEqual([0, 0]);
  });
});

test.each([
  ['org.example.board.web.AdsServlet.doGet(HttpServletRequest, HttpServletResponse)', 'AdsServlet.doGet'],
  ['org.example.Börse.<init>(int)', 'Börse.<init>'],
  ['GET /ads/{id}', 'GET /ads/{id}'],
  ['SELECT count(*) FROM ad', 'SELECT count(*) FROM ad'],
  ['main()', 'main'],
])('the short name of %s is %s', (operation, short) => expect(shortName(operation)).toBe(short));

test('the sort column of the table decides which traces the server returns first', () => {
  const orders = [null, 'start', '-start', 'duration', '-duration', 'operation'].map(orderOf);
  expect(orders).toEqual(['newest', 'newest', 'oldest', 'slowest', 'fastest', 'newest']);
});

test('a trace is shown with the figures of the call that matched', () => {
  const trace: TraceSummary = {
    trace_id: '1',
    service: 's',
    operation: 'GET /a',
    kind: 'http-server',
    start: '1000',
    duration_ns: 900,
    calls: 3,
    outcome: 'ok',
    request_id: null,
    http_status: 200,
    match: null,
  };
  const call = { service: 's', operation: 'b', kind: 'method', start: '1100', duration_ns: 50 } as const;
  const figures = (one: TraceSummary) => {
    const { start, duration_ns, trace_ns, outcome } = shownOf(one);
    return [start, duration_ns, trace_ns, outcome];
  };
  expect(figures(trace)).toEqual(['1000', 900, 900, 'ok']);
  expect(figures({ ...trace, match: { ...call, outcome: 'failed' } })).toEqual(['1100', 50, 900, 'failed']);
});
