// Which state has an operation? Of the rules of the server that fit it the last one decides; where none does, it is on.
// Before: `switchboard.js`.

import { KIND, STATE } from '../wire/constants.js';
import { Pattern } from './pattern.js';

/** What a pattern names in place of operations whose names come from data. @type {Record<number, string>} */
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
    /** @type {Pattern | null} null for one that cannot be followed */
    this.pattern = null;
    /** Why it cannot be followed, or empty. */
    this.fault = '';
    if (state >= STATES_MAX) {
      this.fault = `state ${state} is not known here`;
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
  /** @param {import('../wire/probes.js').ProbeRule[]} given in their order */
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

  /** @param {number} rule as `decide` answers */
  state(rule) {
    return rule < 0 ? STATE.ON : this.list[rule].state;
  }
}

/**
 * A text that a name must hold to fit, the rule's position, and its pattern, the last rule first: to look for a text is less work
 * than to hold a pattern against a name. Of a pattern's texts the one that fewest other rules have, of those the longest.
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
