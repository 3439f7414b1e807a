// Drops the table `ad`, so that the next run of `board.cjs` can create it.
'use strict';

const { Client } = require('pg');

(async () => {
  const client = new Client({ connectionString: process.argv[2] });
  await client.connect();
  await client.query('DROP TABLE ad');
  await client.end();
})();
