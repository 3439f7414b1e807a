// The token of the settings, which authenticates this program. The token is sent in HELLO only, and no log line contains it.
// Private fields keep it, so that no printed object shows it. Before: `config.js`. After: `send/protocol.js`, `send/link.js`.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import * as messages from './messages.js';
import { TOKEN_BYTES_MAX } from './wire/constants.js';

// With O_NONBLOCK, opening a FIFO does not wait for a writer. Windows has no such flag.
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
/**
 * Number of bytes to read from the file: the longest token, a line end of at most two bytes, and one byte more, so that a token
 * that is too long is detected.
 */
const READ_BYTES = TOKEN_BYTES_MAX + 3;

/** A text that is not printed with the settings. */
export class Secret {
  #text;

  /** @param {string} text */
  constructor(text) {
    this.#text = text;
  }

  reveal() {
    return this.#text;
  }
}

/** The settings `token`, `token_file` and `insecure_token`. */
export class Token {
  #given;
  /** @type {Buffer | null} */
  #bytes = null;

  /** @param {{ given: Secret, file: string, isInsecure: boolean }} settings */
  constructor({ given, file, isInsecure }) {
    this.#given = given.reveal();
    this.file = file === '' ? '' : resolve(file); // the program may change its directory
    this.isInsecure = isInsecure;
    /** The setting that has the token, for messages. */
    this.setting = file === '' ? 'token' : `token_file=${this.file}`;
  }

  static none() {
    return new Token({ given: new Secret(''), file: '', isInsecure: false });
  }

  /** The token that was read last; null if there is none. */
  get bytes() {
    return this.#bytes;
  }

  /**
   * Reads the token for the first connection. Blocks the program, so that even a program that ends at once can send its records.
   * @throws {Error} with the setting and the reason, without the token
   */
  readNow() {
    this.#bytes = null;
    this.#bytes = this.#checked(this.#isFromFile() ? contentNow(this.file) : this.#given);
  }

  /** As `readNow`, for later connections, without blocking the program. The file is read again, because it may have changed. */
  async read() {
    this.#bytes = null;
    this.#bytes = this.#checked(this.#isFromFile() ? await content(this.file) : this.#given);
  }

  #isFromFile() {
    if (this.file !== '' && this.#given !== '') {
      throw new Error(messages.TOKEN_TWICE);
    }
    return this.file !== '';
  }

  /** @param {string | Error} text or the reason why there is none */
  #checked(text) {
    if (text instanceof Error) {
      // Keeps only the description: without the code, the system call and the path.
      const why = /^[A-Z]+: ([^,]+),/.exec(text.message)?.[1] ?? text.message;
      throw new Error(messages.tokenUnusable(this.setting, why));
    }
    if (this.file === '' && text === '') {
      return null;
    }
    if (!/^[\x21-\x7e]+$/.test(text) || text.length > TOKEN_BYTES_MAX) {
      throw new Error(messages.tokenUnusable(this.setting, messages.tokenForm(TOKEN_BYTES_MAX)));
    }
    return Buffer.from(text);
  }
}

/** @param {string} address of a server, as a socket reports it, or as written in the settings */
export function isLoopback(address) {
  return /^(::ffff:)?127\.\d+\.\d+\.\d+$/.test(address) || address === '::1';
}

/** @param {string} path */
function contentNow(path) {
  try {
    const file = openSync(path, FLAGS);
    try {
      const bytes = Buffer.alloc(READ_BYTES);
      return fstatSync(file).isFile() ? line(bytes, readSync(file, bytes)) : new Error(messages.TLS_NOT_A_FILE);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return /** @type {Error} */ (error);
  }
}

/** @param {string} path */
async function content(path) {
  try {
    const file = await open(path, FLAGS);
    try {
      const bytes = Buffer.alloc(READ_BYTES);
      const isFile = (await file.stat()).isFile();
      return isFile ? line(bytes, (await file.read(bytes)).bytesRead) : new Error(messages.TLS_NOT_A_FILE);
    } finally {
      await file.close();
    }
  } catch (error) {
    return /** @type {Error} */ (error);
  }
}

/** The content without the end of its line; each byte is a character. @param {Buffer} bytes @param {number} count */
function line(bytes, count) {
  return bytes.toString('latin1', 0, count).replace(/\r?\n$/, '');
}
