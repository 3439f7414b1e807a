// The measured process: a recursion as in MooBench, timed in batches. The first half warms up. Prints one line of JSON. Before:
// `overhead.js`.

import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { wrap } from 'tachograph';

const [traces, depth, gapUs] = process.argv.slice(2).map(Number);
const BATCH = 100;

/** The innermost call does nothing, so only the recording is measured. */
let monitored = (/** @type {number} */ left) => (left > 1 ? monitored(left - 1) : left);
if (process.env.BENCH_WRAP === 'true') monitored = wrap(monitored, 'observed.Monitored.monitoredMethod');

async function run(count) {
  const times = new Float64Array(count / BATCH);
  let spentMs = 0;
  for (let batch = 0; batch < times.length; batch++) {
    const start = performance.now();
    for (let at = 0; at < BATCH; at++) monitored(depth);
    const end = performance.now();
    times[batch] = ((end - start) * 1_000) / BATCH;
    spentMs += end - start;
    // Returns to the event loop, as real programs do, because only the loop serves sockets. These turns are part of the CPU time,
    // but not of the measured times of the batches.
    while (gapUs > 0 && (performance.now() - end) * 1_000 < gapUs * BATCH) await turn();
    if (gapUs === 0 && batch % 10 === 0) await turn();
  }
  return { times, spentMs };
}

const agent = /** @type {any} */ (globalThis)[Symbol.for('tachograph.agent')];
const count = (name) => agent?.totals[name] ?? 0;
await run(traces / 2);
const cpu = process.cpuUsage();
const [bytes, dropped, sent] = ['bytesSent', 'callsDropped', 'callsSent'].map(count);
const { times, spentMs } = await run(traces / 2);
const used = process.cpuUsage(cpu);
times.sort();
const half = traces / 2;
const calls = count('callsSent') - sent + (count('callsDropped') - dropped);
console.log(
  JSON.stringify({
    median_us: times[times.length >> 1],
    mean_us: (spentMs * 1_000) / half,
    p99_us: times[Math.floor(times.length * 0.99)],
    cpu_us: (used.user + used.system) / half,
    bytes: (count('bytesSent') - bytes) / half,
    dropped: calls === 0 ? 0 : (100 * (count('callsDropped') - dropped)) / calls,
    rss_mib: process.memoryUsage().rss / 2 ** 20,
  }),
);
