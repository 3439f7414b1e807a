// Replaces a function of Node, without a visible difference for the program. Before: `endings.js`, `threads.js`.

/**
 * @param {any} owner
 * @param {string} name of a function of `owner`, own or inherited
 * @param {(original: any) => (this: any, ...args: any[]) => any} make
 */
export function replace(owner, name, make) {
  const descriptor = Object.getOwnPropertyDescriptor(owner, name) ?? { writable: true, configurable: true, enumerable: false };
  const original = owner[name];
  const value = make(original);
  for (const key of ['name', 'length']) {
    Object.defineProperty(value, key, { value: original[key], configurable: true });
  }
  Object.defineProperty(owner, name, { ...descriptor, value });
}
