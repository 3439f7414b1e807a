// Sends requests that fail and unusual requests; prints the results that the program gets.

import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { record } from 'tachograph';

/** Called when a request to `/never` arrives. */
let asked;
const never = new Promise((done) => (asked = done));
const server = http.createServer((request, response) => {
  if (request.url === '/never') return asked();
  request.route = { path: '/:what' };
  request.baseUrl = '/base';
  response.end(JSON.stringify(request.headers));
});
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const { port } = server.address();
const base = `http://127.0.0.1:${port}`;
const own = '00-11111111111111111111111111111111-2222222222222222-01';
const get = (options) =>
  new Promise((done, fail) => {
    http
      .get({ port, host: '127.0.0.1', ...options }, (answer) => {
        let text = '';
        answer.on('data', (piece) => (text += piece));
        answer.on('end', () => done(JSON.parse(text)));
      })
      .on('error', fail);
  });
const say = (what, promise) =>
  promise.then(
    (value) => console.log(`${what}: ${value}`),
    (error) => console.log(`${what} failed: ${error.cause?.code ?? error.code ?? error.name}`),
  );

await record('refused', () => say('http', get({ port: 2 })));
await record('refused by fetch', () => say('fetch', fetch('http://127.0.0.1:2/x')));
const header = async (promise) => (await promise).traceparent === own;
await record('own header', () => say('own', header(get({ headers: { traceparent: own } }))));
await record('own header of fetch', () =>
  say('own', header(fetch(base, { headers: { TraceParent: own } }).then((r) => r.json()))),
);
await record('array of headers', () => say('array', header(get({ headers: ['host', 'a', 'traceparent', own] }))));
await record('aborted', async () => {
  const abort = new AbortController();
  const sent = say('aborted', fetch(`${base}/never`, { signal: abort.signal }));
  await never;
  abort.abort();
  await sent;
});
await record('unread', async () => {
  const request = http.get(`${base}/unread`);
  await new Promise((done) => request.on('close', done)); // without a listener the answer is discarded
  console.log('unread: closed');
});
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
await record('kept alive', async () => {
  const answers = await Promise.all([1, 2, 3].map((at) => get({ agent, path: `/alive/${at}` })));
  console.log(`alive: ${new Set(answers.map((headers) => headers.traceparent?.slice(3, 35))).size}`);
});
agent.destroy();
console.log(
  `listeners: ${http
    .get(base)
    .on('error', () => {})
    .listenerCount('response')}`,
);
await sleep(20);
server.close();
server.closeAllConnections();
