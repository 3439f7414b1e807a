// A connection with TLS for the end of the process: nothing encrypts without the loop, which no longer runs. Another thread has a
// loop; it connects, and passes bytes between a port and the server.
//
//   message to the thread: bytes to send, or null: close the connection after them
//   message from it: bytes received; a text: why the connection has failed; null: it is closed as asked
//
// This file is both sides. Before: `farewell.js`. After: the server.

import { isMainThread, MessageChannel, receiveMessageOnPort, Worker, workerData } from 'node:worker_threads';
import * as messages from '../messages.js';
import { Tls } from './tls.js';

/** Marks the data of the thread. */
const RELAY = 'tachograph.relay';
const EMPTY = Buffer.alloc(0);

export class Relay {
  /** @param {Tls} tls @param {{ host: string, port: number }} address */
  constructor(tls, address) {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    const thread = new Worker(new URL(import.meta.url), {
      // The thread loads neither the agent nor what the program loads into its threads.
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
      stdout: true,
      stderr: true,
      workerData: { [RELAY]: { port: port2, files: tls.files, address } },
      transferList: [port2],
    });
    thread.on('error', () => {}); // the caller waits for a limited time
    thread.unref();
    port1.unref();
    this.isEnding = false;
    this.isClosed = false;
  }

  /** @param {Uint8Array} bytes @returns {number} written bytes: all of them */
  write(bytes) {
    this.port.postMessage(bytes);
    return bytes.length;
  }

  /** @returns {Uint8Array} empty if nothing has arrived @throws {Error} if the connection has failed */
  read() {
    const { message } = receiveMessageOnPort(this.port) ?? { message: EMPTY };
    if (typeof message === 'string') {
      throw new Error(message);
    }
    if (message === null && !this.isEnding) {
      throw new Error(messages.SERVER_CLOSED);
    }
    this.isClosed ||= message === null;
    return message ?? EMPTY;
  }

  /** Closes the connection when everything is written. */
  end() {
    this.isEnding = true;
    this.port.postMessage(null);
  }
}

/**
 * @typedef {object} Work
 * @property {import('node:worker_threads').MessagePort} port
 * @property {import('./tls.js').Files} files
 * @property {{ host: string, port: number }} address
 */

/** @param {Work} work */
function run({ port, files, address }) {
  const tls = new Tls(files);
  const failed = (/** @type {any} */ error) => port.postMessage(tls.cause(error, address.host));
  try {
    const socket = tls.connect(address);
    socket.on('data', (bytes) => port.postMessage(bytes));
    socket.on('error', failed);
    socket.on('close', () => port.postMessage(null));
    // Nothing is written before the server's certificate is verified.
    socket.once('secureConnect', () => {
      port.on('message', (bytes) => (bytes === null ? socket.end() : socket.write(bytes)));
    });
  } catch (error) {
    failed(error);
  }
}

if (!isMainThread && workerData !== null && typeof workerData === 'object' && Object.hasOwn(workerData, RELAY)) {
  run(workerData[RELAY]);
}
