// A CommonJS program without references to the agent: a server that calls itself and ends.
'use strict';

const http = require('http');

const server = http.createServer((request, response) => {
  if (request.url.startsWith('/stock/')) {
    response.end('3');
    return;
  }
  if (request.url === '/broken') {
    response.statusCode = 503;
    response.end();
    return;
  }
  http.get({ host: '127.0.0.1', port: server.address().port, path: '/stock/17?fresh' }, (answer) => {
    answer.resume();
    answer.on('end', () => response.end('ok'));
  });
});

server.listen(0, '127.0.0.1', async () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  const answer = await fetch(`${base}/cart/5?x=1`, { headers: { 'x-request-id': 'cjs-1' } });
  console.log(await answer.text());
  await (await fetch(`${base}/broken`)).text();
  server.close();
  server.closeIdleConnections();
});
