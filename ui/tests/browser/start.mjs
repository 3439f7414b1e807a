// Runs the browser tests: against TACHO_URL if it is set, otherwise against a server and the example program bulletin board
// (examples/bulletin-board), which it starts.
//
//   npm run test:browser
//   TACHO_URL=http://127.0.0.1:7070 TACHO_BOARD=http://127.0.0.1:8080 npm run test:browser
//   node tests/browser/start.mjs --images          takes the screenshots for the documentation instead
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BURST, binary, startWorld } from './world.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const images = process.argv.includes('--images');

function command() {
  if (images) return [join(HERE, 'images.mjs')];
  const files = readdirSync(HERE)
    .filter((name) => name.endsWith('.test.mjs'))
    .sort()
    .map((name) => join(HERE, name));
  return ['--test', '--test-concurrency=1', ...files];
}

/** About five minutes of uneven load, for meaningful screenshots. */
function day() {
  return Array.from({ length: 110 }, (_, index) => ({
    requests: Math.round(220 + 130 * Math.sin(index / 12) + 60 * Math.sin(index / 3.1)),
    pauseSeconds: 2,
  }));
}

const world = process.env.TACHO_URL ? null : await startWorld(images ? day() : [BURST]);
const url = process.env.TACHO_URL ?? world.url;
const board = process.env.TACHO_BOARD ?? world?.board ?? '';
let code = 1;
try {
  console.log(`the page is at ${url}`);
  const env = { ...process.env, TACHO_URL: url, TACHO_BOARD: board, TACHO_BIN: binary() };
  const run = spawn(process.execPath, command(), { stdio: 'inherit', env });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => run.kill(signal));
  code = await new Promise((resolve) => run.once('exit', (status) => resolve(status ?? 1)));
} finally {
  await world?.stop();
}
process.exitCode = code;
