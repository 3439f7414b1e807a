// Tests for every page: keys, themes, contrast, sizes, empty and error states.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, picture, until, URL_BASE } from './browser.mjs';

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

const PAGES = ['#/services', '#/services/bulletin-board', '#/explore?q=time()', '#/traces', '#/graph', '#/agents'];
/** A window in which nothing was recorded. */
const PAST = 'from=1000000000&to=1000003600';

test('keys lead from the overview to a trace', async () => {
  const { page, faults, close } = await open(browser, '#/services?range=15m');
  await page.locator('tbody tr').first().waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'content');
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Find a service');
  await page.keyboard.type('bulletin');
  await until('the address holds the filter', async () => /find=bulletin/.test(page.url()));
  await page.locator('body').press('Escape');
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('3');
  await page.locator('table[aria-label=Traces] tbody tr').first().waitFor();
  assert.match(page.url(), /#\/traces\?range=15m/);
  await page.locator('table[aria-label=Traces] a.name').first().focus();
  await page.keyboard.press('ArrowDown');
  assert.ok(
    await page
      .locator('table[aria-label=Traces] tbody tr:nth-child(2) a.name')
      .evaluate((link) => link === document.activeElement),
  );
  await page.keyboard.press('Enter');
  await page.locator('.waterfall .span-row').first().waitFor();
  await page.keyboard.press('?');
  assert.ok(await page.locator('dialog').evaluate((dialog) => dialog.open));
  await page.keyboard.press('Escape');
  assert.ok(!(await page.locator('dialog').evaluate((dialog) => dialog.open)));
  assert.deepEqual(faults, []);
  await close();
});

test('the time range is chosen, typed, refused if invalid, and kept between pages', async () => {
  const { page, faults, close } = await open(browser, '#/services');
  const button = page.locator('button[aria-haspopup=dialog]');
  await button.click();
  await page.getByRole('button', { name: '6h' }).click();
  assert.match(page.url(), /range=6h/);
  await button.click();
  await page.getByLabel('From').fill('yesterday');
  await page.getByRole('button', { name: 'Apply' }).click();
  assert.match(await page.getByRole('alert').textContent(), /yesterday/);
  await page.getByLabel('From').fill('2026-01-01 10:00');
  await page.getByRole('textbox', { name: 'To' }).fill('2026-01-01 11:00');
  await page.getByRole('button', { name: 'Apply' }).click();
  await until('a fixed range', async () => /2026-01-01 10:00:00 – 11:00:00/.test(await button.textContent()));
  await page.getByRole('link', { name: 'Graph', exact: true }).click();
  await until('the range is kept', async () => /#\/graph\?from=.*to=/.test(page.url()));
  await button.click();
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.popover').count(), 0);
  assert.deepEqual(faults, []);
  await close();
});

test("the theme follows the system, then the user's choice, which is kept", async () => {
  const { page, faults, close } = await open(browser, '#/services', { theme: 'dark' });
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), 'dark');
  await page.locator('tbody tr').first().waitFor();
  await picture(page, 'overview-dark');
  await page.getByRole('button', { name: 'Switch to light' }).click();
  assert.equal(await theme(), 'light');
  await page.reload();
  assert.equal(await theme(), 'light');
  assert.deepEqual(faults, []);
  await close();
});

for (const theme of ['light', 'dark']) {
  test(`text has enough contrast: ${theme}`, async () => {
    const { page, close } = await open(browser, '#/services', { theme });
    const low = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const hex = style.getPropertyValue(name).trim().slice(1);
        const [r, g, b] = [0, 2, 4]
          .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
          .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
      const grounds = ['--ground', '--surface', '--raised', '--hover', '--accent-soft'];
      const pairs = ['--text', '--text-2', '--text-3', '--accent', '--error'].flatMap((text) =>
        grounds.map((ground) => [text, ground]),
      );
      for (const kind of ['http-server', 'method', 'database', 'connection-wait', 'http-client', 'task'])
        pairs.push(['--bar-text', `--kind-${kind}`]);
      pairs.push(
        ['--on-accent', '--accent'],
        ['--text', '--error-soft'],
        ['--error', '--error-soft'],
        ['--text', '--warn-soft'],
      );
      const least = (text, ground) => (text === '--text-3' && ground === '--accent-soft' ? 4 : 4.5);
      return pairs
        .filter(([text, ground]) => contrast(text, ground) < least(text, ground))
        .map(([text, ground]) => `${text} on ${ground}: ${contrast(text, ground).toFixed(2)}`);
    });
    assert.deepEqual(low, []);
    await close();
  });
}

for (const place of PAGES) {
  test(`${place} fits a width of 900 pixels in the dark theme, has one heading, and names all its controls`, async () => {
    const { page, faults, close } = await open(browser, place, { theme: 'dark', width: 900, height: 800 });
    await page.locator('h1').waitFor();
    await page.waitForLoadState('networkidle');
    assert.equal(await page.locator('h1').count(), 1);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(over <= 0, `${over} pixels too wide`);
    const nameless = await page
      .locator('button, a, input, select, textarea')
      .evaluateAll((all) =>
        all
          .filter(
            (one) => (one.textContent ?? '').trim() === '' && !one.getAttribute('aria-label') && !one.labels?.length,
          )
          .map((one) => one.outerHTML),
      );
    assert.deepEqual(nameless, []);
    assert.deepEqual(faults, []);
    await close();
  });
}

for (const place of ['#/services', '#/services/bulletin-board', '#/traces', '#/graph']) {
  test(`${place} without data shows how to start a program with the agent`, async () => {
    const { records_port: port } = await (await fetch(`${URL_BASE}/api/status`)).json();
    const { page, faults, close } = await open(browser, `${place}?${PAST}`);
    await page.getByText('No calls in this time range').waitFor();
    await until('the command names the port for agents', async () => {
      const command = await page.locator('.command code').first().textContent();
      return command.includes(`:${port} `) && command.includes('-javaagent:tachograph-agent.jar');
    });
    await page.locator('a', { hasText: 'open them in Explore' }).waitFor();
    if (place === '#/services') await picture(page, 'empty');
    assert.deepEqual(faults, []);
    await close();
  });
}

test('an unreachable server is reported, and Try again repeats the request', async () => {
  let broken = true;
  const prepare = (page) => page.route('**/api/services*', (route) => (broken ? route.abort() : route.continue()));
  const { page, close } = await open(browser, '#/services?range=15m', { prepare });
  await page.getByRole('alert').waitFor();
  assert.match(await page.getByRole('alert').textContent(), /no response from the server/);
  await picture(page, 'unreachable');
  broken = false;
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.locator('tbody tr').first().waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
  await close();
});

test('an unknown address links to the overview', async () => {
  const { page, faults, close } = await open(browser, '#/nowhere');
  await page.getByRole('link', { name: 'Go to the overview' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  assert.deepEqual(faults, []);
  await close();
});

test('a request of more than a second is shown with its progress, and can be stopped', async () => {
  let id;
  const { page, faults, close } = await open(browser, '#/traces?range=15m', {
    prepare: async (page) => {
      // This request stays open. The server does not get it, so its progress is not the server's.
      await page.route(/api\/traces\?/, (route) => {
        id = route.request().headers()['x-tacho-query'];
      });
      await page.route(/api\/queries$/, async (route) => {
        const response = await route.fetch();
        const answer = await response.json();
        answer.data.queries.push({ id, progress: { pass: 2, done: 0.43, calls: 12_345_678 } });
        await route.fulfill({ response, json: answer });
      });
    },
  });
  const run = page.getByRole('region', { name: 'Running requests' });
  await run.waitFor();
  await until('the progress is shown', async () =>
    /^Search for traces \d+ s · 43 % of pass 2 · 12\s345\s678 calls read$/.test(
      await run.locator('.run span').textContent(),
    ),
  );
  await picture(page, 'running');
  await run.getByRole('button', { name: 'Stop: Search for traces' }).click();
  await run.waitFor({ state: 'detached' });
  assert.match(await page.getByRole('alert').textContent(), /you have stopped this request/);
  assert.deepEqual(faults, []);
  await close();
});
