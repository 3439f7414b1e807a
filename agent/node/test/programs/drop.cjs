// Drops the table for the next program.
'use strict';

const { Client } = require('pg');

(async () => {
  const client = new Client({ connectionString: process.argv[2] });
  await client.connect();
  await client.query('DROP TABLE ad');
  await client.end();
})();
