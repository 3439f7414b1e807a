// Load generator: opens a number of connections and sends one request at a time on each, for a given time. Used by `overhead.js`.

import { connect } from 'node:net';
import { performance } from 'node:perf_hooks';

const REQUEST = Buffer.from('GET /ads/17 HTTP/1.1\r\nHost: bench\r\nX-Request-Id: 0123456789\r\n\r\n');
const END = Buffer.from('\r\n\r\n');

/**
 * @param {number} port
 * @param {number} connections
 * @param {number} ms
 * @returns {Promise<{ requests: number, latencies: number[] }>} latencies in us, sorted
 */
export async function load(port, connections, ms) {
  const deadline = performance.now() + ms;
  /** @type {number[]} */
  const latencies = [];
  const one = () =>
    new Promise((done, fail) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      let sentAt = 0;
      const ask = () => {
        sentAt = performance.now();
        socket.write(REQUEST);
      };
      socket.on('connect', ask);
      socket.on('error', fail);
      // The answer is small, so its headers and its body arrive in one piece.
      socket.on('data', (bytes) => {
        if (bytes.indexOf(END) < 0) return;
        const now = performance.now();
        latencies.push((now - sentAt) * 1_000);
        if (now < deadline) ask();
        else done(socket.destroy());
      });
    });
  await Promise.all(Array.from({ length: connections }, one));
  return { requests: latencies.length, latencies: latencies.sort((a, b) => a - b) };
}
