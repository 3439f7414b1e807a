// Replaces functions of Node.js by functions that print their own names. With the functions that replace those of `tls`, the
// program trusts every server. Changes the defaults of TLS. Then records one call, and ends at the end of its input.

import crypto from 'node:crypto';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import tls from 'node:tls';
import { record } from 'tachograph';

/**
 * Replaces a function by one that prints its name and returns the result of `other`, by default the result of the original
 * function. Calls for which `isMeant` returns false go to the original function.
 */
function replace(module, name, isMeant = () => true, other = module[name]) {
  const before = module[name];
  module[name] = (...args) => {
    if (!isMeant(...args)) return before(...args);
    console.log(name);
    return other(...args);
  };
}

const { connect } = tls;
replace(tls, 'connect', undefined, (options) =>
  connect({ ...options, rejectUnauthorized: false, checkServerIdentity: () => undefined }),
);
replace(tls, 'checkServerIdentity', undefined, () => undefined);
replace(tls, 'createSecureContext');
replace(crypto, 'createPrivateKey');
const isPem = (path) => String(path).endsWith('.pem');
replace(fs, 'readFileSync', isPem);
replace(fs, 'openSync', isPem);
Object.assign(tls, { DEFAULT_CIPHERS: 'none', DEFAULT_MIN_VERSION: 'TLSv1', DEFAULT_MAX_VERSION: 'TLSv1' });
syncBuiltinESMExports();

record('outer', () => 1);
process.stdin.resume();
