// Rules of a real server, set by the command line, reach a real program, and the server shows the result.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Tacho, outline, start, until } from './support/tacho.js';

/** @type {Tacho} */
let tacho;
before(async () => {
  tacho = await Tacho.start();
});
after(() => tacho.close());

const PRICE = 'shop.Price.of';
const POST = 'shop.Board.post';
const TURN = 'shop.turn';
const CLIENT = 'GET 127.0.0.1';
const SERVER = 'GET /ads';
const EVERY = [CLIENT, SERVER, POST, PRICE, TURN];

async function recorded(service) {
  const counts = async () => {
    const found = [...(await tacho.operations(service)).values()];
    return new Map(found.map(({ operation, count }) => [operation.replace(/:\d+$/, ''), count]));
  };
  const earlier = await counts();
  await sleep(300);
  const now = [...(await counts())];
  return now.filter(([name, count]) => count > (earlier.get(name) ?? 0)).map(([name]) => name);
}

/** Waits until exactly these operations are recorded. */
const untilRecorded = (service, names) =>
  until(`${service}: ${names}`, async () => {
    const found = await recorded(service);
    return found.sort().join() === [...names].sort().join();
  });

/** The state of the only connected agent of a service. */
async function agent(service) {
  const { data } = await tacho.get('/api/v1/agents', { service });
  const connected = data.agents.filter(({ left }) => left === null);
  assert.equal(connected.length, 1);
  return connected[0];
}

/** `tacho probes ...`: its JSON output and its status. `on`, `off` and `aggregate` wait for the agents. */
async function probes(verb, ...args) {
  const patience = verb === 'clear' ? [] : ['--wait', '60s'];
  const { code, out, err } = await tacho.command('probes', verb, ...args, ...patience, '--json');
  return { code, err, ...(out === '' ? {} : JSON.parse(out)) };
}

async function underWay(service, env = {}) {
  const program = start(tacho, 'switched.js', { service, env });
  await program.line(/under way/);
  return async () => {
    program.child.stdin.write('stop\n');
    const { code, err } = await program.ended;
    assert.equal(code, 0, err);
    assert.doesNotMatch(err, /agent failed|fault/);
    await probes('clear', '--all');
  };
}

const STEPS = [
  // Command; operations that are recorded after it; number of operations that the rule decides; numbers of operations that are
  // on, aggregated and off.
  [['off', 'shop.Price.*'], [CLIENT, SERVER, POST, TURN], 1, [4, 0, 1]],
  [['off', 'shop.Board'], [CLIENT, SERVER, TURN], 1, [3, 0, 2]],
  [['on', 'shop..*'], EVERY, 3, [5, 0, 0]],
  [['off', 'http-client'], [SERVER, POST, PRICE, TURN], 1, [4, 0, 1]],
  [['off', '*'], [], 5, [0, 0, 5]],
  [['on', 'http-server'], [SERVER], 1, [1, 0, 4]],
  [['aggregate', 'shop.*.*'], [SERVER], 2, [1, 2, 2]],
  [['on', '*'], EVERY, 5, [5, 0, 0]],
];
test('probes are switched off and on again', async () => {
  const service = 'switched';
  const end = await underWay(service);
  await untilRecorded(service, EVERY);
  for (const [[state, pattern], names, matched, counts] of STEPS) {
    const { code, err, agents } = await probes(state, pattern, '--service', service);
    assert.equal(code, 0, err);
    assert.equal(agents[0].probes.rules[0].matched, matched, pattern);
    await untilRecorded(service, names);
    const { state: standing, probes: told } = await agent(service);
    assert.equal(standing, 'follows');
    assert.deepEqual([told.on, told.aggregated, told.off], counts, pattern);
  }
  const clear = await probes('clear', '--all');
  assert.equal(clear.code, 0, clear.err);
  await untilRecorded(service, EVERY);
  await end();
});

test('a trace without the switched-off calls is complete', async () => {
  const service = 'whole';
  await probes('off', 'shop.Board.post', '--service', service);
  await probes('off', 'http-client', '--service', service);
  const end = await underWay(service);
  await untilRecorded(service, [SERVER, PRICE, TURN]);
  const whole = [TURN, `  ${SERVER}`, `    ${PRICE}`, `    ${PRICE}`].join('\n');
  await until('a whole trace', async () => {
    const { traces } = await tacho.get('/api/traces', { service });
    // The newest trace may be incomplete: the calls of the program and those of its server are sent as two segments.
    const newest = traces.filter(({ operation }) => operation === TURN).slice(0, 5);
    const found = await Promise.all(newest.map(async ({ trace_id }) => (await tacho.get(`/api/traces/${trace_id}`)).spans));
    const outlines = found.map((spans) => outline(spans).join('\n'));
    if (!outlines.includes(whole)) throw new Error(outlines.join('\n'));
    return true;
  });
  await end();
});

test('aggregated operations are counted', async () => {
  const service = 'counted';
  await probes('aggregate', 'shop.Price.of', '--service', service);
  await probes('aggregate', 'database', '--service', service);
  const end = await underWay(service, { TACHO_SAMPLE_INTERVAL: '200ms' });
  await untilRecorded(service, [CLIENT, SERVER, POST, TURN]);
  await until('the report of a program that follows the rules', async () => {
    const { on, aggregated, off, rules } = (await agent(service)).probes;
    return [on, aggregated, off, ...rules.map(({ matched }) => matched)].join() === '4,1,0,1,0';
  });
  await end();
  const labels = `{service="${service}",operation="${PRICE}",caller="${POST}"}`;
  const [count, sum] = await Promise.all(['count', 'sum'].map((name) => tacho.value(`tacho_operation_seconds_${name}${labels}`)));
  const operations = await tacho.operations(service);
  const early = operations.get(PRICE)?.count ?? 0; // before the program applied the rule
  assert.equal(count + early, 2 * operations.get(POST).count, 'the counts must be complete when the program has ended');
  assert.ok(sum > 0 && sum < count, `${sum}`);
  const all = await tacho.value(`tacho_operation_seconds_bucket{service="${service}",operation="${PRICE}",le="+Inf"}`);
  assert.equal(all, count);
});

test('an invalid rule, or one without matches, is reported', async () => {
  const service = 'faulty';
  const end = await underWay(service);
  await untilRecorded(service, EVERY);
  const faulty = await probes('off', '@com.shop.Watched', '--service', service);
  assert.equal(faulty.code, 3);
  assert.match(faulty.err, /cannot follow the rule: .*not supported in JavaScript/);
  const nothing = await probes('off', 'com.shop..*', '--service', service);
  assert.equal(nothing.code, 0);
  assert.match(nothing.err, /com\.shop\.\.\* decides no method of faulty/);
  await untilRecorded(service, EVERY);
  await end();
});

test('a program that starts later gets the rules; after a restart the server sends only those set with --keep', async () => {
  const service = 'later';
  await probes('off', PRICE, '--service', service, '--keep');
  await probes('off', POST, '--service', service);
  const end = await underWay(service);
  await untilRecorded(service, [CLIENT, SERVER, TURN]);
  await tacho.kill();
  await sleep(200);
  await tacho.start();
  await untilRecorded(service, [CLIENT, SERVER, POST, TURN]);
  assert.equal((await agent(service)).state, 'follows');
  await end();
});
