import { expect, test } from 'vitest';
import { column, gridOf, percentile, perSecond, type Row } from '../../src/lib/timeline';

const window = { start: 100, end: 160 };

test('timelines of several services share one grid, which includes times without a bucket', () => {
  const a: Row[] = [
    [100, 5, 0],
    [110, 7, 1],
    [140, 9, 0],
  ];
  const b: Row[] = [[120, 1, 0]];
  const grid = gridOf([a, b], window);
  expect(grid).toEqual({ times: [100, 110, 120, 130, 140], step: 10 });
  expect(column(a, grid, 1, 0)).toEqual([5, 7, 0, 0, 9]);
  expect(column(a, grid, 2, null)).toEqual([0, 1, null, null, 0]);
  expect(column(b, grid, 1, 0)).toEqual([0, 0, 1, 0, 0]);
});

test('an empty bucket has no percentile', () => {
  const rows: Row[] = [
    [100, 0, 0],
    [110, 2, 70],
  ];
  expect(percentile(rows, gridOf([rows], window), 2, 1)).toEqual([null, 70]);
});

test('the grid is empty without data, and has a step even with one point', () => {
  expect(gridOf([], window).times).toEqual([]);
  expect(gridOf([[[120, 1]]], window)).toEqual({ times: [120], step: 0.5 });
});

test('a step far too small for the span does not exhaust memory', () => {
  const rows: Row[] = [
    [0, 1],
    [0.001, 1],
    [1e6, 1],
  ];
  expect(gridOf([rows], { start: 0, end: 1e6 }).times).toHaveLength(3);
});

test('the rate of a bucket refers to its part in the window, which counts as at least half a bucket', () => {
  const grid = { times: [90, 100, 150], step: 20 };
  expect(perSecond([10, 20, 10], grid, window)).toEqual([1, 1, 1]);
  expect(perSecond([10], { times: [159], step: 20 }, window)).toEqual([1]);
  expect(perSecond([null], { times: [100], step: 20 }, window)).toEqual([null]);
});
