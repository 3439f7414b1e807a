// Counts of aggregated operations. A call is counted with its duration when it ends, and is not recorded. A recorded call inside
// a counted call is a child of the nearest enclosing recorded call. The sums are sent as series, like those of the Java agent.
// Before: `recorder.js`. After: `../sample/samples.js`.

import { KIND } from '../wire/constants.js';
import { OTHER } from '../wire/dictionary.js';
import { Call, Strand, Trace } from './strand.js';

/** Upper bounds of the buckets, ns, inclusive: factor 2 up to 16 us, then factor 4 up to 1 s. One more bucket is unbounded. */
const BOUNDS = Array.from({ length: 17 }, (_, at) => 2 ** (at < 9 ? 6 + at : 14 + 2 * (at - 8)));
/**
 * Limit on pairs of operation and caller that are counted separately; each pair has some twenty series. Beyond the limit the
 * caller is `(other)`.
 */
const OWN_MAX = 384;
/**
 * Limit on all pairs, without the pair of operation `(other)` and caller `(other)`. Beyond the limit, a new pair is counted in
 * the pair of its operation and the caller `(other)`. If there is no such pair, it is counted under operation and caller
 * `(other)`.
 */
const PAIRS_MAX = 512;
/** Limit on cached pairs without a tally of their own; for further ones, the shared tally is looked up at each call. */
const SHARED_MAX = 4_096;
/** Limit on the characters of a label. Even with characters of several bytes, the label is below the protocol's limit of 4,096
 * bytes. */
const LABEL_CHARS_MAX = 1_360;
/** Unchanged values are sent again at this interval, so that a query that looks back five minutes finds them. */
const UNCHANGED_MS = 60_000;
const NS = 1e9;
const NAME = 'tacho_operation_seconds';

/** Placeholder strand of counted calls: no call is ever innermost in it, and nothing is written to it. */
export const COUNTED = new Strand(-1, new Trace(-1, null), null, 0);
COUNTED.isBroken = true;

/** A counted call. Like a recorded call, it is kept in the asynchronous context as the caller of new calls. */
export class CountedCall extends Call {
  /**
   * @param {number} operation
   * @param {number} start
   * @param {Call | undefined} around the enclosing recorded call
   * @param {number} caller operation of the caller; 0 for none
   */
  constructor(operation, start, around, caller) {
    super(COUNTED, 0, operation, start);
    this.around = around;
    this.caller = caller;
  }
}

/** The calls of one operation by one caller. */
class Tally {
  /** @param {number} operation @param {number} caller */
  constructor(operation, caller) {
    this.operation = operation;
    this.caller = caller;
    this.buckets = new Float64Array(BOUNDS.length + 1);
    this.sumNs = 0;
    /** Longest call since the last report. */
    this.longestNs = 0;
    this.failed = 0;
    this.toldCalls = -1;
    this.toldAt = 0;
  }

  /** @param {number} ns @param {boolean} failed */
  add(ns, failed) {
    let at = 0;
    while (at < BOUNDS.length && ns > BOUNDS[at]) {
      at++;
    }
    this.buckets[at]++;
    this.sumNs += ns;
    this.longestNs = ns > this.longestNs ? ns : this.longestNs;
    this.failed += failed ? 1 : 0;
  }
}

export class Tallies {
  /** @param {import('../wire/dictionary.js').Dictionary} dictionary */
  constructor(dictionary) {
    this.dictionary = dictionary;
    this.other = dictionary.operation(KIND.METHOD, OTHER);
    /** By operation, then by caller. @type {Map<number, Map<number, Tally>>} */
    this.known = new Map();
    /** All tallies, also those with `(other)`. @type {Tally[]} */
    this.all = [];
    this.shared = 0;
    /** True if something was counted since the last report. */
    this.hasNews = false;
  }

  /**
   * @param {Call | undefined} caller recorded or counted
   * @param {number} operation
   * @param {number} time
   */
  enter(caller, operation, time) {
    const around = caller instanceof CountedCall ? caller.around : caller;
    return new CountedCall(operation, time, around, caller?.operation ?? 0);
  }

  /**
   * Changes the operation of an open call, and removes its caller. No effect on a call that is not counted.
   * @param {Call} call
   * @param {number} operation
   */
  rename(call, operation) {
    if (call instanceof CountedCall && call.end < 0 && call.operation !== operation) {
      call.operation = operation;
      call.caller = 0;
    }
  }

  /**
   * Counts the call. The tally is looked up only now, because a request gets its final name at its end, and the name that was
   * guessed at its start needs no tally.
   * @param {Call} call a result of `enter`
   * @param {number} time
   * @param {boolean} failed
   */
  exit(call, time, failed) {
    const { operation, caller, start } = /** @type {CountedCall} */ (call);
    this.#tally(operation, caller).add(Math.max(0, time - start), failed);
    call.end = time;
    this.hasNews = true;
  }

  /** @param {number} operation @param {number} caller 0 for none */
  #tally(operation, caller) {
    let callers = this.known.get(operation);
    if (callers === undefined) {
      callers = new Map();
      this.known.set(operation, callers);
    }
    let tally = callers.get(caller);
    if (tally === undefined) {
      tally = this.#admit(operation, caller, callers);
      const isOwn = tally.operation === operation && tally.caller === caller;
      if (isOwn || this.shared++ < SHARED_MAX) {
        callers.set(caller, tally);
      }
    }
    return tally;
  }

  /**
   * Selects the tally for a pair that is not in `known`.
   * @param {number} operation
   * @param {number} caller
   * @param {Map<number, Tally>} callers of the operation
   * @returns {Tally}
   */
  #admit(operation, caller, callers) {
    const { other } = this;
    if (this.all.length < OWN_MAX) {
      return this.#new(operation, caller);
    }
    if (caller !== other && this.all.length < PAIRS_MAX) {
      return this.#tally(operation, other);
    }
    if (caller === other && (this.all.length < PAIRS_MAX || operation === other)) {
      return this.#new(operation, caller);
    }
    return callers.get(other) ?? this.#tally(other, other);
  }

  /** @param {number} operation @param {number} caller */
  #new(operation, caller) {
    const tally = new Tally(operation, caller);
    this.all.push(tally);
    return tally;
  }

  /**
   * Reports the tallies that have new calls since their last report, and the others once a minute.
   * @param {import('../sample/samples.js').Samples} samples
   * @param {number} now ms
   */
  sample(samples, now) {
    let others = 0;
    this.hasNews = false;
    for (const tally of this.all) {
      const calls = tally.buckets.reduce((sum, count) => sum + count, 0);
      others += tally.caller === this.other ? calls : 0;
      if (calls !== tally.toldCalls || now - tally.toldAt > UNCHANGED_MS) {
        this.#tell(tally, calls, samples);
        tally.toldCalls = calls;
        tally.toldAt = now;
        tally.longestNs = 0;
      }
    }
    if (this.all.length > 0) {
      samples.count('tacho_agent_aggregated_other_total', others);
    }
  }

  /** @param {Tally} tally @param {number} calls @param {import('../sample/samples.js').Samples} samples */
  #tell(tally, calls, samples) {
    const operation = this.#name(tally.operation);
    const caller = tally.caller === 0 ? '(none)' : this.#name(tally.caller);
    const labels = (/** @type {string} */ name) => ({ __name__: name, operation, caller });
    samples.count(labels(`${NAME}_count`), calls);
    samples.sample(labels(`${NAME}_sum`), tally.sumNs / NS);
    samples.sample(labels(`${NAME}_max`), tally.longestNs / NS);
    samples.count(labels('tacho_operation_failed_total'), tally.failed);
    let below = 0;
    tally.buckets.forEach((count, at) => {
      below += count;
      samples.count({ ...labels(`${NAME}_bucket`), le: at < BOUNDS.length ? decimal(BOUNDS[at]) : '+Inf' }, below);
    });
  }

  /** @param {number} operation */
  #name(operation) {
    const { name } = this.dictionary.entries[operation];
    return name.length > LABEL_CHARS_MAX ? `${name.slice(0, LABEL_CHARS_MAX)}…` : name;
  }
}

/** @param {number} ns @returns {string} seconds, `0.000000064`: the shortest decimal number */
function decimal(ns) {
  return (ns / NS).toFixed(9).replace(/\.?0+$/, '');
}
