// Traces: search, scatter, list; one trace as icicle, tree and details.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { colorsOf, launch, open, picture, texts, until, URL_BASE } from './browser.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const rows = 'table[aria-label=Traces] tbody tr';

test('traces are listed, drawn as marks, and searched', async () => {
  const { page, faults, close } = await open(browser, '#/traces?range=15m');
  await page.locator(rows).first().waitFor();
  const count = await page.locator(rows).count();
  assert.ok(count >= 50, `${count} traces`);
  assert.equal(await page.locator('.scatter .mark').count(), count);
  await picture(page, 'traces');
  await page.getByLabel('Shortest').fill('1ns');
  await page.getByLabel('Longest').fill('10m');
  await page.getByLabel('Service').selectOption('bulletin-board');
  await until(
    'the address holds the search',
    async () => /service=bulletin-board/.test(page.url()) && /max=10m/.test(page.url()),
  );
  await until(
    'only traces of one service are listed',
    async () => new Set(await texts(page, `${rows} td:nth-child(3)`)).size === 1,
  );
  await page.getByLabel('Longest').fill('1ns');
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('No trace matches').waitFor();
  await page.getByRole('link', { name: 'Clear the search' }).click();
  await page.locator(rows).first().waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('traces are searched by status and by a part of the name of a call, page by page', async () => {
  const { page, faults, close } = await open(browser, '#/traces?range=15m&status=2xx&limit=100');
  await page.locator(rows).first().waitFor();
  const listed = () => page.locator(`${rows} a.name`).evaluateAll((links) => links.map((link) => link.href));
  const first = await listed();
  assert.equal(first.length, 100);
  await page.getByRole('button', { name: 'Next page' }).click();
  await page.getByRole('button', { name: 'First page' }).waitFor();
  await until('the next page is listed', async () => {
    const second = await listed();
    return second.length > 0 && second.every((trace) => !first.includes(trace));
  });
  await page.getByLabel('Status').fill('');
  await page.getByLabel('Name contains').fill('no such statement');
  await page.keyboard.press('Enter');
  await page.getByText('No trace matches').waitFor();
  assert.doesNotMatch(page.url(), /after=/);
  assert.deepEqual(faults, []);
  await close();
});

test('an invalid duration in the address is reported', async () => {
  const { page, faults, close } = await open(browser, '#/traces?min=fast');
  await page.getByRole('alert').waitFor();
  assert.match(await page.getByRole('alert').textContent(), /"fast".*1\.5ms/);
  assert.deepEqual(faults, []);
  await close();
});

test('a request id finds its trace', async () => {
  const { page, faults, close } = await open(browser, '#/traces?range=15m');
  await page.locator(rows).first().waitFor();
  const id = (await texts(page, `${rows} td:last-child`)).find((text) => text.length > 4);
  assert.ok(id !== undefined, 'no trace has a request id');
  await page.getByLabel('Request id').fill(id);
  await page.keyboard.press('Enter');
  await until('one trace is listed', async () => (await page.locator(rows).count()) === 1);
  assert.deepEqual(await texts(page, `${rows} td:last-child`), [id]);
  assert.deepEqual(faults, []);
  await close();
});

test('a click on a mark of the scatter opens its trace; a box drawn with the mouse narrows the search', async () => {
  const { page, faults, close } = await open(browser, '#/traces?range=5m');
  await page.locator('.scatter .mark').first().waitFor();
  const mark = await page.locator('.scatter .mark').first().boundingBox();
  await page.mouse.move(mark.x + mark.width / 2, mark.y + mark.height / 2);
  await page.locator('.scatter .tip').waitFor();
  await page.mouse.down();
  await page.mouse.up();
  await until('the trace is open', async () => /#\/traces\/[0-9a-f]{32}/.test(page.url()));
  await page.goBack();
  await page.locator('.scatter .mark').first().waitFor();
  const box = await page.locator('.scatter svg').boundingBox();
  await page.mouse.move(box.x + 80, box.y + 12);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 12, box.y + box.height - 30, { steps: 4 });
  await page.mouse.up();
  await until('the address holds the box', async () => /from=.*to=.*min=.*max=/.test(page.url()));
  assert.deepEqual(faults, []);
  await close();
});

test('a trace shows its figures, icicle and details, and keys select spans in the tree and zoom the icicle', async () => {
  const { page, faults, close } = await open(browser, '#/traces?range=15m&outcome=ok');
  await page.locator(`${rows} a.name`).first().click();
  await page.locator('.waterfall .span-row').first().waitFor();
  await until('bars are drawn', async () => (await colorsOf(page, '.icicle canvas')) > 5);
  const spans = Number(await page.locator('.tile', { hasText: 'Spans' }).locator('dd').textContent());
  assert.ok(spans >= 3, `${spans} spans`);
  assert.equal(await page.locator('.waterfall').getAttribute('aria-rowcount'), String(spans));
  await page.locator('.waterfall').focus();
  const chosen = () => page.locator('.waterfall .span-row.chosen').textContent();
  const root = await chosen();
  await page.keyboard.press('ArrowLeft');
  await until(
    'the root is closed',
    async () => (await page.locator('.waterfall').getAttribute('aria-rowcount')) === '1',
  );
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await until('the first child is chosen', async () => (await chosen()) !== root);
  assert.match(page.url(), /span=[0-9a-f]{16}/);
  assert.match(await page.locator('.details').textContent(), /Self time/);
  await page.locator('.icicle canvas').focus();
  await page.keyboard.press('+');
  await until('the address holds the zoom', async () => /at=\d+-\d+/.test(page.url()));
  await page.keyboard.press('0');
  await until('the whole trace is shown again', async () => !/at=/.test(page.url()));
  await picture(page, 'trace');
  assert.deepEqual(faults, []);
  await close();
});

test('the trace with the most calls contains HTTP, methods and a statement, and opens at its address', async () => {
  const list = await (await fetch(`${URL_BASE}/api/traces?limit=50&outcome=ok`)).json();
  const largest = list.traces.sort((a, b) => b.calls - a.calls)[0];
  const { page, faults, close } = await open(browser, `#/traces/${largest.trace_id}`);
  await page.locator('.waterfall .span-row').first().waitFor();
  const kinds = await texts(page, '.panel-head .kind');
  for (const kind of ['HTTP server', 'method', 'database'])
    assert.ok(kinds.includes(kind), `${kind} is not in ${kinds}`);
  await page.getByRole('button', { name: 'Copy id' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('a trace that does not exist shows the error message of the server', async () => {
  const { page, faults, close } = await open(browser, '#/traces/00000000000000000000000000000001');
  await page.getByRole('alert').waitFor();
  assert.match(await page.getByRole('alert').textContent(), /Not found \(404\) \S/);
  assert.deepEqual(
    faults.filter((fault) => !/status of 404/.test(fault)),
    [],
  );
  await close();
});
