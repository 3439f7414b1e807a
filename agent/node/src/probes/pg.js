// Records statements of the PostgreSQL client `pg`, and the wait for a connection of its pool. A statement is recorded as a call
// of kind database. Its name is the shape of the statement (`sql.js`). After: `../record/recorder.js`.

import { errorMonitor } from 'node:events';
import { endWith } from '../record/calls.js';
import { become, bound, current } from '../record/context.js';
import { KIND, STATE } from '../wire/constants.js';
import { shape } from './sql.js';

/**
 * Limits on the number and the length of texts whose operation is cached. A program that writes values into its statements has
 * an unlimited number of texts.
 */
const TEXTS_MAX = 4_096;
const TEXT_CHARS_MAX = 4_096;

/** @typedef {import('./index.js').Surroundings} Surroundings */
/** @typedef {import('../record/strand.js').Call} Call */

/** @param {string} name of a module, or its file */
export function isPg(name) {
  return name === 'pg' || /[\\/]pg[\\/]lib[\\/]index\.js$/.test(name);
}

/** @param {any} pg exports of `pg` @param {Surroundings} surroundings */
export function change(pg, surroundings) {
  if (typeof pg?.Client?.prototype?.query !== 'function') {
    return;
  }
  changeQuery(pg.Client.prototype, surroundings);
  if (typeof pg.Pool?.prototype?.connect === 'function') {
    changeConnect(pg.Pool.prototype, surroundings);
  }
}

/** @param {any} client @param {Surroundings} surroundings */
function changeQuery(client, { recorder, guard }) {
  const original = client.query;
  /** @type {Map<string, number>} */
  const texts = new Map();

  const operationOf = (/** @type {string} */ text) => {
    let operation = texts.get(text);
    if (operation === undefined) {
      operation = recorder.dictionary.operation(KIND.DATABASE, shape(text, 'postgresql'));
      if (texts.size < TEXTS_MAX && text.length <= TEXT_CHARS_MAX) {
        texts.set(text, operation);
      }
    }
    return operation;
  };

  const begin = guard((/** @type {any} */ query) => {
    const text = typeof query === 'string' ? query : query?.text;
    const operation = typeof text === 'string' ? operationOf(text) : 0;
    return operation === 0 || recorder.states[operation] === STATE.OFF ? undefined : recorder.enter(current(), operation);
  });

  const end = guard((/** @type {Call} */ call, /** @type {unknown} */ error) => {
    if (error === undefined || error === null) {
      recorder.exit(call);
    } else {
      recorder.fail(call, error);
    }
  });

  client.query = function query(/** @type {any[]} */ ...args) {
    const call = begin(args[0]);
    if (call === undefined) {
      return original.apply(this, args);
    }
    const done = wrapCallback(args, call, end);
    try {
      const result = original.apply(this, args);
      if (done || typeof result?.then !== 'function') {
        if (!done) follow(result, call, end);
        return result;
      }
      return endWith(recorder, call, result);
    } catch (error) {
      end(call, error);
      throw error;
    }
  };
}

/**
 * Replaces the program's callback, which is an argument or a property of the query, by one that ends the call first.
 * @param {any[]} args changed
 * @param {Call} call
 * @param {(call: Call, error: unknown) => void} end
 * @returns {boolean} true if the arguments contain a callback
 */
function wrapCallback(args, call, end) {
  const wrapped = (/** @type {(...args: any[]) => unknown} */ callback) => {
    const inContext = bound(callback);
    return function (/** @type {any} */ error, /** @type {any[]} */ ...rest) {
      end(call, error);
      // @ts-expect-error any `this` of pg
      return inContext.call(this, error, ...rest);
    };
  };
  const at = args.findIndex((argument) => typeof argument === 'function');
  if (at >= 0) {
    args[at] = wrapped(args[at]);
    return true;
  }
  const query = args[0];
  if (typeof query?.callback === 'function') {
    if (typeof query.submit === 'function') {
      query.callback = wrapped(query.callback);
    } else {
      args[0] = Object.assign(Object.create(query), { callback: wrapped(query.callback) });
    }
    return true;
  }
  return false;
}

/**
 * Ends the call at an event of a cursor or of a stream of rows, or immediately if the result has no events.
 * @param {any} result
 * @param {Call} call
 * @param {(call: Call, error: unknown) => void} end
 */
function follow(result, call, end) {
  if (typeof result?.once !== 'function') {
    end(call, undefined);
    return;
  }
  result.once('end', () => end(call, undefined));
  result.once('close', () => end(call, undefined));
  result.once(errorMonitor, (/** @type {unknown} */ error) => end(call, error));
}

/** @param {any} pool @param {Surroundings} surroundings */
function changeConnect(pool, { recorder, guard }) {
  const original = pool.connect;
  const operation = recorder.dictionary.operation(KIND.CONNECTION_WAIT, 'Pool.connect');
  const begin = guard(() => (recorder.states[operation] === STATE.OFF ? undefined : recorder.enter(current(), operation)));
  const end = guard((/** @type {Call} */ call, /** @type {unknown} */ error) => {
    if (error) {
      recorder.fail(call, error);
    } else {
      recorder.exit(call);
    }
  });
  pool.connect = function connect(/** @type {any} */ callback) {
    const before = current();
    const call = begin();
    if (call === undefined) {
      return original.call(this, callback);
    }
    if (typeof callback === 'function') {
      // The pool may call back in the context of the code that has just released a connection.
      const inContext = bound(callback);
      return original.call(this, (/** @type {any} */ error, /** @type {any} */ ...rest) => {
        end(call, error);
        return inContext(error, ...rest);
      });
    }
    become(before);
    return endWith(recorder, call, original.call(this));
  };
}
