// Ends in the way that the first argument names, right after its last call. The second argument: a pause before the calls, in ms.

import { setTimeout as sleep } from 'node:timers/promises';
import { record } from 'tachograph';

const [how, pause] = process.argv.slice(2);
let ends = 0;
process.on('beforeExit', () => console.log(`beforeExit ${++ends}`));
await sleep(Number(pause));
if (how === 'own handler') {
  process.on('SIGTERM', () => {
    record('last', () => 1);
    process.exit(3);
  });
}
const open = record('outer', async () => {
  for (let at = 0; at < 100; at++) {
    record('inner', () => 1);
  }
  // All endings except `natural` must come before this wait ends. With a wait of a few milliseconds they might come later on a
  // busy machine: the timer may be due before `setImmediate`.
  await sleep(how === 'natural' ? 5 : 60_000);
});
const ENDINGS = {
  natural: () => open,
  exit: () => process.exit(4),
  throw: () => {
    setImmediate(() => {
      throw new Error('not caught');
    });
  },
  signal: () => process.kill(process.pid, 'SIGTERM'),
  'signal SIGINT': () => process.kill(process.pid, 'SIGINT'),
  'signal 6': () => process.kill(process.pid, 6),
  'signal SIGIOT': () => process.kill(process.pid, 'SIGIOT'),
  'signal SIGSEGV': () => process.kill(process.pid, 'SIGSEGV'),
  'own handler': () => process.kill(process.pid, 'SIGTERM'),
};
await ENDINGS[how]();
