// The current call of asynchronous code. The runtime carries it over awaits, callbacks and timers. Before: `calls.js`,
// `../probes/`.

import { AsyncLocalStorage } from 'node:async_hooks';

/** @typedef {import('./strand.js').Call} Call */

/** @type {AsyncLocalStorage<Call | undefined>} */
const storage = new AsyncLocalStorage();

/** @returns {Call | undefined} */
export function current() {
  return storage.getStore();
}

/**
 * Makes `call` the current call, for the rest of the running callback and for all work that this rest starts.
 * @param {Call | undefined} call
 */
export function become(call) {
  storage.enterWith(call);
}

/**
 * Returns a function that runs the callback with the same current call as now, regardless of the code that calls it.
 * @template {(this: any, ...args: any[]) => any} F
 * @param {F} callback
 * @returns {F}
 */
export function bound(callback) {
  const call = storage.getStore();
  return /** @type {F} */ (
    function (/** @type {any[]} */ ...args) {
      return storage.run(call, () => callback.apply(this, args));
    }
  );
}
