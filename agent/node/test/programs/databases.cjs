// Runs failing statements with the library named by the first argument. Prints for each exception its class and whether its
// message contains the secret.
'use strict';

const [name, url] = process.argv.slice(2);

/** Each property returns functions that fail with the secret in the message. */
const LIBRARIES = {
  async sequelize() {
    const { DataTypes, Sequelize } = require('sequelize');
    const database = new Sequelize(url, { logging: false });
    const Ad = database.define('ad_of_sequelize', { title: { type: DataTypes.STRING, unique: true } }, { timestamps: false });
    await Ad.sync({ force: true });
    return [
      () => database.query("select 's3cret'::int"),
      () => database.query('select :title::int', { replacements: { title: 's3cret' } }),
      () => Ad.findAll({ where: { id: 's3cret' } }),
    ];
  },
  async knex() {
    const database = require('knex')({ client: 'pg', connection: url });
    return [() => database.raw("select 's3cret'::int"), () => database('nowhere').whereRaw("title = 's3cret'")];
  },
  async drizzle() {
    const { drizzle } = require('drizzle-orm/node-postgres');
    const { sql } = require('drizzle-orm');
    const database = drizzle(url);
    return [
      () => database.execute(sql`select ${'s3cret'}::text::int`),
      () => database.execute(sql.raw("select 's3cret' from nowhere")),
    ];
  },
  async mssql() {
    const { RequestError } = require('mssql');
    const told = { number: 2627, message: 'Violation of UNIQUE KEY constraint. The duplicate key value is (s3cret).' };
    const thrown = () => Promise.reject(new RequestError(Object.assign(new Error(told.message), { info: told }), 'EREQUEST'));
    return [
      thrown,
      () => Promise.reject(new AggregateError([Object.assign(new Error('s3cret'), { code: 'EREQUEST' })], 's3cret')),
    ];
  },
  async oracledb() {
    const oracledb = require('oracledb');
    return [() => oracledb.getConnection({ user: 'shop', password: 'x', connectString: '127.0.0.1:1/s3cret/s3cret/s3cret' })];
  },
};

(async () => {
  const { record } = await import('tachograph');
  const told = [];
  for (const fails of await LIBRARIES[name]()) {
    const caught = await record('outer', () =>
      record('inner', async () => fails()).catch((error) => {
        told.push(`${error.constructor.name} ${error.message.includes('s3cret')}`);
        throw new RangeError(`given up: ${error.message}`, { cause: error });
      }),
    ).catch((error) => error);
    if (!(caught instanceof RangeError)) throw caught;
  }
  console.log(told.join('\n'));
  process.exit(0);
})();
