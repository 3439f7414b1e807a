// Overview and one service: figures of the running program.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { colorsOf, launch, open, picture, texts, until } from './browser.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

test('the overview shows the service with its figures and charts', async () => {
  const { page, faults, close } = await open(browser, '#/services?range=15m');
  // The service's own row: the rows of its operations contain its name, too.
  const row = page.locator('tr', { has: page.locator('td a.name', { hasText: 'bulletin-board' }) });
  await row.waitFor();
  const cells = (await row.locator('td').allTextContents()).map((text) => text.trim());
  assert.match(cells[3], /\/s$/, `rate in ${cells}`);
  assert.match(cells[8], / (ns|µs|ms|s)$/, `p95 in ${cells}`);
  await until('three charts are drawn', async () => (await page.locator('.u-wrap canvas').count()) === 3);
  for (let index = 0; index < 3; index += 1)
    assert.ok((await colorsOf(page, `.panels > :nth-child(${index + 1}) canvas`)) > 2, `chart ${index} is empty`);
  await picture(page, 'overview');
  assert.deepEqual(faults, []);
  await close();
});

test('the operations of a service can be sorted and filtered, and link to their traces', async () => {
  const { page, faults, close } = await open(browser, '#/services?range=15m');
  await page.locator('td a.name', { hasText: 'bulletin-board' }).click();
  await page.locator('table[aria-label=Operations] tbody tr').first().waitFor();
  const names = await texts(page, 'table[aria-label=Operations] tbody tr td:first-child');
  assert.ok(names.length >= 5, `operations: ${names}`);
  const kinds = await texts(page, 'table[aria-label=Operations] .kind');
  for (const kind of ['HTTP server', 'method', 'database'])
    assert.ok(kinds.includes(kind), `no operation of kind ${kind}`);
  await page.getByRole('button', { name: 'Calls' }).click();
  await until(
    'the table is sorted by calls',
    async () => (await page.locator('th[aria-sort=descending]').textContent()) === 'Calls',
  );
  const counts = (await texts(page, 'table[aria-label=Operations] tbody td:nth-child(4)')).map((text) =>
    Number(text.replace(/\D/g, '')),
  );
  assert.deepEqual(
    counts,
    [...counts].sort((a, b) => b - a),
  );
  assert.match(page.url(), /sort=count/);
  await page.getByLabel('Find an operation').fill('zzz');
  await page.getByText('Nothing matches').waitFor();
  await page.getByLabel('Find an operation').fill('');
  await picture(page, 'service');
  await page
    .locator('table[aria-label=Operations] tbody tr', { hasText: 'HTTP server' })
    .first()
    .locator('a.name')
    .click();
  await page.locator('table[aria-label=Traces] tbody tr').first().waitFor();
  assert.match(page.url(), /#\/traces\?.*operation=/);
  assert.deepEqual(faults, []);
  await close();
});

test('the call tree of a service is drawn, and keys select its bars', async () => {
  const { page, faults, close } = await open(browser, '#/services/bulletin-board?range=15m&tab=tree');
  const canvas = page.locator('.icicle canvas');
  await canvas.waitFor();
  await until('bars are drawn', async () => (await colorsOf(page, '.icicle canvas')) > 5);
  await canvas.focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await until('a call is described', async () => /in all/.test(await page.locator('.chosen-call').textContent()));
  assert.doesNotMatch(await page.locator('.chosen-call b').first().textContent(), /^All of/);
  await picture(page, 'calltree');
  assert.deepEqual(faults, []);
  await close();
});
