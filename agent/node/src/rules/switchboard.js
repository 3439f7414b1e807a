// Applies the rules of the server. When a list arrives, the states of all known operations are decided again, in slices, so that
// even a thousand rules for ten thousand operations do not delay a request. The state of a new operation is decided when it is
// named. Wrappers and probes read the state of their operation. When all states are decided, the server gets a report: the number
// of operations in each state, and for each rule the number of operations that the rule decides, or its fault. A changed
// report is sent again.
//
// Before: `../send/protocol.js`. After: `../wire/dictionary.js` (states), `../send/protocol.js` (answers).

import { performance } from 'node:perf_hooks';
import { STATE } from '../wire/constants.js';
import { OTHER } from '../wire/dictionary.js';
import { probedFrame } from '../wire/probes.js';
import { Rules } from './rules.js';

/**
 * Shortest and longest pause before a changed report is sent again. The first pause is short, because few operations are
 * known when the connection is made. Each report doubles the pause, but after 5 s without a report the next pause is short again.
 */
const TELL_FIRST_MS = 200;
const TELL_MS = 5_000;
/** Longest time that deciding may block the loop, and number of operations between two clock reads. */
const SLICE_MS = 3;
const SLICE_OPERATIONS = 16;
/** No report was requested. */
const NOBODY = null;

export class Switchboard {
  /**
   * @param {object} parts
   * @param {import('../wire/dictionary.js').Dictionary} parts.dictionary
   * @param {import('../log.js').Log} parts.log
   * @param {(frame: Buffer) => void} parts.answer sends a PROBED to the server
   * @param {(next: () => void) => void} [parts.later] calls `next` in a later turn of the loop
   */
  constructor({ dictionary, log, answer, later = (next) => void setImmediate(next).unref() }) {
    this.dictionary = dictionary;
    this.log = log;
    this.answer = answer;
    this.later = later;
    this.rules = new Rules([]);
    /** Revision of the PROBES to report on. @type {number | bigint | null} */
    this.revision = NOBODY;
    /** For each operation: the position of the rule that decided it, plus one. */
    this.deciders = new Uint16Array(dictionary.states.length);
    /** Id of the last operation that `#decideAll` has decided by the current rules; 0 if there is none. */
    this.decided = 0;
    this.isDeciding = false;
    /** The last report on the current list of rules, on this connection. @type {Buffer | null} */
    this.told = null;
    this.toldAt = 0;
    this.pauseMs = TELL_FIRST_MS;
    /** True if something was decided since the last report. */
    this.hasNews = false;
    dictionary.stateOf = (kind, name, id) => this.#decide(kind, name, id);
  }

  /**
   * Takes a complete list of rules.
   * @param {{ revision: number | bigint, rules: import('../wire/probes.js').ProbeRule[] }} probes
   */
  take({ revision, rules }) {
    this.rules = new Rules(rules);
    this.revision = revision;
    this.told = null;
    this.decided = 0;
    if (rules.length > 0) {
      this.log.detail(`rules of the server: ${rules.length}`);
    }
    for (const { fault } of this.rules.list) {
      if (fault !== '') {
        this.log.sayOnce(`rule ${fault}`, `a rule of the server is ignored: ${fault}`);
      }
    }
    if (!this.isDeciding) {
      this.#decideAll();
    }
  }

  /** Called when the connection is lost. The rules stay in force. Reports continue after the PROBES of the next connection. */
  closed() {
    this.revision = NOBODY;
    this.told = null;
  }

  /**
   * Sends the report if it is the first on this list of rules, or if it has changed and the pause is over.
   * @param {number} now ms
   */
  tell(now) {
    const age = now - this.toldAt;
    const isEarly = this.told !== null && (!this.hasNews || age < this.pauseMs);
    if (this.revision === NOBODY || this.isDeciding || isEarly) {
      return;
    }
    this.hasNews = false;
    const frame = probedFrame(this.#report(this.revision));
    if (this.told === null || !this.told.equals(frame)) {
      this.pauseMs = this.told === null || age >= TELL_MS ? TELL_FIRST_MS : Math.min(TELL_MS, 2 * this.pauseMs);
      this.told = frame;
      this.toldAt = now;
      this.answer(frame);
    }
  }

  #decideAll() {
    const { dictionary } = this;
    const end = performance.now() + SLICE_MS;
    this.isDeciding = true;
    while (this.decided < dictionary.operationCount) {
      const id = ++this.decided;
      const { kind, name } = dictionary.entries[id];
      dictionary.states[id] = this.#decide(kind, name, id);
      if (id % SLICE_OPERATIONS === 0 && performance.now() > end) {
        this.later(() => this.#decideAll());
        return;
      }
    }
    this.isDeciding = false;
    this.tell(performance.now());
  }

  /** @param {number} kind @param {string} name @param {number} id */
  #decide(kind, name, id) {
    const rule = this.rules.decide(kind, name);
    this.deciders[id] = rule + 1;
    this.hasNews = true;
    return this.rules.state(rule);
  }

  /** @param {number | bigint} revision */
  #report(revision) {
    const { dictionary, deciders } = this;
    const matched = new Uint32Array(this.rules.list.length + 1);
    /** @type {Record<number, number>} */
    const counts = { [STATE.OFF]: 0, [STATE.ON]: 0, [STATE.AGGREGATE]: 0 };
    for (let id = 1; id <= dictionary.operationCount; id++) {
      if (dictionary.entries[id].name !== OTHER) {
        counts[dictionary.states[id]]++;
        matched[deciders[id]]++;
      }
    }
    const rules = this.rules.list.map(({ fault }, at) => ({ matched: matched[at + 1], fault }));
    return { revision, on: counts[STATE.ON], aggregated: counts[STATE.AGGREGATE], off: counts[STATE.OFF], rules };
  }
}
