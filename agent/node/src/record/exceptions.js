// What is told of an exception? `class: message`, and of one that a database gave `class (code)`: its message holds the data.
// Nothing here runs code of the program: a getter may wait, throw or change something. Before: `recorder.js`.

import { types } from 'node:util';

/** So many exceptions are looked at that are behind one; where there are more, the message is not told. */
const CHAIN_MAX = 16;
const BEHIND = ['cause', 'parent', 'original', 'driverError'];
const DRIVER_CODE = /^(?:SQLITE_|ERR_SQLITE_|ER_|ORA-\d)/;
const CODE = /^[\w-]{1,64}$/;

/** What calls of databases failed with. @type {WeakSet<object>} */
const seen = new WeakSet();

/** A database gave it, whatever it looks like. @param {unknown} error */
export function isOfDatabase(error) {
  if (typeof error === 'object' && error !== null) {
    seen.add(error);
  }
}

/** @param {object} of @param {string} key */
const own = (of, key) => Object.getOwnPropertyDescriptor(of, key)?.value;

/**
 * @param {unknown} error
 * @param {boolean} [databaseMessages] the setting `database_messages`
 */
export function exceptionText(error, databaseMessages = false) {
  if (typeof error !== 'object' || error === null || types.isProxy(error)) {
    return typeof error === 'string' ? error : typeof error;
  }
  const prototype = Object.getPrototypeOf(error);
  const type = prototype === null || types.isProxy(prototype) ? undefined : own(prototype, 'constructor');
  const name = typeof type === 'function' && !types.isProxy(type) ? own(type, 'name') : undefined;
  const title = typeof name === 'string' && name !== '' ? name : 'Error';
  const code = databaseMessages ? null : databaseCode(error);
  if (code !== null) {
    return code === '' ? title : `${title} (${code})`;
  }
  const message = own(error, 'message');
  return typeof message === 'string' && message !== '' ? `${title}: ${message}` : title;
}

/** @param {object} error @returns {string | null} null where no database is behind it */
function databaseCode(error) {
  const chain = new Set([error]);
  for (const one of chain) {
    if (looksLikeDatabase(one)) {
      const code = own(one, 'code');
      return typeof code === 'string' && CODE.test(code) ? code : '';
    }
    for (const key of BEHIND) {
      const behind = own(one, key);
      if (typeof behind === 'object' && behind !== null && !types.isProxy(behind)) {
        chain.add(behind);
      }
    }
    if (chain.size > CHAIN_MAX) {
      return '';
    }
  }
  return null;
}

/** @param {object} error */
function looksLikeDatabase(error) {
  const code = own(error, 'code');
  const isText = (/** @type {string} */ key) => typeof own(error, key) === 'string';
  return (
    seen.has(error) ||
    isText('sqlMessage') ||
    isText('sqlState') ||
    (typeof code === 'string' && (DRIVER_CODE.test(code) || (code.length === 5 && isText('severity'))))
  );
}
