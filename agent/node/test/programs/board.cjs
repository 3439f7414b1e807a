// Executes statements with `pg` in all ways that `pg` offers. Uses the agent only to name groups of statements.
'use strict';

const pg = require('pg');
const { promisify } = require('util');

module.exports = async function board(record) {
  const pool = new pg.Pool({ connectionString: process.argv[2], max: 2 });
  await record('create', () => pool.query('CREATE TABLE ad (id int primary key, title text)'));
  await record('values', () => pool.query('INSERT INTO ad VALUES ($1, $2), ($3, $4)', [1, 'boat', 2, "it's a bicycle"]));
  await record('literal', () => pool.query("SELECT * FROM ad WHERE title = 'boat' AND id IN (1, 2, 3)"));
  await record('callback', () => promisify((done) => pool.query({ text: 'SELECT 1 AS callback' }, done))());
  await record('config callback', async () => {
    const client = await pool.connect();
    await new Promise((done, fail) => {
      client.query({ text: 'SELECT 2', callback: (error) => (error ? fail(error) : done()) });
    });
    await record('in client', () => client.query({ name: 'prepared', text: 'SELECT $1::int AS n', values: [3] }));
    client.release();
  });
  await record('query object', async () => {
    const client = await pool.connect();
    const query = client.query(new pg.Query('SELECT 4'));
    await new Promise((done, fail) => query.on('end', done).on('error', fail));
    client.release();
  });
  await record('failing', async () => {
    await pool.query('SELECT * FROM nowhere').catch((error) => console.log(error.message));
  });
  await record('wrapping', async () => {
    await pool.query("SELECT 's3cret'::int, $1::text", ['s3cret']).catch((cause) => {
      throw new Error(`failed: ${cause.message}`, { cause });
    });
  }).catch(() => {});
  // More concurrent queries than connections: each waits for one and keeps its caller.
  await Promise.all(
    Array.from({ length: 6 }, (_, at) =>
      record(`parallel ${at}`, async () => {
        const { rows } = await pool.query('SELECT pg_sleep(0.01), $1::int AS at', [at]);
        await record(`after ${rows[0].at}`, async () => 1);
      }),
    ),
  );
  await record('long', () => pool.query(`SELECT ${'1 + '.repeat(200_000)} 1`).catch(() => console.log('too long')));
  const result = await pool.query('SELECT count(*)::int AS n FROM ad');
  console.log(`rows ${result.rows[0].n}`);
  await pool.end();
};
