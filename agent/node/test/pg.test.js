// All ways to execute statements with `pg` are recorded. The statements run in a real PostgreSQL.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Postgres } from './support/postgres.js';
import { Tacho, outline, run } from './support/tacho.js';

/** @type {Tacho} */
let tacho;
/** @type {Postgres} */
let postgres;
before(async () => {
  tacho = await Tacho.start();
  postgres = await Postgres.start();
});
after(async () => {
  postgres.close();
  await tacho.close();
});

const TREES = {
  create: ['create', '  Pool.connect', '  CREATE TABLE ad (id int primary key, title text)'],
  values: ['values', '  Pool.connect', '  INSERT INTO ad VALUES (?, ?), ...'],
  literal: ['literal', '  Pool.connect', '  SELECT * FROM ad WHERE title = ? AND id IN (?)'],
  callback: ['callback', '  Pool.connect', '  SELECT ? AS callback'],
  'config callback': ['config callback', '  Pool.connect', '  SELECT ?', '  in client', '    SELECT ?::int AS n'],
  'query object': ['query object', '  Pool.connect', '  SELECT ?'],
  failing: ['failing', '  Pool.connect', '  SELECT * FROM nowhere'],
};
const PROGRAMS = [
  ['board-cjs.cjs', ['--require', 'tachograph/register.cjs']],
  ['board-esm.js', ['--import', 'tachograph/register']],
  ['board-cjs.cjs', ['--import', 'tachograph/register']],
];
for (const [program, flags] of PROGRAMS) {
  test(`statements of ${program} with ${flags[0]} are recorded`, async () => {
    const service = `${program} ${flags[0]}`;
    const { code, out, err } = await run(tacho, program, { flags, service, args: [postgres.url] });
    assert.equal(code, 0, err);
    assert.match(out, /relation "nowhere" does not exist\n(too long\n)?rows 2/);
    assert.doesNotMatch(err, /agent failed/);
    for (const [operation, tree] of Object.entries(TREES)) {
      assert.deepEqual(outline(await tacho.trace(service, operation)), tree);
    }
    const [, wait, statement] = await tacho.trace(service, 'literal');
    assert.deepEqual([wait.kind, statement.kind, statement.outcome], ['connection-wait', 'database', 'ok']);
    const failing = (await tacho.trace(service, 'failing')).at(-1);
    assert.equal(failing.outcome, 'failed');
    assert.equal(failing.attributes.exception, 'DatabaseError (42P01)');
    const wrapping = await tacho.trace(service, 'wrapping');
    assert.equal(wrapping[0].attributes.exception, 'Error (22P02)');
    assert.equal(wrapping.at(-1).attributes.exception, 'DatabaseError (22P02)');
    assert.ok(!JSON.stringify(wrapping).includes('s3cret'));
    for (let at = 0; at < 6; at++) {
      const spans = await tacho.trace(service, `parallel ${at}`);
      const statements = ['  Pool.connect', '  SELECT pg_sleep(?), ?::int AS at', `  after ${at}`];
      assert.deepEqual(outline(spans), [`parallel ${at}`, ...statements]);
      assert.ok(spans[2].duration_ns >= 9e6, `${spans[2].duration_ns}`);
    }
    const operations = await tacho.operations(service);
    const long = [...operations.keys()].find((name) => name.startsWith('SELECT ? + ? + '));
    assert.equal(long.length, 1_000);
    const drop = await run(tacho, 'drop.cjs', { args: [postgres.url], service: 'drop' });
    assert.equal(drop.code, 0, drop.err);
  });
}
