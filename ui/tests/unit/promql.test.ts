import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { accept, suggest } from '../../src/promql/complete';
import { contextAt } from '../../src/promql/context';
import { AGGREGATIONS, FUNCTIONS } from '../../src/promql/functions';
import {
  faultAt,
  legendNames,
  matrixOf,
  onGrid,
  seriesName,
  suggestedQuery,
  unitOf,
  vectorOf,
} from '../../src/promql/result';

/** `|` is the cursor. */
function at(marked: string): [string, number] {
  const cursor = marked.indexOf('|');
  return [marked.replace('|', ''), cursor];
}

describe('context', () => {
  test.each([
    ['|', { kind: 'expression', from: 0, word: '' }],
    ['ra|', { kind: 'expression', from: 0, word: 'ra' }],
    ['rate(htt|', { kind: 'expression', from: 5, word: 'htt' }],
    ['rate(http|[5m])', { kind: 'expression', from: 5, word: 'http' }],
    ['up{|', { kind: 'label', from: 3, word: '', metric: 'up' }],
    ['up{a="b", se|}', { kind: 'label', from: 10, word: 'se', metric: 'up' }],
    ['{se|', { kind: 'label', from: 1, word: 'se', metric: null }],
    ['up{job="|', { kind: 'value', from: 8, word: '', metric: 'up', label: 'job' }],
    ['up{job=~"we|"}', { kind: 'value', from: 9, word: 'we', metric: 'up', label: 'job' }],
    ['up{job!="a\\"b|', { kind: 'value', from: 9, word: 'a\\"b', metric: 'up', label: 'job' }],
    ['up{job="a", "|', { kind: 'none' }],
    ['up{job="a"} + {"|', { kind: 'none' }],
    ['up{job="a", "x.y"="|', { kind: 'none' }],
    ['up[|', { kind: 'duration', from: 3, word: '' }],
    ['sum by (|', { kind: 'grouping', from: 8, word: '' }],
    ['sum by (a, ho|) (up)', { kind: 'grouping', from: 11, word: 'ho' }],
    ['label_join(up, "|', { kind: 'none' }],
    ['up # rat|', { kind: 'none' }],
    ['up # note\n+ ra|', { kind: 'expression', from: 12, word: 'ra' }],
    ['12|', { kind: 'none' }],
    ['up{a="b"}|', { kind: 'none' }],
    ['up |', { kind: 'none' }],
    ['up + |', { kind: 'expression', from: 5, word: '' }],
  ])('%s', (marked, expected) => expect(contextAt(...at(marked))).toEqual(expected));
});

describe('the default query of a metric', () => {
  test.each([
    ['up', 'up'],
    ['http_requests_total', 'rate(http_requests_total[5m])'],
    ['cpu.load', '{"cpu.load"}'],
    ['disk "C:\\"', '{"disk \\"C:\\\\\\""}'],
    ['net.bytes_total', 'rate({"net.bytes_total"}[5m])'],
    ['größe', '{"größe"}'],
  ])('%s', (name, query) => expect(suggestedQuery(name)).toBe(query));
});

describe('completion', () => {
  const labels = (marked: string, names: string[]): string[] =>
    suggest(contextAt(...at(marked)), names).map((one) => one.label);

  test('names that begin with the word are first, then names with a part that begins with it, then the others', () => {
    expect(labels('heap|', ['jvm_heap_bytes', 'cheap', 'heap_used'])).toEqual(['heap_used', 'jvm_heap_bytes', 'cheap']);
  });
  test('functions and aggregations are offered after the first letter', () => {
    expect(labels('|', ['up'])).toEqual(['up']);
    expect(labels('histogram_q|', [])).toEqual(['histogram_quantile']);
    expect(labels('su|', [])).toContain('sum');
  });
  test('a complete name needs no suggestion', () => expect(labels('jvm_heap_bytes|', ['jvm_heap_bytes'])).toEqual([]));
  test('__name__ is not offered as a label', () => expect(labels('up{|', ['__name__', 'host'])).toEqual(['host']));

  test.each([
    ['ra|', [], 'rate', 'rate(|'],
    ['ra|(up)', [], 'rate', 'rate(|up)'],
    ['sum(jv|)', ['jvm_threads'], 'jvm_threads', 'sum(jvm_threads|)'],
    ['sum(cpu|)', ['cpu.load'], 'cpu.load', 'sum({"cpu.load"}|)'],
    ['up{ho|', ['host'], 'host', 'up{host="|'],
    ['up{ho|="a"}', ['host'], 'host', 'up{host|="a"}'],
    ['up{ho|st !~ "a"}', ['host'], 'host', 'up{host| !~ "a"}'],
    ['up{ho|, a="b"}', ['host'], 'host', 'up{host="|, a="b"}'],
    ['up{host="we|', ['web-1'], 'web-1', 'up{host="web-1"|'],
    ['up{host="we|"}', ['web-1'], 'web-1', 'up{host="web-1"|}'],
    ['up{p="|', ['C:\\"x"'], 'C:\\"x"', 'up{p="C:\\\\\\"x\\""|'],
    ['up[|]', [], '5m', 'up[5m]|'],
  ])('%s becomes, with the names %j and the suggestion %j, %s', (marked, names, label, expected) => {
    const [text, cursor] = at(marked);
    const context = contextAt(text, cursor);
    const suggestion = suggest(context, names).find((one) => one.label === label);
    if (suggestion === undefined) throw new Error(`no suggestion ${label}`);
    const edit = accept(text, cursor, context, suggestion);
    expect(`${edit.text.slice(0, edit.cursor)}|${edit.text.slice(edit.cursor)}`).toBe(expected);
  });
});

test('the names of functions and aggregations are those of the server', () => {
  const source = (name: string) => {
    const text = readFileSync(new URL(`../../../crates/query/src/promql/${name}`, import.meta.url), 'utf8');
    return text.slice(text.indexOf('\n', text.search(/table! \{$/m)));
  };
  const names = [...source('functions.rs').matchAll(/^\s+(\w+)\([^)]*\)\s*-> \w+: \w+\(/gm)].map((found) => found[1]);
  const aggregations = [...source('aggregations.rs').matchAll(/^\s+(\w+): \w+, "/gm)].map((found) => found[1]);
  expect(FUNCTIONS.map(([name]) => name)).toEqual(names.sort());
  expect(AGGREGATIONS.map(([name]) => name)).toEqual(aggregations);
});

describe('results', () => {
  test('a series is named by its labels', () => {
    expect(seriesName({ __name__: 'up', b: '2', a: '1' })).toBe('up{a="1", b="2"}');
    expect([seriesName({ __name__: 'up' }), seriesName({})]).toEqual(['up', '{}']);
  });
  test('a legend omits labels that all series share', () => {
    expect(
      legendNames([
        { __name__: 'up', a: '1', b: 'x' },
        { __name__: 'up', a: '2', b: 'x' },
      ]),
    ).toEqual(['{a="1"}', '{a="2"}']);
    expect(legendNames([{ __name__: 'up', a: '1' }])).toEqual(['up{a="1"}']);
    expect(legendNames([])).toEqual([]);
  });
  test('values are on the grid, NaN and infinities are gaps', () => {
    expect(
      onGrid(
        [
          [10, '1'],
          [20, 'NaN'],
          [30.0001, '3'],
          [99, '9'],
        ],
        10,
        10,
        4,
      ),
    ).toEqual([1, null, 3, null]);
  });
  test('a scalar is a series without labels', () => {
    expect(matrixOf({ resultType: 'scalar', result: [1, '2'] })).toEqual([{ metric: {}, values: [[1, '2']] }]);
    expect(
      vectorOf({
        resultType: 'matrix',
        result: [
          {
            metric: {},
            values: [
              [1, '2'],
              [2, '3'],
            ],
          },
          { metric: {}, values: [] },
        ],
      }),
    ).toEqual([{ metric: {}, values: [2, '3'] }]);
  });
  test.each([
    ['jvm_heap_used_bytes', 'bytes'],
    ['rate(http_requests_total[5m])', 'rate'],
    ['histogram_quantile(0.95, sum by (le) (rate(x_seconds_bucket[5m])))', 'seconds'],
    ['rate(cpu_seconds_total[5m])', 'number'],
    ['x_duration_ns', 'duration'],
    ['up / 2', 'number'],
    ['count(jvm_heap_used_bytes)', 'number'],
    ['a{path="/x"}', 'number'],
    ['load_ratio', 'percent'],
  ])('the unit of %s is %s', (query, unit) => expect(unitOf(query)).toBe(unit));
  test.each([
    ['expected an expression, found the end of the query (at column 5)', 'sum(', 4],
    ['expected ")" to close the "(" at column 1, found "b" (at column 4)', '(a b', 3],
    ['x (at line 2, column 3)', 'a\nbcd', 4],
    ['x (at column 5)', 'ab', 2],
    ['no place', 'x', null],
    ['it says (at column 2) and more', 'abc', null],
    ['fault (at column 3)', 'ö+)', 2],
    ['fault (at line 2, column 3)', 'ö\n"😀"', 5],
  ])('the fault of %j in %j is at %s', (message, query, place) => expect(faultAt(message, query)).toBe(place));
});
