// The thread of a relay: connects to the server, with TLS if `tls_ca` is set, and passes bytes between a `MessagePort` and
// the server. `relay.js` describes the messages. Before: `relay.js`. After: the server.

import { connect } from 'node:net';
import { workerData } from 'node:worker_threads';
import { isPassing } from './failure.js';
import { Tls } from './tls.js';

/**
 * @typedef {object} Work
 * @property {import('node:worker_threads').MessagePort} port
 * @property {import('./tls.js').Files | null} files null: the connection is not encrypted
 * @property {{ host: string, port: number }} address
 */

/** @type {Work} */
const { port, files, address } = workerData;
const tls = files === null ? null : new Tls(files);

const failed = (/** @type {any} */ error) => {
  const cause = tls === null ? error.message : tls.cause(error, address.host);
  port.postMessage({ cause, isPassing: isPassing(error) });
};
const closed = () => port.postMessage(null);

const plain = connect({ ...address, noDelay: true });
plain.on('error', failed);
plain.on('close', closed);
plain.on('connect', async () => {
  if (tls === null) {
    passFrom(plain);
    passTo(plain);
    return;
  }
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
  passFrom(socket);
  // Nothing is written before the server's certificate is verified.
  socket.on('secureConnect', () => passTo(socket));
}

/** @param {import('node:net').Socket} socket */
function passFrom(socket) {
  socket.on('data', (bytes) => port.postMessage(bytes));
}

/** @param {import('node:net').Socket} socket */
function passTo(socket) {
  port.on('message', (bytes) => (bytes === null ? socket.end() : socket.write(bytes)));
}
