// TLS of the connection: encrypts it with the files of the settings, and names the cause of a failure. `node:tls` is loaded only
// if `tls_ca` is set. Before: `link.js`, `relay-thread.js`. After: `crates/server/src/tls`.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import * as messages from '../messages.js';

const require = createRequire(import.meta.url);
/** Value of `tls_ca` for the authorities that Node.js trusts by default. */
const SYSTEM = 'system';
/** Maximum size of a file. All authorities that a system trusts have about 256 KiB. */
export const FILE_BYTES_MAX = 4 << 20;
/** Codes of OpenSSL for a chain that ends at no trusted authority. */
const UNTRUSTED = new Set([
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
/** Codes for other faults of a certificate. */
const INVALID = /^(CERT_|CRL_|INVALID_|PATH_LENGTH_EXCEEDED|ERROR_IN_CERT_)/;
/** Messages of OpenSSL about bytes that are not TLS. They depend on its version and on the bytes. */
const NOT_TLS = /wrong version number|packet length too long|record layer failure|unsupported protocol|http request/i;
/** An encrypted key, in PKCS #8 or in the older form of OpenSSL. The word ENCRYPTED alone may also be in a comment. */
const ENCRYPTED = /^(-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: *4, *ENCRYPTED)/m;
const ALERT = /alert .*(certificate|unknown ca|handshake failure)/i;

/**
 * Paths of the files. `ca` may be `system`. Empty: the setting is not set.
 * @typedef {{ ca: string, cert: string, key: string }} Files
 */

/** A file cannot be used; the message has the setting, its value and the reason. */
class Unusable extends Error {}

export class Tls {
  /** @param {Files} files */
  constructor({ ca, cert, key }) {
    const absolute = (/** @type {string} */ path) => (path === '' ? '' : resolve(path)); // the program may change its directory
    /** Can be passed to another thread. @type {Files} */
    this.files = { ca: ca === SYSTEM ? ca : absolute(ca), cert: absolute(cert), key: absolute(key) };
    // Taken at the start, because the program may later replace functions of the modules or change the defaults.
    /** @type {typeof import('node:tls')} */
    const tls = require('node:tls');
    const { checkServerIdentity, connect, createSecureContext } = tls;
    this.tls = { checkServerIdentity, connect, createSecureContext };
    /** @type {import('node:tls').SecureContextOptions} */
    this.defaults = {
      ciphers: tls.DEFAULT_CIPHERS,
      ecdhCurve: tls.DEFAULT_ECDH_CURVE,
      minVersion: tls.DEFAULT_MIN_VERSION,
      maxVersion: tls.DEFAULT_MAX_VERSION,
    };
    /** @type {typeof import('node:crypto')} */
    const { X509Certificate, createPrivateKey } = require('node:crypto');
    this.crypto = { X509Certificate, createPrivateKey };
    /** The context that is being made. @type {Promise<import('node:tls').SecureContext> | null} */
    this.making = null;
  }

  /**
   * Reads the files, without blocking the program. They are read for each connection, so that renewed certificates are used. The
   * promise rejects if a file cannot be used (see `cause`). At most one thread of libuv waits for a slow file system.
   */
  context() {
    this.making ??= this.#make().finally(() => (this.making = null));
    return this.making;
  }

  /**
   * The result is ready at its event `secureConnect`.
   * @param {import('node:net').Socket} socket connected
   * @param {string} host
   * @param {import('node:tls').SecureContext} secureContext
   */
  encrypt(socket, host, secureContext) {
    const name = host.split('%')[0]; // the zone of an address is not part of a certificate
    return this.tls.connect({
      socket,
      secureContext,
      servername: isIP(name) === 0 ? name : '',
      checkServerIdentity: (_, certificate) => this.tls.checkServerIdentity(name, certificate),
      rejectUnauthorized: true, // NODE_TLS_REJECT_UNAUTHORIZED applies to the program, not to the agent
    });
  }

  async #make() {
    return this.tls.createSecureContext({ ...this.defaults, ...(await this.#read()) });
  }

  /** @returns {Promise<{ ca?: Buffer, cert?: Buffer, key?: Buffer }>} */
  async #read() {
    const { ca, cert, key } = this.files;
    if ((cert === '') !== (key === '')) {
      const names = ['tls_client_cert', 'tls_client_key'];
      const [given, missing] = cert === '' ? names.reverse() : names;
      throw new Unusable(messages.tlsHalf(given, missing));
    }
    const trusted = ca === SYSTEM ? {} : { ca: (await this.#certificate('tls_ca', ca)).pem };
    if (cert === '') {
      return trusted;
    }
    const shown = await this.#certificate('tls_client_cert', cert);
    const kept = await this.#privateKey('tls_client_key', key);
    if (!shown.first.checkPrivateKey(kept.key)) {
      throw unusable('tls_client_key', key, messages.TLS_KEY_OTHER);
    }
    return { ...trusted, cert: shown.pem, key: kept.pem };
  }

  /** @param {string} setting @param {string} path */
  async #certificate(setting, path) {
    const pem = await read(setting, path, 'CERTIFICATE-----', messages.TLS_NO_CERTIFICATE);
    return { pem, first: await attempt(setting, path, () => new this.crypto.X509Certificate(pem)) };
  }

  /** @param {string} setting @param {string} path */
  async #privateKey(setting, path) {
    const pem = await read(setting, path, 'PRIVATE KEY-----', messages.TLS_NO_KEY);
    if (ENCRYPTED.test(pem.toString('latin1'))) {
      throw unusable(setting, path, messages.TLS_KEY_ENCRYPTED);
    }
    return { pem, key: await attempt(setting, path, () => this.crypto.createPrivateKey(pem)) };
  }

  /**
   * Why a connection failed, in words.
   * @param {NodeJS.ErrnoException & { reason?: string }} error
   * @param {string} host
   */
  cause(error, host) {
    const { code = '', reason, message } = error;
    const why = reason ?? message;
    if (error instanceof Unusable) {
      return message;
    }
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
      return messages.tlsOtherName(host, why);
    }
    if (UNTRUSTED.has(code)) {
      return messages.tlsUntrusted(why);
    }
    if (INVALID.test(code)) {
      return messages.tlsInvalid(why);
    }
    if (NOT_TLS.test(message)) {
      return messages.tlsNotThere(why);
    }
    if (ALERT.test(message)) {
      return this.files.cert === '' ? messages.tlsClientCertNeeded(why) : messages.tlsClientCertRefused(why);
    }
    return /^ERR_(SSL|TLS|OSSL)_/.test(code) ? messages.tlsFailed(why) : why;
  }
}

/**
 * @param {string} setting
 * @param {string} path
 * @param {string} mark text that the file must contain
 * @param {string} missing the fault if it does not
 */
async function read(setting, path, mark, missing) {
  const bytes = await attempt(setting, path, () => readRegular(path));
  if (!bytes.includes(mark)) {
    throw unusable(setting, path, missing);
  }
  return bytes;
}

/** @param {string} path */
async function readRegular(path) {
  // With O_NONBLOCK, opening a FIFO does not wait for a writer. Windows has no such flag.
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
  const file = await open(path, flags);
  try {
    const kind = await file.stat();
    if (!kind.isFile() && !kind.isDirectory()) {
      throw new Error(messages.TLS_NOT_A_FILE);
    }
    if (kind.isFile() && kind.size > FILE_BYTES_MAX) {
      throw new Error(messages.tlsTooLarge(FILE_BYTES_MAX));
    }
    return await file.readFile(); // fails for a directory, with the reason of the system
  } finally {
    await file.close();
  }
}

/** @template T @param {string} setting @param {string} path @param {() => T} operation */
async function attempt(setting, path, operation) {
  try {
    return await operation();
  } catch (error) {
    const { reason, message } = /** @type {Error & { reason?: string }} */ (error);
    // Keeps only the description: without the code, the system call and the path.
    throw unusable(setting, path, reason ?? /^[A-Z]+: ([^,]+),/.exec(message)?.[1] ?? message);
  }
}

/** @param {string} setting @param {string} path @param {string} why */
const unusable = (setting, path, why) => new Unusable(messages.tlsUnusable(setting, path, why));
