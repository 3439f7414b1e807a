// Explore: completion, chart, table, zoom, and errors in a query.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { colorsOf, launch, open, picture, texts, until } from './browser.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const QUERY = 'sum by (kind) (rate(tacho_records_received_total[1m]))';

test('metrics are listed, and a click on one opens its query', async () => {
  const { page, faults, close } = await open(browser, '#/explore?range=5m');
  await page.locator('.metrics a').first().waitFor();
  const names = await texts(page, '.metrics a');
  assert.ok(
    names.some((name) => name.startsWith('tacho_')),
    `metrics: ${names}`,
  );
  await page.locator('.metrics a').first().click();
  await page.locator('table[aria-label=Values] tbody tr, .state').first().waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('a query is completed, run by Enter, charted and listed', async () => {
  const { page, faults, close } = await open(browser, '#/explore?range=5m');
  const field = page.getByRole('textbox', { name: 'Query A' });
  await field.focus();
  await page.keyboard.type('tacho_records_rec');
  await page.locator('.completions li', { hasText: 'tacho_records_received_total' }).waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.type('{ki');
  await page.locator('.completions li', { hasText: 'kind' }).waitFor();
  await page.keyboard.press('Enter');
  await page.locator('.completions li', { hasText: 'execution' }).waitFor();
  await page.keyboard.type('exec');
  await page.keyboard.press('Enter');
  await page.keyboard.type('}');
  assert.equal(await field.inputValue(), 'tacho_records_received_total{kind="execution"}');
  await page.keyboard.press('Enter');
  await page.locator('table[aria-label=Values] tbody tr').first().waitFor();
  await until('a line is drawn', async () => (await colorsOf(page, '.u-wrap canvas')) > 2);
  assert.match(page.url(), /q=tacho_records_received_total/);
  assert.deepEqual(faults, []);
  await close();
});

test('a click in the legend shows one line, a second click shows all lines, and dragging sets the time range', async () => {
  const { page, faults, close } = await open(browser, `#/explore?range=5m&q=${encodeURIComponent(QUERY)}`);
  const entries = page.locator('.legend button');
  await entries.first().waitFor();
  const count = await entries.count();
  assert.ok(count >= 2, `${count} lines`);
  await entries.first().click();
  assert.equal(await page.locator('.legend button[aria-pressed=false]').count(), count - 1);
  await entries.first().click();
  assert.equal(await page.locator('.legend button[aria-pressed=false]').count(), 0);
  await picture(page, 'explore');
  const over = await page.locator('.u-over').boundingBox();
  await page.mouse.move(over.x + over.width * 0.5, over.y + 50);
  await page.mouse.down();
  await page.mouse.move(over.x + over.width * 0.9, over.y + 60, { steps: 4 });
  await page.mouse.up();
  await until('the range is fixed', async () => /from=\d+.*to=\d+/.test(page.url()));
  const params = new URLSearchParams(page.url().split('?')[1]);
  const seconds = Number(params.get('to')) - Number(params.get('from'));
  assert.ok(seconds > 100 && seconds < 140, `the range has ${seconds} s`);
  assert.deepEqual(faults, []);
  await close();
});

test('the tooltip of the chart shows the values at the pointer', async () => {
  const { page, faults, close } = await open(browser, `#/explore?range=5m&q=${encodeURIComponent('time()')}`);
  await page.locator('table[aria-label=Values] tbody tr').first().waitFor();
  const over = await page.locator('.u-over').boundingBox();
  await page.mouse.move(over.x + over.width / 2, over.y + over.height / 2);
  await until('the tooltip has a date', async () =>
    /\d{4}-\d\d-\d\d/.test(await page.locator('.chart .tip').textContent()),
  );
  assert.deepEqual(faults, []);
  await close();
});

test('an error in a query is shown with its position, and the other query still runs', async () => {
  const { page, faults, close } = await open(
    browser,
    `#/explore?range=5m&q=${encodeURIComponent('1 + 1')}&q=${encodeURIComponent('sum(tacho_records_received_total')}`,
  );
  const alert = page.locator('.fault');
  await alert.waitFor();
  // The marked position is the end of the query; the message names the bracket.
  assert.equal(await alert.locator('mark').textContent(), ' ');
  assert.match(await alert.locator('span').textContent(), /to close the "\(" at column 4, found the end of the query/);
  assert.equal(await page.getByRole('textbox', { name: 'Query B' }).getAttribute('aria-invalid'), 'true');
  assert.deepEqual(await texts(page, 'table[aria-label=Values] tbody td:last-child'), ['2']);
  await picture(page, 'explore-fault');
  // Chromium reports the status 400 on its console; no other error is expected.
  assert.deepEqual(
    faults.filter((fault) => !/status of 400/.test(fault)),
    [],
  );
  await close();
});

test('a query without a result shows an empty state', async () => {
  const { page, faults, close } = await open(browser, '#/explore?q=up&from=1000000000&to=1000003600');
  await page.getByRole('heading', { name: 'No series' }).waitFor();
  await page.getByText('No data for this query').waitFor();
  assert.deepEqual(faults, []);
  await close();
});
