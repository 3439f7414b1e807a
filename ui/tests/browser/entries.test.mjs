// Entries under a chart's time axis: marks, their text on hover, the table, and the filter.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, picture, texts, until, URL_BASE } from './browser.mjs';

const BOARD = process.env.TACHO_BOARD;

let browser;
let begin;

const TRACE = '0f1e2d3c4b5a6978ecd7ba92fd62a5d4';

/** Writes a log of two lines, two objects with the same members, and an order with a trace id, all within the last minute. */
before(async () => {
  browser = await launch();
  begin = Math.floor(Date.now() / 1000) - 40;
  const line = (at, text) => `page_log,host=a value="${text}" ${begin + at}`;
  const row = (at, pid) => `page_files value="{\\"pid\\":${pid},\\"name\\":\\"/tmp/${pid}\\"}" ${begin + at}`;
  const order = `page_orders value="{\\"total\\":9.5,\\"trace_id\\":\\"${TRACE}\\"}" ${begin + 7}`;
  const rows = [line(0, 'deploy of version 7'), line(20, 'out of memory'), row(5, 11), row(6, 12), order];
  const body = rows.join('\n');
  const answer = await fetch(`${URL_BASE}/write?precision=s`, { method: 'POST', body });
  assert.equal(answer.status, 204, await answer.text());
});
after(() => browser.close());

async function ask(path) {
  const answer = await fetch(`${URL_BASE}${path}`);
  assert.ok(answer.ok, await answer.clone().text());
  return answer.json();
}

const place = (more) => `#/explore?range=5m&q=${encodeURIComponent('time()')}&${more}`;

test('entries are rows of the table and marks under the chart, and a mark shows its text', async () => {
  const { page, faults, close } = await open(browser, place(`entries=${encodeURIComponent('page_log')}`));
  await page.locator('table[aria-label=Entries] tbody tr').first().waitFor();
  assert.deepEqual(
    await texts(page, '.entry-text'),
    ['out of memory', 'deploy of version 7'],
    'the newest text must be first',
  );
  const over = await page.locator('.u-over').boundingBox();
  await until('the lane has the chart’s axis', async () => {
    const ground = await page.locator('.lane-ground').boundingBox();
    return Math.abs(ground.x - over.x) < 1.5 && Math.abs(ground.width - over.width) < 1.5;
  });
  const marks = page.locator('.lane-mark');
  assert.equal(await marks.count(), 2);
  const range = 300;
  const [newest, oldest] = [await marks.nth(0).boundingBox(), await marks.nth(1).boundingBox()];
  const seconds = ((newest.x - oldest.x) / over.width) * range;
  assert.ok(Math.abs(seconds - 20) < 2, `${seconds} s between the marks`);
  await page.locator('.lane-mark').nth(1).hover();
  await until('the text is shown', async () =>
    (await page.locator('.lane-said').textContent()).includes('deploy of version 7'),
  );
  await picture(page, 'entries');
  assert.deepEqual(faults, []);
  await close();
});

test('an entry with a trace id links to the trace', async () => {
  const { page, faults, close } = await open(browser, place(`entries=${encodeURIComponent('page_orders')}`));
  const link = page.locator('table[aria-label=Entries] tbody a');
  await link.waitFor();
  assert.deepEqual(await texts(page, 'table[aria-label=Entries] th'), ['Time', 'Series', 'total', 'trace_id']);
  assert.equal(await link.textContent(), `${TRACE.slice(0, 8)}…`);
  assert.match(await link.getAttribute('href'), new RegExp(`^#/traces/${TRACE}`));
  assert.deepEqual(faults, []);
  await close();
});

test('a declared record is shown with its members, their units and its call', async () => {
  assert.ok(BOARD, 'TACHO_BOARD must be set to the address of the bulletin board');
  const title = `Lamp of ${Date.now()}`;
  const ad = new URLSearchParams({ title, text: 'Shines well', contact: 'me@example.org', price: '12.50' });
  const posted = await fetch(`${BOARD}/ads`, { method: 'POST', body: ad });
  assert.equal(posted.status, 201, await posted.clone().text());
  const id = Number((await posted.text()).match(/#(\d+)/)[1]);

  const wanted = new URLSearchParams({ 'match[]': 'board_ad_posted', field: `title=${title}` });
  let found = [];
  await until('the record is stored', async () => {
    found = (await ask(`/api/v1/entries?${wanted}`)).data.entries;
    return found.length > 0;
  });
  const { trace_id, span_id, ...members } = JSON.parse(found[0].text);
  assert.deepEqual([found.length, members], [1, { ad: id, title, price: 1250 }]);
  const [type] = (await ask('/api/v1/records?name=board_ad_posted&service=bulletin-board')).data.types;
  const fields = type.fields.map((field) => `${field.name} ${field.type} ${field.unit}`.trim());
  assert.deepEqual(fields, ['ad i64', 'title text', 'price i64 ct']);
  let span;
  await until('the call is stored', async () => {
    const answer = await fetch(`${URL_BASE}/api/traces/${trace_id}`);
    span = answer.ok ? (await answer.json()).spans.find((one) => one.id === span_id) : undefined;
    return span !== undefined;
  });
  assert.match(span.operation, /^bulletinboard\.service\.Board\.post\(/);

  const { page, faults, close } = await open(
    browser,
    place(`entries=board_ad_posted&has=${encodeURIComponent(title)}`),
  );
  const link = page.locator('table[aria-label=Entries] tbody a');
  await link.waitFor();
  const heads = await texts(page, 'table[aria-label=Entries] th');
  assert.deepEqual(heads, ['Time', 'Series', 'ad', 'title', 'price (ct)', 'trace_id', 'span_id']);
  await picture(page, 'declared');
  await link.click();
  await page.locator('.span-name', { hasText: 'POST /ads' }).first().waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('objects are shown as a table, and the address holds the filter', async () => {
  const { page, faults, close } = await open(browser, place(`entries=${encodeURIComponent('page_files')}`));
  await page.locator('table[aria-label=Entries] tbody tr').first().waitFor();
  const heads = await texts(page, 'table[aria-label=Entries] th');
  assert.deepEqual(heads, ['Time', 'Series', 'pid', 'name']);
  await page.getByLabel('Labels of entries').fill('{__name__=~"page_.+"}');
  await page.getByLabel('Text of entries').fill('memory');
  await page.getByRole('button', { name: 'Find' }).click();
  await until(
    'one entry is listed',
    async () => (await page.locator('table[aria-label=Entries] tbody tr').count()) === 1,
  );
  assert.match(page.url(), /has=memory/);
  assert.deepEqual(await texts(page, '.entry-text'), ['out of memory']);
  await page.getByLabel('Labels of entries').fill('page_log{');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.locator('.entries [role=alert]').waitFor();
  // The server refuses the incomplete selector. The browser's console reports this response, too.
  assert.deepEqual(
    faults.filter((fault) => !fault.includes('400 (Bad Request)')),
    [],
  );
  await close();
});
