// Records values that are too long, too many or invalid.

import http from 'node:http';
import { entry, record, sample } from 'tachograph';

record('x'.repeat(50_000), () => 1);
record('größe 漢 \ud83d', () => 1);
for (let at = 0; at < 30_000; at++) {
  record(`operation ${at}`, () => 1);
}
entry('huge', 'x'.repeat(5_000_000));
entry('odd', 'a\ud83db\0');
sample({ __name__: 'odd', label: 'x'.repeat(10_000) }, 1);
sample({}, 1);
sample('not a number', 'text');
const server = http.createServer({ maxHeaderSize: 100_000 }, (request, response) => response.end('ok'));
server.listen(0, '127.0.0.1', async () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const headers = { 'x-request-id': 'r'.repeat(30_000), traceparent: '00-broken' };
  await (await fetch(`${base}/${'p'.repeat(20_000)}?q`, { headers })).text();
  for (let at = 0; at < 1_100; at++) {
    await (await fetch(`${base}/w${at}x`)).text();
  }
  server.close();
  server.closeAllConnections();
  console.log('done');
});
