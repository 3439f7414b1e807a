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
  }

  /**
   * Position of the rule that decides an operation, -1 for none.
   * @param {number} kind
   * @param {string} name
   */
  decide(kind, name) {
    if (this.list.length === 0) {
      return -1;
    }
    const parts = (KIND_NAMES[kind] ?? name).split('.');
    for (let at = this.list.length - 1; at >= 0; at--) {
      if (this.list[at].pattern?.fits(parts)) {
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
