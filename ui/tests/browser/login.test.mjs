// A server with tokens: the login, its errors, log-out, the end of a session, roles, and pages of other origins. Then a server
// without tokens: its warning.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open, picture, until } from './browser.mjs';
import { binary } from './world.mjs';

let browser;
let server;
let base;
let directory;
let admin;
let reader;

function tokens(...args) {
  return execFileSync(binary(), ['token', ...args, '--data', join(directory, 'data')], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

/** Starts a server that listens on this address. Returns its process and its address. */
async function serve(data, http, ...flags) {
  const all = ['--data', data, '--http', http, '--records', '127.0.0.1:0', '--selfwatch-seconds', '0', ...flags];
  const child = spawn(binary(), ['serve', ...all], { stdio: ['ignore', 'pipe', 'ignore'] });
  const address = await new Promise((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (part) => {
      said += part;
      const found = /listening http=\S+:(\d+) /.exec(said);
      if (found !== null) resolve(`http://127.0.0.1:${found[1]}`);
    });
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  });
  return { child, address };
}

async function ended(child) {
  child?.kill('SIGTERM');
  await new Promise((resolve) =>
    child === undefined || child.exitCode !== null ? resolve() : child.once('exit', resolve),
  );
}

before(async () => {
  browser = await launch();
  directory = mkdtempSync(join(tmpdir(), 'tachograph-login-'));
  admin = tokens('add', 'admin', '--role', 'admin');
  reader = tokens('add', 'reader', '--role', 'read');
  ({ child: server, address: base } = await serve(join(directory, 'data'), '127.0.0.1:0'));
  const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ state: 'off', pattern: 'com.shop..*' });
  assert.ok((await fetch(`${base}/api/v1/probes`, { method: 'POST', headers, body })).ok);
});
after(async () => {
  await browser?.close();
  await ended(server);
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
});

/** The faults without those of 401, which the browser reports for each request without a session. */
const others = (faults) => faults.filter((fault) => !/status of 401/.test(fault));

const field = (page) => page.getByLabel('Token', { exact: true });

async function logIn(page, token) {
  await field(page).fill(token);
  await page.keyboard.press('Enter');
}

const loggedIn = (page, name) => page.locator('.identity', { hasText: name }).waitFor();

/** Everything of the page that other code, extensions or users of the browser could read. */
async function traces(page) {
  const stored = await page.evaluate(() => [
    document.documentElement.outerHTML,
    ...[...document.querySelectorAll('input, textarea')].map((input) => input.value),
    JSON.stringify({ ...localStorage }),
    JSON.stringify({ ...sessionStorage }),
    document.cookie,
    location.href,
    JSON.stringify(history.state),
    document.title,
  ]);
  return stored.join('\n');
}

test('a login with a token opens the requested address, and the page stores the token nowhere', async () => {
  const { page, faults, close } = await open(browser, '#/agents?range=6h', { base });
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.equal(await page.title(), 'Log in · Tachograph');
  assert.ok(await field(page).evaluate((input) => input === document.activeElement), 'the field must have the focus');
  assert.equal(await field(page).getAttribute('type'), 'password');
  assert.equal(await field(page).getAttribute('autocomplete'), 'current-password');
  assert.equal(await page.getByRole('alert').count(), 0);
  await picture(page, 'login');
  await logIn(page, admin);
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  assert.match(page.url(), /#\/agents\?range=6h$/);
  await loggedIn(page, 'admin');
  assert.ok(!(await traces(page)).includes('tacho_'), 'the page contains a token');
  const cookies = await page.context().cookies();
  assert.deepEqual(
    cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite]),
    [['tacho_session', true, 'Strict']],
  );
  assert.ok(!cookies[0].value.includes(admin));
  await page.reload();
  await loggedIn(page, 'admin');
  await picture(page, 'logged-in');
  assert.deepEqual(others(faults), []);
  await close();
});

test('a wrong token is refused with the reason, and can be corrected with the keyboard', async () => {
  const { page, faults, close } = await open(browser, '#/explore', { base });
  await logIn(page, 'tacho_wrong');
  const alert = page.getByRole('alert');
  await alert.waitFor();
  assert.match(await alert.textContent(), /^The token is not accepted: /);
  assert.equal(await field(page).getAttribute('aria-invalid'), 'true');
  const described = await field(page).getAttribute('aria-describedby');
  assert.equal(await page.locator(`#${described}`).textContent(), await alert.textContent());
  await until('the field has the focus', () => field(page).evaluate((input) => input === document.activeElement));
  assert.equal(await field(page).inputValue(), '');
  await page.keyboard.type(reader);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await loggedIn(page, 'reader');
  assert.deepEqual(others(faults), []);
  await close();
});

test('a token that may not read is refused', async () => {
  const writer = tokens('add', 'writer', '--role', 'write');
  const { page, close } = await open(browser, '#/services', { base });
  await until('the server knows the token', async () => {
    await logIn(page, writer);
    const alert = page.getByRole('alert');
    await alert.waitFor();
    return /The token writer may not read\. Use a token with the role read or admin\./.test(await alert.textContent());
  });
  await close();
});

test('a token with the role read shows the rules and cannot change them', async () => {
  const { page, faults, close } = await open(browser, '#/agents', { base });
  await logIn(page, reader);
  await loggedIn(page, 'reader');
  const rule = page.locator('table[aria-label=Rules] tbody tr', { hasText: 'com.shop..*' });
  await rule.waitFor();
  await page.getByText('Only a token with the role admin can change rules.').waitFor();
  assert.equal(await page.locator('form[aria-label="New rule"]').count(), 0);
  assert.equal(await rule.getByRole('button', { name: /^Remove/ }).count(), 0);
  assert.ok(await rule.getByRole('button', { name: 'On' }).isDisabled());
  assert.deepEqual(others(faults), []);
  await close();
});

test('rules are changed in a session of an admin', async () => {
  const { page, faults, close } = await open(browser, '#/agents', { base });
  await logIn(page, admin);
  await page.getByLabel('Pattern').fill('com.board..*');
  await page.getByRole('button', { name: 'Add' }).click();
  const rule = page.locator('table[aria-label=Rules] tbody tr', { hasText: 'com.board..*' });
  await rule.getByRole('button', { name: /^Remove/ }).click();
  await rule.waitFor({ state: 'detached' });
  assert.deepEqual(others(faults), []);
  await close();
});

test('log-out ends the session: a copy of its cookie is refused', async () => {
  const { page, faults, close } = await open(browser, '#/graph', { base });
  await logIn(page, reader);
  await loggedIn(page, 'reader');
  const cookies = await page.context().cookies();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.deepEqual(await page.context().cookies(), []);
  await page.context().addCookies(cookies);
  await page.reload();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.deepEqual(others(faults), []);
  await close();
});

test('a session that ends while the page is open leads to the login, which leads back to the same view', async () => {
  const token = tokens('add', 'temporary', '--role', 'read');
  const { page, faults, close } = await open(browser, '#/agents?find=shop', { base });
  await until('the server knows the token', async () => {
    await logIn(page, token);
    await until('the server has answered', async () => (await page.locator('.identity, [role=alert]').count()) > 0);
    return (await page.locator('.identity').count()) > 0;
  });
  tokens('revoke', 'temporary');
  // The page refreshes by itself.
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  assert.equal(await page.getByRole('alert').textContent(), 'The session has ended. Log in again.');
  assert.equal(await page.locator('table').count(), 0, 'data is still visible');
  await logIn(page, reader);
  await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  assert.equal(await page.getByLabel('Find an agent').inputValue(), 'shop');
  assert.deepEqual(others(faults), []);
  await close();
});

test('a page of another port cannot use the session', async () => {
  const { page, close } = await open(browser, '#/agents', { base });
  await logIn(page, admin);
  await loggedIn(page, 'admin');
  const other = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<p>other</p>'));
  await new Promise((ready) => other.listen(0, '127.0.0.1', ready));
  try {
    const second = await page.context().newPage();
    await second.goto(`http://127.0.0.1:${other.address().port}/`);
    const asked = await second.evaluate(async (address) => {
      const results = [];
      const ask = async (path, request) => {
        try {
          const answer = await fetch(address + path, { credentials: 'include', ...request });
          results.push(`${path} ${answer.type} ${answer.status} ${await answer.text()}`);
        } catch {
          results.push(`${path} refused`);
        }
      };
      await ask('/api/session');
      await ask('/api/v1/probes', { method: 'DELETE' });
      await ask('/api/v1/probes?state=off&pattern=evil', { method: 'POST', mode: 'no-cors' });
      await ask('/api/session', { method: 'DELETE', mode: 'no-cors' });
      return results;
    }, base);
    assert.equal(asked[0], '/api/session refused');
    assert.equal(asked[1], '/api/v1/probes refused');
    assert.match(asked[2], / opaque 0 $/);
    const form = `<form method="post" action="${base}/api/v1/probes?state=off&pattern=evil"><input name="a"></form>`;
    await second.setContent(form);
    const [answer] = await Promise.all([
      second.waitForResponse((response) => response.url().startsWith(base)),
      second.evaluate(() => document.forms[0].submit()),
    ]);
    assert.ok([401, 403].includes(answer.status()), `${answer.status()}`);
  } finally {
    other.close();
  }
  await page.reload();
  await loggedIn(page, 'admin');
  await page.locator('table[aria-label=Rules] tbody tr', { hasText: 'com.shop..*' }).waitFor();
  assert.equal(await page.getByText('evil').count(), 0);
  await close();
});

for (const theme of ['light', 'dark']) {
  test(`the login and the name of a token fit a width of 900 pixels: ${theme}`, async () => {
    const { page, faults, close } = await open(browser, '#/agents', { base, theme, width: 900, height: 800 });
    const over = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    await field(page).waitFor();
    assert.equal(await page.locator('h1').count(), 1);
    assert.ok((await over()) <= 0);
    await logIn(page, admin);
    await page.getByRole('button', { name: 'Log out' }).waitFor();
    assert.ok((await over()) <= 0, `${await over()} pixels too wide`);
    assert.deepEqual(others(faults), []);
    await close();
  });
}

test('the page warns that everyone on the network can use the server', async () => {
  const { child, address } = await serve(join(directory, 'open'), '0.0.0.0:0', '--insecure-listen');
  try {
    const { page, faults, close } = await open(browser, '#/agents', { base: address });
    await page
      .locator('.notice', { hasText: 'everyone in the network may read, write and delete everything' })
      .waitFor();
    assert.equal(await page.getByRole('button', { name: 'Log out' }).count(), 0);
    assert.deepEqual(faults, []);
    await close();
  } finally {
    await ended(child);
  }
});
