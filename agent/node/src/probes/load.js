// Detects when a library is loaded. Before: the probes that change libraries.

import Module from 'node:module';

/**
 * Calls `change` once with the exports of each CommonJS module that `isIt` selects: when the module is loaded (also through
 * `import`), or immediately if it is already loaded.
 * @param {import('./index.js').Surroundings['guard']} guard
 * @param {(name: string) => boolean} isIt
 * @param {(exports: any) => void} change
 */
export function onLoad(guard, isIt, change) {
  const changed = new WeakSet();
  const once = guard((/** @type {any} */ exports) => {
    if ((typeof exports === 'object' || typeof exports === 'function') && exports !== null && !changed.has(exports)) {
      changed.add(exports);
      change(exports);
    }
  });
  const loader = /** @type {any} */ (Module);
  for (const [file, module] of Object.entries(loader._cache ?? {})) {
    if (isIt(file)) {
      once(/** @type {any} */ (module).exports);
    }
  }
  const original = loader._load;
  loader._load = function _load(/** @type {string} */ name, /** @type {any[]} */ ...rest) {
    const exports = original.call(this, name, ...rest);
    if (typeof name === 'string' && isIt(name)) {
      once(exports);
    }
    return exports;
  };
}
