// Calls functions and sends requests to itself until a line arrives on standard input. The tests switch the recording of these
// functions and requests off and on.

import { createServer } from 'node:http';
import { record, wrap } from 'tachograph';

const price = wrap((n) => n, 'shop.Price.of');
const post = wrap(() => price(1) + price(2), 'shop.Board.post');
let stop = false;
process.stdin.once('data', () => {
  stop = true;
  process.stdin.destroy();
});
const server = createServer((_request, response) => response.end(String(post())));
server.listen(0, '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}/ads`;
  console.log('under way');
  while (!stop) {
    await record('shop.turn', async () => (await fetch(url)).text());
    await new Promise((done) => setTimeout(done, 10));
  }
  server.close();
  server.closeAllConnections();
});
