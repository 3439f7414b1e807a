import { describe, expect, test } from 'vitest';
import {
  bytes,
  digits,
  duration,
  format,
  grouped,
  NONE,
  number,
  parseNanos,
  percent,
  rate,
  share,
} from '../../src/lib/units';

describe('duration', () => {
  test.each([
    [0, '0 ns'],
    [1, '1 ns'],
    [999, '999 ns'],
    [-0.0001, '0 ns'],
    [9.9949, '9.99 ns'],
    [999.4999, '999 ns'],
    [999.6, '1 µs'],
    [1000, '1 µs'],
    [1240, '1.24 µs'],
    [12_400, '12.4 µs'],
    [124_000, '124 µs'],
    [999_499, '999 µs'],
    [999_500, '1 ms'],
    [1e6, '1 ms'],
    [3_100_000, '3.1 ms'],
    [1e9, '1 s'],
    [59.9e9, '59.9 s'],
    [59.949e9, '59.9 s'],
    [59.95e9, '1 min 0 s'],
    [-59.95e9, '-1 min 0 s'],
    [60e9, '1 min 0 s'],
    [3599e9, '59 min 59 s'],
    [3600e9, '1 h 0 min'],
    [90_000e9, '1 d 1 h'],
    [-1500, '-1.5 µs'],
  ])('%d ns is %s', (ns, text) => expect(duration(ns)).toBe(text));

  test.each([null, undefined, NaN, Infinity])('%s is no duration', (value) => expect(duration(value)).toBe(NONE));
});

describe('parseNanos', () => {
  test.each([
    ['250us', 250_000],
    ['250 µs', 250_000],
    ['1.5ms', 1_500_000],
    ['2s', 2e9],
    ['.5s', 5e8],
    ['1m', 60e9],
    ['7ns', 7],
    ['3MS', 3e6],
    ['', null],
    ['5', null],
    ['ms', null],
    ['-1ms', null],
    ['1ms2s', null],
    ['1e3ms', null],
  ])('%j is %s', (text, nanos) => expect(parseNanos(text)).toBe(nanos));
});

describe('number', () => {
  test.each([
    [0, '0'],
    [1.5, '1.5'],
    [0.125, '0.125'],
    [999.4, '999'],
    [1234, '1\u202f234'],
    [1234.5, '1\u202f235'],
    [99_999, '99\u202f999'],
    [100_000, '100 k'],
    [999_999, '1 M'],
    [1.25e9, '1.25 G'],
    [-4200.5, '-4\u202f200'],
    [1e-7, '1e-7'],
    [NaN, 'NaN'],
    [Infinity, '+Inf'],
    [-Infinity, '-Inf'],
    [3e20, '3.00e+20'],
  ])('%d is %s', (value, text) => expect(number(value)).toBe(text));
});

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1 kB'],
  [1_536_000, '1.54 MB'],
  [2e15, '2 PB'],
  [null, NONE],
])('%s bytes are %s', (value, text) => {
  expect(bytes(value)).toBe(text);
});

test.each([
  [0, '0 %'],
  [0.00001, '< 0.01 %'],
  [0.0017, '0.17 %'],
  [0.5, '50 %'],
  [1, '100 %'],
  [null, NONE],
])('share %s is %s', (value, text) => {
  expect(percent(value)).toBe(text);
});

test('0 of 0 is not a share', () => expect([share(0, 0), share(1, 4)]).toEqual([null, 0.25]));

test('numbers have three significant digits', () =>
  expect([0.12345, 1.2345, 12.345, 123.45].map(digits)).toEqual(['0.123', '1.23', '12.3', '123']));

test('a grouped number keeps all its digits', () => expect(grouped(1_234_567)).toBe('1\u202f234\u202f567'));

test('a value is written in its unit', () => {
  expect([
    format('seconds', 0.25),
    format('bytes', 2048),
    format('rate', 3),
    format('percent', 0.5),
    format('number', null),
    rate(null),
  ]).toEqual(['250 ms', '2.05 kB', '3 /s', '50 %', NONE, NONE]);
});
