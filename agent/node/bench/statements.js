// Measures the CPU time of naming one statement, without the cache of `../src/probes/pg.js`. Prints a table: `node
// bench/statements.js`. The measured code is `../src/probes/sql.js`.

import { shape } from '../src/probes/sql.js';

const ROUNDS = 25;
const ROUND_CHARS = 400_000;

/** @param {number} count @param {string} between @param {(at: number) => string} one */
const many = (count, between, one) => Array.from({ length: count }, (_, at) => one(at)).join(between);

const TEXTS = {
  'short select':
    'select "a", "b" from "t" inner join "u" on "u"."t_id" = "t"."id" where "t"."a" = $1 and "u"."x" in ($2, $3) limit 10',
  'insert, 100 rows': `insert into t (a, b, c) values ${many(100, ',', (at) => `(${at},'x${at}',null)`)}`,
  'insert, 1300 rows': `insert into t (a, b, c) values ${many(1_300, ',', (at) => `(${at},'x${at}',null)`)}`,
  'insert, 500 rows with a function': `insert into t (a, b) values ${many(500, ', ', (at) => `(${at}, now())`)}`,
  'list of 2500 values': `select * from t where a in (${many(2_500, ',', (at) => `'${at}'`)})`,
};

/** @param {string} text @returns {number} in us */
function cost(text) {
  const count = Math.ceil(ROUND_CHARS / text.length);
  const times = [];
  for (let round = -ROUNDS; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let at = 0; at < count; at++) shape(text, 'postgresql');
    const used = process.cpuUsage(before);
    if (round >= 0) times.push((used.user + used.system) / count);
  }
  return times.sort((a, b) => a - b)[times.length >> 1];
}

console.log('\n| statement | characters | CPU us |\n|---|---|---|');
for (const [name, text] of Object.entries(TEXTS)) {
  console.log(`| ${name} | ${text.length} | ${cost(text).toFixed(1)} |`);
}
