import { describe, expect, test } from 'vitest';
import { autoStep, clock, fromNanos, moment, parseDuration, parseMoment } from '../../src/lib/time';
import { windowOf } from '../../src/lib/window-of';

describe('parseDuration', () => {
  test.each([
    ['5m', 300],
    ['1h30m', 5400],
    ['250ms', 0.25],
    ['1d', 86_400],
    ['2w', 1_209_600],
    [' 10s ', 10],
    ['', null],
    ['5', null],
    ['m', null],
    ['5 m', null],
    ['1.5m', null],
    ['0s', null],
    ['-5m', null],
  ])('%j is %s seconds', (text, seconds) => expect(parseDuration(text)).toBe(seconds));
});

describe('parseMoment', () => {
  const local = new Date(2026, 10, 21, 20, 30, 0).getTime() / 1000;
  test.each([
    ['now', 1000],
    ['now-15m', 100],
    ['now - 90s', 910],
    ['1763757000', 1_763_757_000],
    ['1763757000.25', 1_763_757_000.25],
    ['2026-11-21 20:30', local],
    ['2026-11-21T20:30:00', local],
    ['1970-01-02T00:00:00Z', 86_400],
    ['', null],
    ['now-', null],
    ['yesterday', null],
    ['12', null],
    ['2026-13-99', null],
  ])('at second 1000, %j is %s', (text, seconds) => expect(parseMoment(text, 1000)).toBe(seconds));
});

test('moments are written in local time', () => {
  const at = new Date(2026, 0, 2, 3, 4, 5, 67).getTime() / 1000;
  expect([moment(at), clock(at, true)]).toEqual(['2026-01-02 03:04:05', '03:04:05.067']);
});

test('nanoseconds beyond 2^53 keep their microseconds', () => {
  expect(fromNanos('1763757000123456789').toFixed(6)).toBe('1763757000.123456');
});

test.each([
  [300, 1200, 1],
  [3600, 1200, 10],
  [86_400, 1200, 300],
  [604_800, 1200, 1800],
  [60, 1200, 1],
  [3600, 10, 60],
])('a window of %d s on %d pixels has steps of %d s', (seconds, pixels, step) => {
  expect(autoStep({ start: 0, end: seconds }, pixels)).toBe(step);
});

describe('windowOf', () => {
  const read = (text: string) => windowOf(new URLSearchParams(text), 10_000);
  test.each([
    ['', { start: 6400, end: 10_000, range: '1h', refresh: 0 }],
    ['range=15m&refresh=10', { start: 9100, end: 10_000, range: '15m', refresh: 10 }],
    ['range=nonsense', { start: 6400, end: 10_000, range: '1h', refresh: 0 }],
    ['from=100&to=200.5', { start: 100, end: 200.5, range: null, refresh: 0 }],
    ['from=200&to=100', { start: 6400, end: 10_000, range: '1h', refresh: 0 }],
    ['refresh=-3', { start: 6400, end: 10_000, range: '1h', refresh: 0 }],
  ])('the parameters %j are the window %j', (text, window) => expect(read(text)).toEqual(window));
});
