// Agents and rules. The page and the command line set rules, and the agent in the running program applies them. This file must
// run last, because it switches off methods that the other tests need. `start.mjs` runs the files in the order of their names.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, afterEach, before, test } from 'node:test';
import { promisify } from 'node:util';
import { launch, open, picture, until, URL_BASE } from './browser.mjs';

const BOARD = process.env.TACHO_BOARD;
const TACHO = process.env.TACHO_BIN;
const PATTERN = 'bulletinboard..*';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());
afterEach(async () => {
  await fetch(`${URL_BASE}/api/v1/probes?all=1`, { method: 'DELETE' });
});

async function data(path, params = {}) {
  const answer = await fetch(`${URL_BASE}${path}?${new URLSearchParams(params)}`);
  assert.ok(answer.ok, await answer.clone().text());
  return answer.json();
}

/** Waits until the agent has applied the current rules. Returns the agent. */
async function settled() {
  let agent;
  await until('the agent follows its rules', async () => {
    const { agents } = (await data('/api/v1/agents', { service: 'bulletin-board' })).data;
    agent = agents.find((one) => one.state === 'follows');
    return agent !== undefined;
  });
  return agent;
}

test('the page shows the program, switches its methods and shows the result', async () => {
  const { on } = (await settled()).probes;
  assert.ok(on > 0);
  const { page, faults, close } = await open(browser, '#/agents');
  const agent = page.locator('table[aria-label=Agents] tbody tr', { hasText: 'bulletin-board' });
  await agent.getByText('rules applied').waitFor();
  await page.getByText('No rules').waitFor();

  await page.locator('select[name=state]').selectOption('off');
  await page.getByLabel('Pattern').fill(PATTERN);
  await page.getByLabel('Service').fill('bulletin-board');
  await page.getByRole('button', { name: 'Add' }).click();
  const rule = page.locator('table[aria-label=Rules] tbody tr', { hasText: PATTERN });
  await rule.getByText(/methods in 1 agent$/).waitFor();
  const counts = async () => (await agent.locator('td.num').allTextContents()).slice(1, 4);
  await until('no method is on', async () => (await counts())[0] === '0');
  assert.ok(
    Number((await counts())[2].replace(/\D/g, '')) >= on,
    `on, aggregated, off: ${await counts()}; before: ${on} on`,
  );
  assert.equal(await page.getByLabel('Pattern').inputValue(), '', 'the form must be empty, ready for another pattern');
  await picture(page, 'agents');

  await rule.getByRole('button', { name: 'Aggregate' }).click();
  await until('methods are aggregated', async () => (await counts())[1] !== '0');
  assert.deepEqual(
    (await counts()).map((text) => text !== '0'),
    [false, true, false],
  );
  await rule.getByRole('button', { name: 'On' }).click();
  await until('methods are on again', async () => (await counts())[0] !== '0');
  await until('there is one rule', async () => (await rule.count()) === 1);
  // The server accepts every character beyond ASCII, because the letters of a name depend on the programming language. The
  // agent refuses the arrow.
  await page.getByLabel('Pattern').fill('wrong.→');
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByText('failed in 1 of 1 agent').waitFor();
  await page.getByText(/^Rule \d+ in bulletin-board on .*wrong\.→/).waitFor();
  await page.getByRole('button', { name: 'Remove all' }).click();
  await page.getByText('No rules').waitFor();
  await until("the agent's own settings apply again", async () => (await settled()).probes.on === on);
  assert.deepEqual(faults, []);
  await close();
});

test('the form shows the error message of the server and keeps the input', async () => {
  const { page, close } = await open(browser, '#/agents');
  await page.getByText('No rules').waitFor();
  for (const { pattern, service, said } of [
    { pattern: 'a', service: 's'.repeat(513), said: 'service has 513 bytes, at most 512 are allowed' },
    { pattern: 'shop.Board(', service: '', said: "'(' cannot be part of a pattern" },
  ]) {
    await page.getByLabel('Pattern').fill(pattern);
    await page.getByLabel('Service').fill(service);
    await page.getByRole('button', { name: 'Add' }).click();
    await page.getByText(said).waitFor();
    assert.equal(await page.getByLabel('Pattern').inputValue(), pattern);
  }
  await close();
});

/** Number of calls of the board, since its start, that were counted instead of recorded. */
async function countedCalls() {
  const query = 'sum(tacho_operation_seconds_count{service="bulletin-board"})';
  const { result } = (await data('/api/v1/query', { query })).data;
  return result.length === 0 ? 0 : Number(result[0].value[1]);
}

/** Number of recorded calls of methods of the board between two moments (Unix seconds). */
async function methodCalls(start, end) {
  const { operations } = await data('/api/operations', { service: 'bulletin-board', kind: 'method', start, end });
  return operations.reduce((sum, one) => sum + one.count, 0);
}

test('a rule from the command line takes effect in the running program', async (t) => {
  assert.ok(BOARD, 'TACHO_BOARD must be set to the address of the bulletin board');
  await settled();
  let stopped = false;
  let requests = 0;
  const visitor = (async () => {
    for (; !stopped; requests += 1) await (await fetch(`${BOARD}/ads?page=1`)).text();
  })();
  const tacho = (...args) => promisify(execFile)(TACHO, ['probes', ...args, '--wait', '30s', '--server', URL_BASE]);
  const clock = () => Date.now() / 1000;
  try {
    await until('calls are recorded', async () => (await methodCalls(clock() - 1, clock())) > 0);
    const offAt = clock();
    await tacho('off', PATTERN, '--service', 'bulletin-board');
    const off = clock();
    t.diagnostic(`off: ${((off - offAt) * 1000).toFixed(0)} ms from the command to the program's answer`);
    const before = requests;
    await until('the program has answered 50 more requests', async () => requests > before + 50 && clock() > off + 1);
    const onAt = clock();
    // Calls that were open when the methods were switched off have ended within 0.2 s.
    assert.equal(await methodCalls(off + 0.2, onAt), 0);
    await tacho('on', PATTERN, '--service', 'bulletin-board');
    await until('calls are recorded again', async () => (await methodCalls(onAt, clock() + 1)) > 0);
    t.diagnostic(`on: ${((clock() - onAt) * 1000).toFixed(0)} ms from the command to the first call in an answer`);
    await tacho('aggregate', PATTERN, '--service', 'bulletin-board');
    const aggregated = clock();
    const counted = await countedCalls();
    await until('calls are counted', async () => (await countedCalls()) > counted && clock() > aggregated + 1, 30_000);
    assert.equal(await methodCalls(aggregated + 0.2, clock()), 0);
  } finally {
    stopped = true;
    await visitor;
  }
});
