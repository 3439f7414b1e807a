// The measured process: an HTTP server that calls one recorded function for each request and answers with a small JSON. Prints
// its port. For each chunk on its standard input, prints its CPU time and counts as JSON. Ends at the end of this input. Before:
// `overhead.js`.

import { createServer } from 'node:http';
import { wrap } from 'tachograph';

let handle = (/** @type {string} */ url) => JSON.stringify({ url, ads: [1, 2, 3] });
if (process.env.BENCH_WRAP === 'true') handle = wrap(handle, 'Board.ads');

const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(handle(request.url ?? ''));
});
server.listen(0, '127.0.0.1', () => console.log(/** @type {any} */ (server.address()).port));

const agent = /** @type {any} */ (globalThis)[Symbol.for('tachograph.agent')];
process.stdin.on('data', () => {
  const used = process.cpuUsage();
  const { callsDropped = 0, callsSent = 0, bytesSent = 0 } = agent?.totals ?? {};
  console.log(JSON.stringify({ cpu_us: used.user + used.system, callsDropped, callsSent, bytesSent }));
});
process.stdin.on('end', () => process.exit());
