// The statements and shapes of `testdata/sql`, which all agents share.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { shape } from '../src/probes/sql.js';
import { random } from './support/parts.js';

/** @typedef {import('../src/probes/sql.js').Dialect} Dialect */

/** @type {Dialect[]} */
const DIALECTS = ['postgresql', 'mysql', 'sqlite', 'sqlserver', 'standard', 'other'];

/** Placeholders in the tables of `testdata/sql`, and the characters that they stand for. @type {Record<string, string>} */
const SIGNS = { '⏎': '\n', '⇤': '\r', '␜': '\x1c', '␤': '\x85' };

/** @param {string} name */
const lines = (name) =>
  readFileSync(new URL(`../../../testdata/sql/${name}`, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.replace(/[⏎⇤␜␤]/g, (sign) => SIGNS[sign]).split('\t'));

/** @param {string} names @param {Dialect} dialect */
const isOf = (names, dialect) => names === '*' || names.split(',').includes(dialect);

for (const dialect of DIALECTS) {
  test(`statements of ${dialect} have the shapes of the table`, () => {
    for (const [, text, expected] of lines('shapes.tsv').filter(([names]) => isOf(names, dialect))) {
      assert.equal(shape(text, dialect), expected, text);
    }
  });

  test(`no shape contains a literal: ${dialect}`, () => {
    const literals = lines('literals.tsv').filter(([names]) => isOf(names, dialect));
    const statements = lines('statements.txt');
    const next = random(7);
    for (let round = 0; round < 20_000; round++) {
      const [statement] = statements[next(statements.length)];
      const whole = statement.replaceAll('{}', () => literals[next(literals.length)][1].replaceAll('§', 's3cret'));
      const text = next(2) === 0 ? whole : whole.slice(0, next(whole.length));
      assert.ok(!shape(text, dialect).includes('s3c'), `${shape(text, dialect)} of ${text}`);
    }
  });

  test(`any text has a shape in ${dialect}`, () => {
    const next = random(1);
    const signs = [...'\'"`$-/*?(),;: \n\\ab1Eein.[]#%@!q漢', '\ud83d'];
    for (let round = 0; round < 5_000; round++) {
      const text = Array.from({ length: next(40) }, () => signs[next(signs.length)]).join('');
      assert.ok(shape(text, dialect).length <= 1_000, text);
    }
    assert.equal(shape('', dialect), '');
  });
}

test('long statements are cut, and read only in part', () => {
  const wide = shape(`select ${'a, '.repeat(5_000)}`, 'postgresql');
  assert.equal(wide.length, 1_000);
  assert.ok(wide.endsWith('...'));
  const rows = Array.from({ length: 100_000 }, (_, at) => `(${at}, 'x')`).join(', ');
  assert.equal(shape(`insert into t values ${rows}`, 'mysql'), 'insert into t values (?, ?), ...');
  const list = Array.from({ length: 100_000 }, (_, at) => at - 50).join(', ');
  assert.equal(shape(`select a from t where b in (${list})`, 'mysql'), 'select a from t where b in (?...');
});
