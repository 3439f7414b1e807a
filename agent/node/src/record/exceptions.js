// The text of an exception: `class: message`. For a database exception, or an exception that wraps one, it is `class (code)`, or
// only `class` if there is no code, because the message may contain data. The setting `database_messages` permits the message.
// This file runs no code of the program, because a getter may wait, throw or change state. Before: `recorder.js`.

import { types } from 'node:util';

/** Limit on the exceptions of a chain, the recorded one and its causes. If a chain is longer, the message is not recorded. */
const CHAIN_MAX = 16;
/** Limit on the classes that are checked: the class of the exception and its superclasses. */
const CLASSES_MAX = 16;
const BEHIND = ['cause', 'parent', 'original', 'originalError', 'driverError', 'nativeError', 'reason'];
/** Codes of SQLite, MySQL, Oracle, SQL Server, DuckDB. */
const DRIVER_CODE = /^(?:SQLITE_|ERR_SQLITE_|ER_|ORA-\d|NJS-\d|DPI-\d|DUCKDB_|EREQUEST$|EPARAM$|ELOGIN$)/;
const CODE = /^[\w-]{1,64}$/;
/** Exception classes of drivers, and of wrappers that quote the statement, its values or the search terms. */
const DATABASE_CLASS = new RegExp(
  `^(?:${[
    'PrismaClient\\w*Error|Sequelize\\w+|Drizzle(?:Query)?Error|TypeORMError|DriverException|DBError|KnexTimeoutError',
    'MSSQLError|LibsqlError|SqliteError|PostgresError|SqlError|MongoError|MongooseError|BSONError',
    'RedisError|ReplyError|ErrorReply|DatabaseError|DriverError|ClickHouseError|NeonDbError|DuckDbError',
    'Neo4jError|CouchbaseError|ElasticsearchClientError|OpenSearchClientError|ArangoError',
  ].join('|')})$`,
);
/** Class names of exceptions of Prisma. The exceptions have these names in `name`, even if a bundler has shortened the name of
 * the class. */
const OWN_NAME = /^PrismaClient\w{1,40}$/;

/** Exceptions of database calls. @type {WeakSet<object>} */
const seen = new WeakSet();

/** Marks an error as an exception of a database, even if its class is not known. @param {unknown} error */
export function isOfDatabase(error) {
  if (typeof error === 'object' && error !== null) {
    seen.add(error);
  }
}

/** @param {object} of @param {string} key */
const own = (of, key) => Object.getOwnPropertyDescriptor(of, key)?.value;

/** @param {unknown} value @returns {value is object} */
const isPlain = (value) => typeof value === 'object' && value !== null && !types.isProxy(value);

/**
 * @param {unknown} error
 * @param {boolean} [databaseMessages] the setting `database_messages`
 */
export function exceptionText(error, databaseMessages = false) {
  if (!isPlain(error)) {
    return typeof error === 'string' ? error : typeof error;
  }
  const title = titleOf(error);
  const code = databaseMessages ? null : databaseCode(error);
  if (code !== null) {
    return code === '' ? title : `${title} (${code})`;
  }
  const message = own(error, 'message');
  return typeof message === 'string' && message !== '' ? `${title}: ${message}` : title;
}

/** @param {object} error */
function titleOf(error) {
  const name = own(error, 'name');
  if (typeof name === 'string' && OWN_NAME.test(name)) {
    return name;
  }
  const [title] = classesOf(error);
  return title !== undefined && title !== '' ? title : 'Error';
}

/** Names of the error's class and its superclasses. @param {object} error @returns {Generator<string>} */
function* classesOf(error) {
  let prototype = Object.getPrototypeOf(error);
  for (let left = CLASSES_MAX; left > 0 && isPlain(prototype); left--) {
    const type = own(prototype, 'constructor');
    const name = typeof type === 'function' && !types.isProxy(type) ? own(type, 'name') : undefined;
    yield typeof name === 'string' ? name : '';
    prototype = Object.getPrototypeOf(prototype);
  }
}

/**
 * @param {object} error
 * @returns {string | null} the first code of a database exception in the chain; '' if there is no code, or if the chain is too
 * long; null without a database exception
 */
function databaseCode(error) {
  const chain = new Set([error]);
  /** @type {string | null} */
  let found = null;
  for (const one of chain) {
    if (looksLikeDatabase(one)) {
      const code = codeOf(one);
      if (code !== '') {
        return code;
      }
      found = '';
    }
    for (const next of behind(one)) {
      if (isPlain(next)) {
        chain.add(next);
      }
    }
    if (chain.size > CHAIN_MAX) {
      return '';
    }
  }
  return found;
}

/** @param {object} error @returns {unknown[]} causes, including the errors of an AggregateError */
function behind(error) {
  const found = BEHIND.map((key) => own(error, key));
  const several = own(error, 'errors');
  if (isPlain(several) && Array.isArray(several)) {
    for (let at = 0; at < Math.min(several.length, CHAIN_MAX); at++) {
      found.push(own(several, String(at)));
    }
  }
  return found;
}

/** @param {object} error */
function codeOf(error) {
  const number = own(error, 'number');
  const code = own(error, 'code') ?? own(error, 'errorCode');
  if (code === 'EREQUEST' && Number.isInteger(number)) {
    return String(number); // error number of SQL Server
  }
  return Number.isInteger(code) || (typeof code === 'string' && CODE.test(code)) ? String(code) : '';
}

/** @param {object} error */
function looksLikeDatabase(error) {
  const code = own(error, 'code');
  const name = own(error, 'name');
  const isText = (/** @type {string} */ key) => typeof own(error, key) === 'string';
  return (
    seen.has(error) ||
    ['errorNum', 'sqlcode', 'gdscode'].some((key) => Number.isInteger(own(error, key))) ||
    ['sqlMessage', 'sqlState', 'sqlstate', 'sql'].some(isText) ||
    (isText('query') && (own(error, 'parameters') !== undefined || own(error, 'params') !== undefined)) ||
    (typeof code === 'string' && (DRIVER_CODE.test(code) || (code.length === 5 && isText('severity')))) ||
    (typeof name === 'string' && DATABASE_CLASS.test(name)) ||
    [...classesOf(error)].some((one) => DATABASE_CLASS.test(one))
  );
}
