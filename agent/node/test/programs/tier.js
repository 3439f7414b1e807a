// One of two tiers. The front sends four requests to the back: one with `fetch`, one with `http.request`, and two at once.

import http from 'node:http';
import { request } from 'node:http';

const [name, back] = process.argv.slice(2);
const asked = (url) =>
  new Promise((done, fail) => {
    const sent = request(url, { method: 'POST' }, (answer) => {
      answer.resume();
      answer.on('end', done);
    });
    sent.on('error', fail);
    sent.end('body');
  });

const server = http.createServer(async (incoming, response) => {
  if (back !== undefined) {
    await (await fetch(`${back}/by/fetch`)).text();
    await asked(`${back}/by/request`);
    await Promise.all([asked(`${back}/left`), asked(`${back}/right`)]);
  }
  response.end(name);
});
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
