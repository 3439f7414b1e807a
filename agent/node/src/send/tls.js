// TLS of the connection: opens it with the files of the settings, and names the cause of a failure. `node:tls` is loaded only if
// `tls_ca` is set. Before: `link.js`, `relay.js`. After: `crates/server/src/tls`.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import * as messages from '../messages.js';

const require = createRequire(import.meta.url);
/** Value of `tls_ca` for the authorities that Node.js trusts by default. */
const SYSTEM = 'system';
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
/** Reasons for bytes that are not TLS; OpenSSL's words depend on the version and on the bytes. */
const NOT_TLS = /wrong version number|packet length too long|record layer failure|unsupported protocol|http request/i;
const ALERT = /alert .*(certificate|unknown ca|handshake failure)/i;

/**
 * Paths of the files, of which `ca` may be `system`; empty: not set.
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
  }

  /**
   * The socket is ready at its event `secureConnect`. Reads the files at each call, so that renewed certificates are used.
   * @param {{ host: string, port: number }} address
   * @returns {import('node:tls').TLSSocket}
   * @throws {Error} if a file cannot be used, see `cause`
   */
  connect({ host, port }) {
    const name = host.split('%')[0]; // the zone of an address is not part of a certificate
    /** @type {typeof import('node:tls')} */
    const { checkServerIdentity, connect } = require('node:tls');
    const socket = connect({
      host,
      port,
      ...this.#read(),
      servername: isIP(name) === 0 ? name : '',
      checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
      rejectUnauthorized: true, // NODE_TLS_REJECT_UNAUTHORIZED is a variable of the program
    });
    socket.setNoDelay(true);
    return socket;
  }

  /** @returns {{ ca?: Buffer, cert?: Buffer, key?: Buffer }} */
  #read() {
    const { ca, cert, key } = this.files;
    if ((cert === '') !== (key === '')) {
      const names = ['tls_client_cert', 'tls_client_key'];
      const [given, missing] = cert === '' ? names.reverse() : names;
      throw new Unusable(messages.tlsHalf(given, missing));
    }
    const trusted = ca === SYSTEM ? {} : { ca: certificate('tls_ca', ca).pem };
    if (cert === '') {
      return trusted;
    }
    const shown = certificate('tls_client_cert', cert);
    const kept = privateKey('tls_client_key', key);
    if (!shown.first.checkPrivateKey(kept.key)) {
      throw unusable('tls_client_key', key, messages.TLS_KEY_OTHER);
    }
    return { ...trusted, cert: shown.pem, key: kept.pem };
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

/** @param {string} setting @param {string} path */
function certificate(setting, path) {
  const pem = read(setting, path, 'CERTIFICATE-----', messages.TLS_NO_CERTIFICATE);
  /** @type {typeof import('node:crypto')} */
  const { X509Certificate } = require('node:crypto');
  return { pem, first: attempt(setting, path, () => new X509Certificate(pem)) };
}

/** @param {string} setting @param {string} path */
function privateKey(setting, path) {
  const pem = read(setting, path, 'PRIVATE KEY-----', messages.TLS_NO_KEY);
  if (pem.includes('ENCRYPTED')) {
    throw unusable(setting, path, messages.TLS_KEY_ENCRYPTED);
  }
  /** @type {typeof import('node:crypto')} */
  const { createPrivateKey } = require('node:crypto');
  return { pem, key: attempt(setting, path, () => createPrivateKey(pem)) };
}

/**
 * @param {string} setting
 * @param {string} path
 * @param {string} mark text that the file must contain
 * @param {string} missing the fault if it does not
 */
function read(setting, path, mark, missing) {
  const bytes = attempt(setting, path, () => readFileSync(path));
  if (!bytes.includes(mark)) {
    throw unusable(setting, path, missing);
  }
  return bytes;
}

/** @template T @param {string} setting @param {string} path @param {() => T} operation @returns {T} */
function attempt(setting, path, operation) {
  try {
    return operation();
  } catch (error) {
    const { reason, message } = /** @type {Error & { reason?: string }} */ (error);
    // Without the code, the system call and the path, which the line has already.
    throw unusable(setting, path, reason ?? /^[A-Z]+: ([^,]+),/.exec(message)?.[1] ?? message);
  }
}

/** @param {string} setting @param {string} path @param {string} why */
const unusable = (setting, path, why) => new Unusable(messages.tlsUnusable(setting, path, why));
