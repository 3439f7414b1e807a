import { expect, test } from 'vitest';
import { cursorOf, filterOf, inWords, pageOf } from '../../src/trace/filter';
import { decades, extent, nearest, scaleOf, timeTicks } from '../../src/trace/scatter';

const BOX = { width: 1000, height: 200, left: 50, right: 50, top: 10, bottom: 30 };

test.each([
  [[], [5, 7]],
  [[0], [5, 7]],
  [[1e6], [6, 7]],
  [
    [2e5, 3e7],
    [5, 8],
  ],
  [
    [1e6, 1e7],
    [6, 7],
  ],
])('durations %j span the decades %j', (durations, span) => {
  expect(decades(durations)).toEqual(span);
});

test('the axis of a truncated list shows the range of its traces', () => {
  const window = { start: 0, end: 1000 };
  const marks = [900, 950].map((at) => ({ at, duration: 1 }));
  expect(extent(marks, window)).toEqual({ start: 898, end: 952 });
  expect(
    extent(
      [
        { at: 999.9, duration: 1 },
        { at: 900, duration: 1 },
      ],
      window,
    ).end,
  ).toBe(1000);
  expect(extent(marks.slice(1), window)).toBe(window);
});

test('marks are between the edges, and their positions convert back to times and durations', () => {
  const scale = scaleOf(
    [
      { at: 0, duration: 1e6 },
      { at: 100, duration: 1e8 },
    ],
    0,
    100,
    BOX,
  );
  expect([scale.x(0), scale.x(100), scale.y(1e8), scale.y(1e6), scale.y(1e7), scale.y(0)]).toEqual([
    50, 950, 10, 170, 90, 170,
  ]);
  expect([scale.toSeconds(500), Math.round(scale.toNanos(90))]).toEqual([50, 1e7]);
  expect(scale.ticks).toEqual([1e6, 1e7, 1e8]);
});

test('the nearest mark within reach is found', () => {
  const marks = [
    { at: 0, duration: 1e6 },
    { at: 50, duration: 1e7 },
  ];
  const scale = scaleOf(marks, 0, 100, BOX);
  expect(nearest(marks, scale, 503, 12, 10)).toBe(1);
  expect(nearest(marks, scale, 300, 90, 10)).toBe(-1);
});

test('ticks of time are round', () => {
  const { step, at } = timeTicks(1_763_756_970, 1_763_757_270, 900);
  expect(step).toBe(30);
  expect(at.every((time) => time % 30 === 0)).toBe(true);
});

test.each([
  ['', { order: 'newest', limit: '500' }],
  ['min=1.5ms&max=2s', { order: 'newest', limit: '500', min_duration: '0.001500000', max_duration: '2.000000000' }],
  [
    'service=a&outcome=failed&request=r-1&limit=1000',
    { order: 'newest', limit: '1000', service: 'a', outcome: 'failed', request_id: 'r-1' },
  ],
  [
    'status=5xx&text=from+ad&exception=KeyError&attribute=tenant%3Dacme',
    { order: 'newest', limit: '500', status: '5xx', text: 'from ad', exception: 'KeyError', attribute: 'tenant=acme' },
  ],
  ['sort=duration&after=slowest:c-1', { order: 'slowest', limit: '500', after: 'c-1' }],
  ['sort=-duration&after=slowest:c-1', { order: 'fastest', limit: '500' }],
  ['after=c-1', { order: 'newest', limit: '500' }],
])('the form %j becomes the request %j', (text, expected) => {
  const { filter, problem } = filterOf(new URLSearchParams(text));
  expect(problem).toBeNull();
  expect(Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== null))).toEqual(expected);
});

test('a cursor in the address is for the order of its page', () => {
  expect(cursorOf(pageOf('a:b', 'oldest'), 'oldest')).toBe('a:b');
  expect(cursorOf(pageOf('a:b', 'oldest'), 'newest')).toBeNull();
  expect(cursorOf(null, 'newest')).toBeNull();
});

test.each([
  ['min=fast', /"fast"/],
  ['max=5', /"5"/],
  ['min=2s&max=1ms', /2 s.*above.*1 ms/],
])('the form %j is invalid', (text, words) => {
  expect(filterOf(new URLSearchParams(text)).problem).toMatch(words);
});

test.each([
  [512, '512ns'],
  [1234, '1.23us'],
  [1_500_000, '1.5ms'],
  [2e9, '2s'],
])('%d ns is written as %s', (nanos, text) => expect(inWords(nanos)).toBe(text));
