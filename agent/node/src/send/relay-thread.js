// The thread of a relay: connects to the server with TLS, and passes bytes between a port and the server. `relay.js` describes
// the messages. Before: `relay.js`. After: the server.

import { connect } from 'node:net';
import { workerData } from 'node:worker_threads';
import { Tls } from './tls.js';

/**
 * @typedef {object} Work
 * @property {import('node:worker_threads').MessagePort} port
 * @property {import('./tls.js').Files} files
 * @property {{ host: string, port: number }} address
 */

/** @type {Work} */
const { port, files, address } = workerData;
const tls = new Tls(files);

const failed = (/** @type {any} */ error) => port.postMessage(tls.cause(error, address.host));
const closed = () => port.postMessage(null);

const plain = connect({ ...address, noDelay: true });
plain.on('error', failed);
plain.on('close', closed);
plain.on('connect', async () => {
  try {
    encrypted(tls.encrypt(plain, address.host, await tls.context()));
  } catch (error) {
    plain.destroy(/** @type {Error} */ (error));
  }
});

/** @param {import('node:tls').TLSSocket} socket */
function encrypted(socket) {
  plain.off('close', closed);
  socket.on('close', closed);
  socket.on('error', failed);
  socket.on('data', (bytes) => port.postMessage(bytes));
  // Nothing is written before the server's certificate is verified.
  socket.on('secureConnect', () => {
    port.on('message', (bytes) => (bytes === null ? socket.end() : socket.write(bytes)));
  });
}
