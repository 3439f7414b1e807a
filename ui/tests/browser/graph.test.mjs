// Graph: nodes and edges of the running program, search, details, download.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, picture, texts, until, URL_BASE } from './browser.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

test('operations are drawn, found by name, and link to traces', async () => {
  const { page, faults, close } = await open(browser, '#/graph?range=15m');
  await page.locator('.node').first().waitFor();
  const nodes = await page.locator('.node').count();
  assert.ok(nodes >= 5, `${nodes} nodes`);
  assert.ok((await page.locator('.edge').count()) >= nodes - 3, 'too few edges');
  const field = page.getByLabel('Find a node');
  await field.fill('board');
  await field.press('Enter');
  await page.locator('.node.chosen').waitFor();
  assert.match(await page.locator('.details').textContent(), /Calls\d/);
  await picture(page, 'graph');
  await page.locator('.neighbours button').first().click();
  await page.getByRole('link', { name: /^Traces with/ }).click();
  await until('the search for traces is open', async () => /#\/traces\?.*operation=/.test(page.url()));
  assert.deepEqual(faults, []);
  await close();
});

test('the drawing zooms and moves by wheel, buttons and keys', async () => {
  const { page, faults, close } = await open(browser, '#/graph?range=15m');
  const drawing = page.locator('svg[role=application]');
  await page.locator('.node').first().waitFor();
  const camera = () => drawing.locator('> g').getAttribute('transform');
  let last = await camera();
  const changes = async (what, act) => {
    await act();
    await until(what, async () => (await camera()) !== last);
    last = await camera();
  };
  await drawing.hover();
  await changes('zoom by wheel', () => page.mouse.wheel(0, -200));
  await changes('zoom by button', () => page.getByRole('button', { name: 'Zoom in' }).click());
  await drawing.focus();
  await changes('zoom by key', () => page.keyboard.press('-'));
  await changes('move by key', () => page.keyboard.press('Shift+ArrowLeft'));
  await changes('show all by key', () => page.keyboard.press('0'));
  await page.keyboard.press('ArrowRight');
  await page.locator('.node.chosen').waitFor();
  await page.keyboard.press('Escape');
  await until('nothing is selected', async () => (await page.locator('.node.chosen').count()) === 0);
  assert.deepEqual(faults, []);
  await close();
});

test('services are drawn, and the graph can be downloaded for Graphviz', async () => {
  const { page, faults, close } = await open(browser, '#/graph?range=15m&level=service');
  await page.locator('.node').first().waitFor();
  assert.ok((await texts(page, '.node .name')).includes('bulletin-board'));
  const address = await page.getByRole('link', { name: 'Download DOT' }).getAttribute('href');
  const text = await (await fetch(`${URL_BASE}/${address}`)).text();
  assert.match(text, /^(strict )?digraph/);
  assert.match(text, /bulletin-board/);
  assert.deepEqual(faults, []);
  await close();
});
