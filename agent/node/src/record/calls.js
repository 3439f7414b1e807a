// Records the calls of a function without changing its behaviour: it gets the same `this` and arguments, and its caller gets the
// same result or exception. If the result is a plain promise, the caller gets a promise that settles in the same way, and the
// call ends when it settles (see `endWith`). Before: `../agent.js`. After: `recorder.js`.

import { types } from 'node:util';
import { KIND, STATE } from '../wire/constants.js';
import { UNKNOWN } from '../wire/dictionary.js';
import { become, current } from './context.js';

/** @typedef {import('./recorder.js').Recorder} Recorder */
/** @typedef {import('./strand.js').Call} Call */

/**
 * @template T
 * @param {Recorder} recorder
 * @param {string} name
 * @param {() => T} fn
 * @returns {T}
 */
export function record(recorder, name, fn) {
  const operation = recorder.dictionary.operation(KIND.METHOD, name);
  return recorder.states[operation] === STATE.OFF ? fn() : run(recorder, operation, fn, undefined, []);
}

/**
 * Returns a function that behaves like `fn` and records its calls. A construction with `new` is not recorded.
 * @template {(this: any, ...args: any[]) => any} F
 * @param {Recorder} recorder
 * @param {F} fn
 * @param {string} name
 * @returns {F}
 */
export function wrap(recorder, fn, name) {
  let operation = 0;
  const { states } = recorder;
  /** @this {any} */
  function watched() {
    if (new.target !== undefined) {
      return Reflect.construct(fn, arguments, new.target === watched ? fn : new.target);
    }
    let state = states[operation];
    if (state === UNKNOWN) {
      operation = recorder.dictionary.operation(KIND.METHOD, name);
      state = states[operation];
    }
    return state === STATE.OFF ? Reflect.apply(fn, this, arguments) : run(recorder, operation, fn, this, arguments);
  }
  for (const key of ['name', 'length', 'prototype']) {
    const descriptor = Object.getOwnPropertyDescriptor(fn, key);
    if (descriptor !== undefined) {
      Object.defineProperty(watched, key, descriptor);
    }
  }
  return /** @type {F} */ (/** @type {unknown} */ (watched));
}

/**
 * @param {Recorder} recorder
 * @param {number} operation
 * @param {(this: any, ...args: any[]) => any} fn
 * @param {unknown} self
 * @param {ArrayLike<unknown>} args
 */
function run(recorder, operation, fn, self, args) {
  const before = current();
  const call = recorder.enter(before, operation);
  let result;
  try {
    become(call);
    result = Reflect.apply(fn, self, args);
  } catch (error) {
    recorder.fail(call, error);
    throw error;
  } finally {
    become(before);
  }
  if (typeof result === 'object' && result !== null && types.isPromise(result)) {
    return endWith(recorder, call, result);
  }
  recorder.exit(call);
  return result;
}

/**
 * Ends the call when the promise settles. The caller gets another promise that settles in the same way, because a listener on the
 * original promise would mark its unhandled rejections as handled. A promise with additional behaviour (a subclass, or own
 * members) is returned unchanged, and its call ends at once.
 * @param {Recorder} recorder
 * @param {Call} call
 * @param {Promise<any>} promise
 */
export function endWith(recorder, call, promise) {
  if (Object.getPrototypeOf(promise) !== Promise.prototype || hasMembers(promise)) {
    recorder.exit(call);
    return promise;
  }
  return promise.then(
    (value) => {
      recorder.exit(call);
      return value;
    },
    (error) => {
      recorder.fail(call, error);
      throw error;
    },
  );
}

/** @param {object} promise */
function hasMembers(promise) {
  for (const key in promise) {
    if (Object.hasOwn(promise, key)) {
      return true;
    }
  }
  return false;
}
