// A program ends with the same code or signal and the same output as without the agent. Each way to end runs without the agent
// and with it. Some ways use packages that install exit handlers.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Tacho, run, start } from './support/tacho.js';

const WAYS = createRequire(import.meta.url)('./programs/ends.cjs');
/** Ways that wait for signals. Each has a list of runs, and each run a list of signals to send in sequence. */
const SENT = {
  'no handler': [['SIGTERM'], ['SIGINT'], ['SIGHUP'], ['SIGQUIT'], ['SIGKILL']],
  'no handler, later': [['SIGTERM']],
  'a loop without end': [['SIGTERM'], ['SIGINT']],
  'a loop without end, later': [['SIGTERM']],
  'a loop without end after recorded calls': [['SIGTERM']],
  'a loop without end in a request': [['SIGTERM'], ['SIGINT']],
  'a loop without end in a request that waited': [['SIGTERM']],
  'a signal together with the last acknowledgement': [['SIGTERM'], ['SIGINT']],
  'a signal after the last acknowledgement': [['SIGTERM'], ['SIGINT']],
  'a handler after the signal': [['SIGTERM'], ['SIGINT']],
  'a handler after the signal, from a timer': [['SIGTERM']],
  'a handler after the signal and a call': [['SIGTERM']],
  'a handler while the loop reads the signal': [['SIGTERM']],
  'a handler that comes and goes after the signal': [['SIGTERM']],
  'own handler': [['SIGTERM'], ['SIGTERM', 'SIGTERM']],
  'own handler that exits later': [['SIGTERM']],
  'own handler that does not exit': [
    ['SIGTERM', 'SIGTERM'],
    ['SIGTERM', 'SIGINT'],
  ],
  'own handler, later': [['SIGINT'], ['SIGTERM']],
  'own handler that was removed': [['SIGTERM']],
  'own handler that sends the signal again': [['SIGTERM']],
  'own handler that sends the signal again later': [['SIGTERM']],
  'signal-exit4 that prevents the exit': [['SIGTERM', 'SIGTERM']],
  'async-exit-hook': [['SIGTERM'], ['SIGINT'], ['SIGTERM', 'SIGTERM']],
  death: [['SIGTERM'], ['SIGINT'], ['SIGHUP']],
  'a cluster': [['SIGTERM'], ['SIGKILL']],
  'a thread, and a signal': [['SIGTERM']],
  'exit is emitted by the program': [['SIGTERM']],
};
for (const name of ['signal-exit3', 'signal-exit4']) {
  SENT[name] = [['SIGTERM'], ['SIGINT'], ['SIGHUP'], ['SIGTERM', 'SIGTERM']];
  SENT[`${name}, later`] = [['SIGTERM']];
  SENT[`${name}, and own handler`] = [['SIGTERM'], ['SIGINT']];
  SENT[`${name}, taken back`] = [['SIGTERM']];
}

/** A line that a program prints after its first signal. The second signal is sent after this line. */
const HEARD = /^(got it|no|last|hook)/m;
/** Number of recorded calls, for ways that record more or fewer than a hundred. */
const WORKS = {
  'a rejection in a call': 1,
  'a handler after the signal and a call': 200,
  'a thread, and nothing to do': 200,
  'two threads, one of them ends first': 300,
  'a thread that ends together with its own thread': 300,
};
for (const how of ['', ' that is disconnected', ' that is killed']) {
  WORKS[`a cluster${how}`] = 200;
}
/** In these ways the kernel or Node ends the process at once, or the loop is blocked, so the last records may be lost. */
const MAY_BE_LOST =
  /^(a loop without end|a busy thread|a thread that is busy|abort)|with the last|handler SIG(KILL|QUIT)$|in its handler$/;

/** @type {Tacho} */
let tacho;
before(async () => {
  tacho = await Tacho.start();
});
after(() => tacho.close());

async function gone(way, signals, how) {
  const program = start(tacho, 'ends.cjs', { args: [way], ...how });
  for (const [at, signal] of signals.entries()) {
    await program.line(at === 0 ? /ready/ : HEARD);
    program.child.kill(signal);
  }
  const { code, signal, out, err } = await program.ended;
  // These lines may differ: the agent's own lines, and the positions of Node's loader in a stack. Numbers such as process ids
  // differ in each run.
  const lines = err.split('\n').filter((line) => !/ tachograph: |^ {4}at |^Node\.js v|^$/.test(line));
  return { code, signal, out: out.split('\n').sort(), lines: lines.map((line) => line.replace(/\b\d{3,}\b/g, 'N')) };
}

/** Flags of a program without the agent. They import an empty module: the flag `--import` changes how Node loads a program. */
const NONE = { flags: ['--import', 'data:text/javascript,'] };
describe('a program ends in the same way with and without the agent', { concurrency: 4 }, () => {
  for (const way of WAYS) {
    for (const signals of SENT[way] ?? [[]]) {
      const name = `${way} ${signals.join(' ')}`.trim();
      test(name, async () => {
        const [alone, watched] = await Promise.all([gone(way, signals, NONE), gone(way, signals, { service: name })]);
        assert.deepEqual(watched, alone);
        const sent = (await tacho.operations(name)).get('work')?.count ?? 0;
        if (signals.length < 2 && !MAY_BE_LOST.test(name)) {
          assert.equal(sent, WORKS[way] ?? 100);
        }
      });
    }
  }
});

for (const way of ['no handler', 'own handler, later', 'signal-exit4', 'async-exit-hook']) {
  for (const mode of ['fork', 'cluster']) {
    test(`pm2 stops a program in the same way with and without the agent, mode ${mode}: ${way}`, async () => {
      const service = `pm2 ${way} ${mode}`;
      const stopped = async (flags) => {
        const home = mkdtempSync(join(tmpdir(), 'tachograph-node-pm2-'));
        try {
          const args = [way, mode, ...flags];
          const { out, err } = await run(tacho, 'pm2.cjs', { ...NONE, args, service, env: { PM2_HOME: home } });
          return [/exited with code \[.*/.exec(out)?.[0] ?? err, /: stopping \S+/.exec(out)?.[0]];
        } finally {
          rmSync(home, { recursive: true, force: true });
        }
      };
      const [alone, watched] = await Promise.all([stopped(NONE.flags), stopped(['--import', 'tachograph/register'])]);
      assert.deepEqual(watched, alone);
      assert.match(alone[0], /exited with code/);
      assert.equal((await tacho.operations(service)).get('work')?.count, 100);
    });
  }
}
