// The texts of exceptions contain data of a database only if TACHO_DATABASE_MESSAGES is true. The tests search all bytes that a
// program sends.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Postgres } from './support/postgres.js';
import { Tacho, run } from './support/tacho.js';
import { wiretap } from './support/wiretap.js';

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

const LIBRARIES = {
  sequelize: ['DatabaseError (22P02)', 'DatabaseError (22P02)', 'DatabaseError (22P02)'],
  knex: ['DatabaseError (22P02)', 'DatabaseError (42P01)'],
  drizzle: ['DrizzleQueryError (22P02)', 'DrizzleQueryError (42P01)'],
  mssql: ['RequestError (2627)', 'AggregateError (EREQUEST)'],
  oracledb: ['Error (NJS-515)'],
};
for (const [name, expected] of Object.entries(LIBRARIES)) {
  for (const messages of ['false', 'true']) {
    test(`exceptions of ${name} are sent ${messages === 'true' ? 'with' : 'without'} data`, async () => {
      const wire = await wiretap(tacho);
      const service = `${name} ${messages}`;
      const env = { TACHO_DATABASE_MESSAGES: messages };
      const { code, out, err } = await run(wire, 'databases.cjs', { args: [name, postgres.url], service, env });
      wire.close();
      assert.equal(code, 0, err);
      assert.doesNotMatch(err, /agent failed/);
      const classes = expected.map((text) => text.split(' ')[0]);
      assert.deepEqual(
        out.trim().split('\n'),
        classes.map((one) => `${one} true`),
      ); // the program gets the full messages
      const { traces } = await tacho.get('/api/traces', { service });
      const told = [];
      for (const { trace_id: id } of traces.filter(({ operation }) => operation === 'outer')) {
        const { spans } = await tacho.get(`/api/traces/${id}`);
        told.push(spans.map(({ attributes }) => attributes.exception).filter((text) => text !== undefined));
      }
      const heard = wire.heard();
      assert.ok(heard.includes(classes[0]), 'no exception was sent');
      assert.equal(heard.includes('s3cret'), messages === 'true');
      if (messages === 'false') {
        const found = told.flat().filter((text) => !text.startsWith('RangeError'));
        for (const text of expected) assert.ok(found.includes(text), `${text} is not in ${found}`);
      }
    });
  }
}
