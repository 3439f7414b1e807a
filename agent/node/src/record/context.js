// Which call is this code part of? The runtime carries it over awaits, callbacks and timers. Before: `calls.js`, `../probes/`.

import { AsyncLocalStorage } from 'node:async_hooks';

/** @typedef {import('./strand.js').Call} Call */

/** @type {AsyncLocalStorage<Call | undefined>} */
const storage = new AsyncLocalStorage();

/** @returns {Call | undefined} */
export function current() {
  return storage.getStore();
}

/**
 * From here on, in this turn and in what it causes, code is part of `call`.
 * @param {Call | undefined} call
 */
export function become(call) {
  storage.enterWith(call);
}

/**
 * A callback that runs as part of the call that is current now, whoever calls it.
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
