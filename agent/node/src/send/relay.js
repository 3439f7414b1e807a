// A connection for the end of the process. It is used with TLS, and also without TLS if the earlier connection has failed.
// Encryption and a new connection need an event loop, and the event loop of this thread no longer runs. So another thread
// connects, and passes bytes between a `MessagePort` and the server.
//
//   message to the thread    bytes   to be sent to the server
//                            null    no more bytes follow: the thread closes the connection when it has sent all
//   message from the thread  bytes   received from the server
//                            object  the connection has failed; the object is a `Failure`
//                            null    the connection is closed
//
// Before: `farewell.js`. After: `relay-thread.js`.

import { existsSync } from 'node:fs';
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import * as messages from '../messages.js';
import { Lost } from './failure.js';

/** @typedef {{ cause: string, isPassing: boolean }} Failure `isPassing`: another attempt may help */

const EMPTY = Buffer.alloc(0);
/** Longest wait for the answer to HELLO, from the start of the thread. */
const GREETING_MS = 15_000;

export class Relay {
  /**
   * @param {import('./tls.js').Tls | null} tls null: the connection is not encrypted
   * @param {{ host: string, port: number }} address
   * @throws {Error} if there is no file for the thread, because the program was bundled into one file without it
   */
  constructor(tls, address) {
    const file = new URL('./relay-thread.js', import.meta.url);
    if (!existsSync(file)) {
      throw new Error(`there is no file ${file}`);
    }
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    const thread = new Worker(file, {
      // The thread loads neither the agent nor the modules that the program preloads into its threads.
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
      stdout: true,
      stderr: true,
      workerData: { port: port2, files: tls?.files ?? null, address },
      transferList: [port2],
    });
    thread.on('error', () => {}); // the caller waits for a limited time
    thread.unref();
    port1.unref();
    this.isEnding = false;
    this.isClosed = false;
    this.greetingMs = GREETING_MS;
  }

  /** @param {Uint8Array} bytes @returns {number} written bytes: all of them */
  write(bytes) {
    this.port.postMessage(bytes);
    return bytes.length;
  }

  /** @returns {Uint8Array} empty if nothing has arrived @throws {Error} if the connection has failed */
  read() {
    const { message } = receiveMessageOnPort(this.port) ?? { message: EMPTY };
    if (message !== null && 'cause' in message) {
      throw new (message.isPassing ? Lost : Error)(message.cause);
    }
    if (message === null && !this.isEnding) {
      throw new Lost(messages.SERVER_CLOSED);
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
