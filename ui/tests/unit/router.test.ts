import { expect, test } from 'vitest';
import { formatPlace, parsePlace, withChanges } from '../../src/lib/place';

test.each([
  ['', []],
  ['#', []],
  ['#/', []],
  ['#/traces', ['traces']],
  ['#/services/a%2Fb%20c', ['services', 'a/b c']],
  ['#/services/%E0%A4%A', ['services', '%E0%A4%A']],
])('the path of %j is %j', (hash, path) => expect(parsePlace(hash).path).toEqual(path));

test('an address round-trips', () => {
  const address = formatPlace(
    ['services', 'Börse/漢 & co'],
    new URLSearchParams([
      ['q', 'rate(a{b="c"}[5m])'],
      ['q', '1 + 1'],
    ]),
  );
  const place = parsePlace(address);
  expect(place.path).toEqual(['services', 'Börse/漢 & co']);
  expect(place.params.getAll('q')).toEqual(['rate(a{b="c"}[5m])', '1 + 1']);
});

test.each([
  ['a=1&b=2', { a: null }, 'b=2'],
  ['a=1', { b: 'x', c: '', d: undefined }, 'a=1&b=x'],
  ['q=1&q=2', { q: ['3', '4'] }, 'q=3&q=4'],
  ['a=1', { a: 5 }, 'a=5'],
])('%s with the changes %j becomes %s', (before, changes, after) => {
  expect(withChanges(new URLSearchParams(before), changes).toString()).toBe(after);
});
