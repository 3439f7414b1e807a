// Decides from the error of a failed connection whether another attempt may help. `farewell.js` needs the answer when the program
// ends. Before: `link.js`, `relay-thread.js`. After: `farewell.js`.

/** Codes of a connection that the server, or a device on the way, has ended. */
const PASSING = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE']);

/** The server was reached, but it did not answer, or the connection was closed. Another attempt may help. */
export class Lost extends Error {}

/**
 * True if another attempt may help. False if it would fail, too, for example because a certificate is not trusted.
 * @param {any} error of a connection, or of an attempt to connect
 */
export function isPassing(error) {
  return error instanceof Lost || PASSING.has(error?.code);
}
