// Measures the overhead of the agent. Runs the same program with the agent disabled, with the agent and a rule that switches the
// recording of the program's calls off, with the agent and a receiver that discards all records, and with the agent and a real
// server. The runs alternate, each in a new process, so that drift of the machine affects all equally. Prints tables. It starts
// `observed.js` and `served.js` (the measured processes), `sink.js` (the receiver) and `tacho serve` (the real server). The load
// generator (`load.js`) runs in this process.

import { spawn } from 'node:child_process';
import { accessSync, mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from './load.js';

const HELP = `usage: node bench/overhead.js [options]

  --forks N        processes for each measured setup (5)
  --traces N       traces in a process, the first half is not counted (1000000)
  --depth N        calls in a trace (10)
  --gap-us N       mean pause between two traces (0). In a pause the process does not sleep, it runs its event loop.
                   This time is part of cpu_us, but not of median_us, mean_us and p99_us
  --seconds N      duration of the load on the HTTP server (6), the first third is not counted
  --connections N  concurrent connections to the HTTP server (16)
  --only NAME      methods or http
  --tacho PATH     the server ($TACHO, or ../../target/release/tacho)
`;
const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const { values: options } = parseArgs({
  options: {
    forks: { type: 'string', default: '5' },
    traces: { type: 'string', default: '1000000' },
    depth: { type: 'string', default: '10' },
    'gap-us': { type: 'string', default: '0' },
    seconds: { type: 'string', default: '6' },
    connections: { type: 'string', default: '16' },
    only: { type: 'string', default: 'methods,http' },
    tacho: { type: 'string', default: process.env.TACHO ?? resolve(FOLDER, '../../../target/release/tacho') },
    help: { type: 'boolean' },
  },
});
const OFF = 'wrapped, off by a rule';
const SETUPS = ['none', OFF, 'wrapped, sink', 'wrapped, tacho'];

/** @param {string} command @param {string[]} args @param {Record<string, string>} [env] */
function start(command, args, env = {}) {
  const kept = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TACHO')));
  const child = spawn(command, args, { cwd: FOLDER, env: { ...kept, ...env }, stdio: ['pipe', 'pipe', 'inherit'] });
  let said = '';
  let wake = () => {};
  child.stdout.on('data', (text) => {
    said += text;
    wake();
  });
  const ended = new Promise((done) => child.once('close', done)).then(() => wake());
  const line = async () => {
    while (!said.includes('\n')) {
      if (child.exitCode !== null) throw new Error(`${command} ${args.join(' ')} ended with ${child.exitCode}`);
      await new Promise((done) => (wake = () => done(undefined)));
    }
    const at = said.indexOf('\n');
    const first = said.slice(0, at);
    said = said.slice(at + 1);
    return first;
  };
  return { child, line, ended };
}

/** @param {string} setup @param {{ sink: string, tacho: string }} receivers */
function environment(setup, receivers) {
  const isWatched = setup !== 'none';
  return {
    BENCH_WRAP: String(isWatched),
    TACHO_ENABLED: String(isWatched),
    TACHO_SERVER: setup === 'wrapped, sink' ? receivers.sink : receivers.tacho,
    TACHO_SERVICE: setup === OFF ? 'bench-off' : 'bench',
    TACHO_LOG: '/dev/null',
  };
}

/** @param {Record<string, string>} env */
async function methods(env) {
  const args = [join(FOLDER, 'observed.js'), options.traces, options.depth, options['gap-us']];
  const observed = start(process.execPath, args, env);
  const result = JSON.parse(await observed.line());
  await observed.ended;
  return result;
}

/** @param {Record<string, string>} env */
async function http(env) {
  const served = start(process.execPath, ['--import', 'tachograph/register', join(FOLDER, 'served.js')], env);
  const port = Number(await served.line());
  const ms = Number(options.seconds) * 1_000;
  const ask = async () => {
    served.child.stdin.write('?');
    return JSON.parse(await served.line());
  };
  await load(port, Number(options.connections), ms / 3);
  const before = await ask();
  const { requests, latencies } = await load(port, Number(options.connections), (ms * 2) / 3);
  const after = await ask();
  served.child.stdin.end();
  await served.ended;
  const calls = after.callsSent - before.callsSent + after.callsDropped - before.callsDropped;
  return {
    requests_per_s: requests / ((ms * 2) / 3_000),
    cpu_us: (after.cpu_us - before.cpu_us) / requests,
    p50_us: latencies[latencies.length >> 1],
    p99_us: latencies[Math.floor(latencies.length * 0.99)],
    bytes: (after.bytesSent - before.bytesSent) / requests,
    dropped: calls === 0 ? 0 : (100 * (after.callsDropped - before.callsDropped)) / calls,
  };
}

/** @param {string} title @param {Map<string, Record<string, number>[]>} results */
function table(title, results) {
  const columns = Object.keys([...results.values()][0][0]);
  console.log(`\n| ${title} | ${columns.join(' | ')} |\n|${'---|'.repeat(columns.length + 1)}`);
  for (const [setup, forks] of results) {
    const cells = columns.map((column) => {
      const sorted = forks.map((fork) => fork[column]).sort((a, b) => a - b);
      const median = sorted[sorted.length >> 1];
      return `${digits(median)} (${digits(sorted[0])}..${digits(sorted[sorted.length - 1])})`;
    });
    console.log(`| ${setup} | ${cells.join(' | ')} |`);
  }
}

/** @param {number} value */
function digits(value) {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

async function main() {
  if (options.help) {
    console.log(HELP);
    return;
  }
  try {
    accessSync(options.tacho);
  } catch {
    throw new Error(`there is no server at ${options.tacho}: run \`make build\`, or give --tacho PATH`);
  }
  const data = mkdtempSync(join(tmpdir(), 'tachograph-bench-'));
  const listen = ['--http', '127.0.0.1:0', '--records', '127.0.0.1:0', '--selfwatch-seconds', '0'];
  const tacho = start(options.tacho, ['serve', '--data', data, ...listen]);
  const sink = start(process.execPath, [join(FOLDER, 'sink.js')]);
  try {
    const [, page, records] = /http=(\S+) records=(\S+)/.exec(await tacho.line()) ?? [];
    const receivers = { tacho: records, sink: `127.0.0.1:${await sink.line()}` };
    const rule = new URLSearchParams({ state: 'off', pattern: '*', service: 'bench-off' });
    const { ok } = await fetch(`http://${page}/api/v1/probes?${rule}`, { method: 'POST' });
    if (!ok) throw new Error('the server refused the rule');
    for (const [name, measure] of /** @type {const} */ ([
      ['methods', methods],
      ['http', http],
    ])) {
      if (!options.only.split(',').includes(name)) continue;
      /** @type {Map<string, Record<string, number>[]>} */
      const results = new Map(SETUPS.map((setup) => [setup, []]));
      for (let fork = 1; fork <= Number(options.forks); fork++) {
        for (const [setup, forks] of results) {
          forks.push(await measure(environment(setup, receivers)));
          process.stderr.write(`${name}, fork ${fork}, ${setup}: ${JSON.stringify(forks.at(-1))}\n`);
        }
      }
      table(name, results);
    }
    console.log(
      `\n${cpus().length} x ${cpus()[0].model}, Node.js ${process.version}; medians of ${options.forks} processes (min..max)`,
    );
  } finally {
    tacho.child.kill('SIGTERM');
    sink.child.kill('SIGKILL');
    await tacho.ended;
    rmSync(data, { recursive: true, force: true });
  }
}

await main();
