// What can a program say itself? Importing this starts the agent, as `register.js` does. Everything here does nothing but what
// the program asked for where the agent is switched off. After: `agent.js`.

import { start } from './agent.js';

const agent = start();

/**
 * Runs `fn` as a call; what it calls is below it. Answers and throws what `fn` does; a promise ends the call when it settles.
 * @template T
 * @param {string} name of the operation
 * @param {() => T} fn
 * @returns {T}
 */
export function record(name, fn) {
  return agent === null ? fn() : agent.record(String(name), fn);
}

/**
 * A function or method that does what `fn` does, and is a call each time:
 * `Board.prototype.post = wrap(Board.prototype.post, 'Board.post')`.
 * @template {(this: any, ...args: any[]) => any} F
 * @param {F} fn
 * @param {string} [name] of the operation; that of the function where it has one
 * @returns {F}
 */
export function wrap(fn, name = fn.name || '(anonymous)') {
  return agent === null ? fn : agent.wrap(fn, String(name));
}

/**
 * A number of a series, now: `sample({ __name__: 'queue_length', queue: 'mail' }, 17)`.
 * @param {import('./sample/samples.js').Labels} labels the name alone, or all labels
 * @param {number | bigint} value
 */
export function sample(labels, value) {
  agent?.sample(labels, value);
}

/**
 * A text of a series, now: an event, a line of a log.
 * @param {import('./sample/samples.js').Labels} labels the name alone, or all labels
 * @param {string} text
 */
export function entry(labels, text) {
  agent?.entry(labels, text);
}
