// Makes traces of six calls until a line arrives on standard input, then prints the number of traces.

import { record, sample, wrap } from 'tachograph';

const work = wrap((n) => (n === 0 ? 0 : work(n - 1)), 'work');
let traces = 0;
let stop = false;
process.stdin.once('data', () => {
  stop = true;
  process.stdin.destroy();
});
function turn() {
  for (let at = 0; at < 200; at++) {
    record('trace', () => work(4));
    traces++;
  }
  sample('turns', traces);
  if (traces === 2_000) console.log('under way');
  if (traces === 20_000) console.log('many more');
  if (!stop) setTimeout(turn, 5);
  else console.log(`traces ${traces}`);
}
turn();
