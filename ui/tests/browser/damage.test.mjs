// Pages that read a damaged chunk show a warning. The test starts its own server and flips one bit of its data.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open } from './browser.mjs';
import { binary } from './world.mjs';

const BEGIN = Math.floor(Date.now() / 1000) - 600;

let browser;
let server;
let base;
let directory;

before(async () => {
  browser = await launch();
  directory = mkdtempSync(join(tmpdir(), 'tachograph-damage-'));
  const data = join(directory, 'data');
  const anywhere = '127.0.0.1:0';
  const flags = ['--data', data, '--http', anywhere, '--records', anywhere, '--selfwatch-seconds', '0'];
  server = spawn(binary(), ['serve', ...flags], { stdio: ['ignore', 'pipe', 'ignore'] });
  base = await new Promise((resolve, reject) => {
    let said = '';
    server.stdout.on('data', (part) => {
      said += part;
      const found = /listening http=(\S+) /.exec(said);
      if (found !== null) resolve(`http://${found[1]}`);
    });
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const lines = Array.from({ length: 20 }, (_, n) => `m,host=a value=${(n * 7) % 5} ${BEGIN + n}`);
  const post = async (path, body) => assert.equal((await fetch(base + path, { method: 'POST', body })).status, 204);
  await post('/write?precision=s', lines.join('\n'));
  await post('/api/flush', '');
  const segment = join(data, 'chunks/00000001.segment');
  const bytes = readFileSync(segment);
  bytes[bytes.indexOf('TCHK') + 21] ^= 4;
  writeFileSync(segment, bytes);
});
after(async () => {
  await browser?.close();
  server?.kill('SIGTERM');
  await new Promise((resolve) =>
    server === undefined || server.exitCode !== null ? resolve() : server.once('exit', resolve),
  );
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
});

test('a query over damaged data shows a warning, another page does not', async () => {
  const { page, faults, close } = await open(browser, '#/explore?range=1h&q=m', { base });
  const notice = page.locator('.notice', { hasText: 'Warning:' });
  await notice.waitFor();
  const said = await notice.textContent();
  assert.match(said, /stored samples of m\{host="a"\} between .* cannot be read: checksum mismatch/);
  await page.getByRole('link', { name: 'Graph', exact: true }).click();
  await notice.waitFor({ state: 'detached' });
  assert.deepEqual(faults, []);
  await close();
});
