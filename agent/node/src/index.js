// The API for programs. Importing it starts the agent, as `register.js` does. If the agent is disabled, the functions only run
// the code of the program. After: `agent.js`.

import { start } from './agent.js';

const agent = start();

/**
 * Runs `fn` as a recorded call, the parent of calls inside it. Returns or throws the same as `fn`. If the result is a promise,
 * the caller gets another promise that settles in the same way, and the call ends when it settles. A promise of a subclass or
 * with members of its own is returned unchanged, and the call ends at once.
 * @template T
 * @param {string} name of the operation
 * @param {() => T} fn
 * @returns {T}
 */
export function record(name, fn) {
  return agent === null ? fn() : agent.record(String(name), fn);
}

/**
 * Returns a function or method that behaves like `fn` and records its calls:
 * `Board.prototype.post = wrap(Board.prototype.post, 'Board.post')`. A construction with `new` is not recorded.
 * @template {(this: any, ...args: any[]) => any} F
 * @param {F} fn
 * @param {string} [name] of the operation; by default the name of the function
 * @returns {F}
 */
export function wrap(fn, name = fn.name || '(anonymous)') {
  return agent === null ? fn : agent.wrap(fn, String(name));
}

/**
 * Records a sample at the current time: `sample({ __name__: 'queue_length', queue: 'mail' }, 17)`.
 * @param {import('./sample/samples.js').Labels} labels the name, or all labels
 * @param {number | bigint} value
 */
export function sample(labels, value) {
  agent?.sample(labels, value);
}

/**
 * Records an entry at the current time, such as an event or a line of a log.
 * @param {import('./sample/samples.js').Labels} labels the name, or all labels
 * @param {string} text
 */
export function entry(labels, text) {
  agent?.entry(labels, text);
}
