// Decides the state of an operation. The last of the server's rules that match the operation decides. Without a matching rule the
// operation is on. Before: `switchboard.js`.

import * as messages from '../messages.js';
import { KIND, STATE } from '../wire/constants.js';
import { Pattern } from './pattern.js';

/**
 * The text that patterns match for these kinds, in place of the name of an operation, because the names come from data such as
 * paths and statements.
 * @type {Record<number, string>}
 */
const KIND_NAMES = {
  [KIND.HTTP_SERVER]: 'http-server',
  [KIND.HTTP_CLIENT]: 'http-client',
  [KIND.DATABASE]: 'database',
  [KIND.CONNECTION_WAIT]: 'connection-wait',
};

const STATES_MAX = Object.keys(STATE).length;

export class Rule {
  /** @param {import('../wire/probes.js').ProbeRule} given */
  constructor({ state, pattern }) {
    this.state = state;
    /** @type {Pattern | null} null if the rule is invalid */
    this.pattern = null;
    /** Why the rule is invalid; empty if it is valid. */
    this.fault = '';
    if (state >= STATES_MAX) {
      this.fault = messages.ruleStateUnknown(state);
      return;
    }
    try {
      this.pattern = new Pattern(pattern);
    } catch (error) {
      this.fault = error instanceof Error ? error.message : String(error);
    }
  }
}

export class Rules {
  /** @param {import('../wire/probes.js').ProbeRule[]} given in order */
  constructor(given) {
    this.list = given.map((rule) => new Rule(rule));
    this.search = search(this.list);
  }

  /**
   * Position of the rule that decides an operation, -1 for none.
   * @param {number} kind
   * @param {string} name
   */
  decide(kind, name) {
    const whole = KIND_NAMES[kind] ?? name;
    /** @type {string[] | null} */
    let parts = null;
    for (const { text, at, pattern } of this.search) {
      if (whole.includes(text) && pattern.fits((parts ??= whole.split('.')))) {
        return at;
      }
    }
    return -1;
  }

  /** @param {number} rule a result of `decide` */
  state(rule) {
    return rule < 0 ? STATE.ON : this.list[rule].state;
  }
}

/**
 * Prepares the rules for the search, the last rule first. Returns for each valid rule a text that every matching name contains,
 * the position of the rule, and its pattern. Finding the text in a name costs less than matching the pattern, so the search looks
 * for the text first. Of several possible texts, the text that occurs in the fewest other rules is used; of equally rare texts
 * the longest.
 * @param {Rule[]} rules
 */
function search(rules) {
  const found = rules.flatMap(({ pattern }, at) => (pattern === null ? [] : [{ at, pattern }]));
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const text of found.flatMap(({ pattern }) => [...pattern.texts])) {
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const order = (/** @type {string} */ text, /** @type {string} */ than) =>
    (counts.get(text) ?? 0) - (counts.get(than) ?? 0) || than.length - text.length;
  return found.reverse().map(({ at, pattern }) => ({ text: [...pattern.texts].sort(order)[0], at, pattern }));
}
