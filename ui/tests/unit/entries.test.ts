import { describe, expect, test } from 'vitest';
import type { EntryList, RecordForm } from '../../src/lib/api';
import { barsOf, isTraceId, memberOrder, memberText, membersOf, placeOf, rowsOf, unitOf } from '../../src/lib/entries';

const list = (...texts: string[]): EntryList => ({
  series: [{ __name__: 'log', host: 'a' }],
  entries: texts.map((text, index) => ({ time: `${1_700_000_000 + index}500000000`, series: 0, text })),
  matched: texts.length,
  histogram: { start: '0', end: '1', counts: [] },
});

describe('entries', () => {
  test('rows have times in seconds and the labels of their series', () => {
    const [row] = rowsOf(list('x'));
    expect(row).toMatchObject({ at: 1_700_000_000.5, metric: { host: 'a' }, text: 'x', members: null });
    const bytes = { ...list(), entries: [{ time: '0', series: 9, hex: '00ff' }] };
    expect(rowsOf(bytes)[0]).toMatchObject({ text: 'bytes 00ff', metric: {}, members: null });
  });

  test('members are columns if every text is an object and there are at most 24 different members', () => {
    const table = rowsOf(list('{"pid":7,"fd":"3r"}', '{"pid":8,"user":null}'));
    expect(membersOf(table)).toEqual(['pid', 'fd', 'user']);
    expect(membersOf(rowsOf(list('{"pid":7}', 'text')))).toEqual([]);
    expect(membersOf(rowsOf(list('{"pid":')))).toEqual([]);
    const wide = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`m${index}`, 1]));
    expect(membersOf(rowsOf(list(JSON.stringify(wide))))).toEqual([]);
    expect([7, 'a', null, undefined, { a: 1 }].map(memberText)).toEqual(['7', 'a', 'null', '', '{"a":1}']);
  });

  test('whole numbers keep their digits, and numbers sort as numbers', () => {
    const rows = rowsOf(list('{"n":9223372036854775807,"s":"b","in":{"x":-9223372036854775808}}', '{"n":3,"s":null}'));
    expect(memberText(rows[0]?.members?.['n'])).toBe('9223372036854775807');
    expect(memberText(rows[0]?.members?.['in'])).toBe('{"x":"-9223372036854775808"}');
    expect(memberOrder(rows, 'n')).toBe('number');
    expect(memberOrder(rows, 's')).toBe('text');
    expect(memberOrder(rows, 'nothing')).toBe('text');
    expect(memberText(rowsOf(list('{"f":1e300}'))[0]?.members?.['f'])).toBe('1e+300');
  });

  test('a unit is shown if the declared types agree on it, and a trace id has 32 hex digits', () => {
    const form = (name: string, unit: string): RecordForm => ({
      name,
      service: 'shop',
      fields: [{ name: 'total', type: 'f64', unit }],
    });
    const rows = rowsOf(list('{"total":1}'));
    expect(unitOf([form('log', 'EUR'), form('other', 'ct')], rows, 'total')).toBe('EUR');
    expect(unitOf([form('log', 'EUR'), form('log', 'EUR')], rows, 'total')).toBe('EUR');
    expect(unitOf([form('log', 'EUR'), form('log', 'ct')], rows, 'total')).toBe('');
    expect(unitOf([form('log', 'EUR')], rows, 'customer')).toBe('');
    expect([isTraceId('0f1e2d3c4b5a6978ecd7ba92fd62a5d4'), isTraceId('0f'), isTraceId(7)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('marks and bars are positioned on the axis', () => {
    expect(placeOf(15, { start: 10, end: 20 }, 200)).toBe(100);
    expect(barsOf([0, 2, 4], 300)).toEqual([
      { x: 100, width: 100, height: 0.5, count: 2 },
      { x: 200, width: 100, height: 1, count: 4 },
    ]);
    expect(barsOf([], 300)).toEqual([]);
  });
});
