// Assigns each call to a strand, and decides when the events of the strand are sent. A strand is a sequence of properly nested
// calls of one trace (`strand.js`). Its events are sent in parts of one segment. A part is closed when the outermost call ends,
// when a call ends before its callees, when the part is long or a second old, or when all open parts together take too much
// memory. The next part begins with a list of the open calls.
//
// The program's stack may overflow in every function that is called here, also in the first one of a `catch` block. So each
// change of a strand begins with `isBroken = true` and ends with `isBroken = false`: an interrupted change leaves the strand
// broken. The state of the recorder itself changes in statements without function calls, after all function calls that may fail.
//
// Before: `../probes/`, `calls.js`. After: `strand.js`, then `../send/outbox.js`.

import { Buffer } from 'node:buffer';
import { now } from '../send/clock.js';
import { KIND, STATE, TAG } from '../wire/constants.js';
import { SegmentPart } from '../wire/segment.js';
import { exceptionText, isOfDatabase } from './exceptions.js';
import { Call, Strand, Trace } from './strand.js';
import { COUNTED, CountedCall, Tallies } from './tallies.js';
import { format } from './traceparent.js';

const AGE_MAX_NS = 1e9;
/** A call that begins this long after the end of its caller (a repeated timer) begins a new trace. */
const ORPHAN_NS = 10e9;
/** Number of parts kept for reuse, and their maximum size. */
const SPARE_PARTS_MAX = 256;
const SPARE_BYTES_MAX = 4_096;

/** Placeholder for a dropped call. Its callees are dropped, too, so that each recorded call has its caller. */
export const DROPPED = new Call(new Strand(-1, new Trace(-1, null), null, 0), 0, 0, 0);
DROPPED.end = Infinity;

export class Recorder {
  /**
   * @param {object} parts
   * @param {import('./session.js').Session} parts.session
   * @param {import('../wire/dictionary.js').Dictionary} parts.dictionary
   * @param {import('../send/outbox.js').Outbox} parts.outbox
   * @param {import('../send/clock.js').Clock} parts.clock
   * @param {import('../send/totals.js').Totals} parts.totals
   * @param {string} parts.thread name of the thread
   * @param {number} parts.pendingMax limit on the bytes of all open parts
   * @param {() => void} parts.wake called when there is something to send soon
   * @param {import('../log.js').Log} parts.log
   */
  constructor({ session, dictionary, outbox, clock, totals, thread, pendingMax, wake, log }) {
    this.log = log;
    this.session = session;
    this.dictionary = dictionary;
    /** State of each operation: recorded, counted or ignored. Wrappers and probes begin no call of an ignored operation. */
    this.states = dictionary.states;
    this.tallies = new Tallies(dictionary);
    this.outbox = outbox;
    this.clock = clock;
    this.totals = totals;
    this.thread = dictionary.text(thread);
    this.pendingMax = pendingMax;
    this.wake = wake;
    /**
     * `release` is called when a call begins, `hold` before a response is sent.
     * @type {Pick<import('../send/signals.js').Signals, 'isArmed' | 'release' | 'hold'>}
     */
    this.signals = { isArmed: false, release: () => {}, hold: () => {} };
    this.orphanNs = ORPHAN_NS;
    this.databaseMessages = false;
    this.segments = 0;
    this.pending = 0;
    /** Strands with an open part. @type {Strand[]} */
    this.active = [];
    /** @type {SegmentPart[]} */
    this.spare = [];
    /** The latest internal error; null when it has been logged. @type {unknown} */
    this.lastFault = null;
    /** Exceptions that were recorded. @type {WeakSet<object>} */
    this.told = new WeakSet();
  }

  /**
   * @param {Call | undefined} parent from the context
   * @param {number} operation
   * @returns {Call}
   */
  enter(parent, operation) {
    try {
      return this.#enter(parent, operation);
    } catch (fault) {
      this.totals.callsDropped++;
      this.lastFault = fault;
      return DROPPED;
    }
  }

  /** @param {Call | undefined} parent @param {number} operation @returns {Call} */
  #enter(parent, operation) {
    if (this.signals.isArmed) {
      this.signals.release();
    }
    const time = now();
    if (this.states[operation] === STATE.AGGREGATE) {
      return this.tallies.enter(parent, operation, time);
    }
    if (parent === undefined) {
      return this.#beginStrand(null, null, operation, time);
    }
    if (parent.end < 0 && parent.strand.takes(parent)) {
      return this.#add(parent.strand, operation, time);
    }
    if (parent === DROPPED) {
      this.totals.callsDropped++;
      return DROPPED;
    }
    if (parent instanceof CountedCall) {
      return this.#enter(parent.around, operation);
    }
    if (parent.end >= 0 && time - parent.end > this.orphanNs) {
      return this.#beginStrand(null, null, operation, time);
    }
    const { number, trace } = parent.strand;
    return this.#beginStrand(trace, this.session.span(number, parent.number), operation, time);
  }

  /**
   * Begins a call with a parent in another process, or without a parent.
   * @param {import('./traceparent.js').Remote | null} remote
   * @param {number} operation
   */
  enterFrom(remote, operation) {
    if (remote === null) {
      return this.enter(undefined, operation);
    }
    try {
      if (this.signals.isArmed) {
        this.signals.release();
      }
      if (this.states[operation] === STATE.AGGREGATE) {
        return this.tallies.enter(undefined, operation, now());
      }
      return this.#beginStrand(new Trace(-1, remote.trace), remote.span, operation, now());
    } catch (fault) {
      this.totals.callsDropped++;
      this.lastFault = fault;
      return DROPPED;
    }
  }

  /**
   * @param {Trace | null} trace null for a new one
   * @param {import('./session.js').Half | null} parent
   * @param {number} operation
   * @param {number} time
   */
  #beginStrand(trace, parent, operation, time) {
    if (this.pending >= this.pendingMax || this.outbox.isFull()) {
      this.totals.callsDropped++;
      return DROPPED;
    }
    const number = this.segments++;
    const strand = new Strand(number, trace ?? new Trace(number, null), parent, this.clock.skew);
    return this.#add(strand, operation, time);
  }

  /** @param {Strand} strand @param {number} operation @param {number} time */
  #add(strand, operation, time) {
    strand.isBroken = true;
    const call = strand.enter(strand.part ?? this.#newPart(strand, time), operation, time);
    this.#settle(strand);
    strand.isBroken = false;
    return call;
  }

  /** @param {Call} call */
  exit(call) {
    this.#end(call, false);
  }

  /**
   * @param {Call} call
   * @param {unknown} [error] if there is one
   */
  fail(call, error) {
    try {
      if (this.dictionary.entries[call.operation]?.kind === KIND.DATABASE) {
        isOfDatabase(error);
      }
      if (call.end < 0 && error !== undefined && !call.strand.isBroken && this.#isNews(error, call)) {
        this.attribute(call, 'exception', exceptionText(error, this.databaseMessages));
        if (typeof error === 'object' && error !== null) {
          this.told.add(error);
        }
      }
    } catch (fault) {
      this.totals.attributesDropped++;
      this.lastFault = fault;
    }
    this.#end(call, true);
  }

  /** @param {Call} call @param {boolean} failed */
  #end(call, failed) {
    if (call.end >= 0) {
      return;
    }
    const { strand } = call;
    const wasBroken = strand.isBroken;
    strand.isBroken = true;
    try {
      const time = now();
      if (strand === COUNTED) {
        this.tallies.exit(call, time, failed);
      } else if (wasBroken) {
        this.#drop(call, time);
      } else {
        this.#exit(call, time, failed);
        strand.isBroken = false;
      }
    } catch (fault) {
      this.lastFault = fault;
      if (call.end < 0) {
        call.end = Infinity;
        this.totals.callsDropped++;
      }
    }
  }

  /** Drops a call of a broken strand, and the open part. @param {Call} call @param {number} time */
  #drop(call, time) {
    const { strand } = call;
    call.end = time;
    this.totals.callsDropped++;
    strand.open.splice(strand.open.indexOf(call) >>> 0, 1);
    this.#giveUp(strand);
  }

  /** @param {Call} call @param {number} time @param {boolean} failed */
  #exit(call, time, failed) {
    const { strand } = call;
    const { open } = strand;
    if (open[open.length - 1] !== call) {
      this.#close(strand);
      this.#dropAttributes(strand);
      strand.branch(call, this.session.span(strand.number, call.number));
    }
    strand.exit(strand.part ?? this.#newPart(strand, time), time, failed);
    if (open.length === 0) {
      this.#close(strand);
    } else {
      this.#settle(strand);
    }
  }

  /**
   * @param {Call} call
   * @param {string} key
   * @param {string | number | bigint | null | undefined} value a number is an integer; null and undefined are ignored
   */
  attribute(call, key, value) {
    if (call.end >= 0 || value === undefined || value === null || call.strand.isBroken) {
      return;
    }
    const { strand } = call;
    strand.isBroken = true;
    try {
      const part = strand.part ?? this.#newPart(strand, now());
      if (part.hasRoomForAttribute()) {
        const id = this.dictionary.text(key);
        if (typeof value === 'string') {
          part.attributeText(call.number, id, value, this.dictionary.value(value));
        } else {
          part.attributeInteger(call.number, id, value);
        }
        this.#settle(strand);
      } else {
        this.totals.attributesDropped++;
      }
      strand.isBroken = false;
    } catch (fault) {
      this.totals.attributesDropped++;
      this.lastFault = fault;
    }
  }

  /**
   * Changes the operation of an outermost call. Parts that were already sent have the earlier name; the server uses the name in
   * the last part.
   * @param {Call} call a result of `enterFrom`
   * @param {number} operation
   */
  rename(call, operation) {
    const { strand } = call;
    if (call.operation === operation || call.end >= 0 || strand.isBroken || strand.open[0] !== call) {
      this.tallies.rename(call, operation);
      return;
    }
    strand.isBroken = true;
    try {
      strand.part?.renameOutermost(operation);
      call.operation = operation;
      strand.isBroken = false;
    } catch (fault) {
      this.lastFault = fault;
    }
  }

  /**
   * @param {Call | undefined} call
   * @returns {string | null} null if the call is neither recorded nor inside a recorded call
   */
  traceparent(call) {
    if (call === undefined || call === DROPPED) {
      return null;
    }
    if (call instanceof CountedCall) {
      return this.traceparent(call.around);
    }
    const { trace, number } = call.strand;
    trace.hex ??= Buffer.from(trace.id ?? this.session.trace(trace.segment)).toString('hex');
    return format(trace.hex, this.session.span(number, call.number));
  }

  /**
   * Closes parts that have been open for a long time, and drops those of broken strands.
   * @param {boolean} all regardless of their age
   */
  sweep(all) {
    const time = now();
    if (this.lastFault !== null) {
      this.log.sayOnce('recorder', `some calls could not be recorded: ${this.lastFault}`);
      this.lastFault = null;
    }
    for (let at = this.active.length - 1; at >= 0; at--) {
      const strand = this.active[at];
      if (strand.isBroken) {
        this.#giveUp(strand);
      } else if (all || time - strand.start > AGE_MAX_NS) {
        strand.isBroken = true;
        this.#close(strand);
        this.#dropAttributes(strand);
        strand.isBroken = false;
      }
    }
  }

  /** @param {Strand} strand @param {number} time */
  #newPart(strand, time) {
    if (this.active.length === 0) {
      this.wake();
    }
    const part = this.spare.pop() ?? new SegmentPart();
    const capacity = part.capacity();
    const place = this.active.length;
    this.active.push(strand);
    strand.place = place;
    strand.part = part;
    strand.start = time;
    part.charged = capacity;
    this.pending += capacity;
    return part;
  }

  /**
   * Called after an event or an attribute. Closes the part if it is too long, or if all open parts together take too much memory.
   * @param {Strand} strand
   */
  #settle(strand) {
    const part = /** @type {SegmentPart} */ (strand.part);
    if (part.hasGrown()) {
      const capacity = part.capacity();
      this.pending += capacity - part.charged;
      part.charged = capacity;
      if (this.pending >= this.pendingMax) {
        this.#close(strand);
        return;
      }
    }
    if (strand.isLong()) {
      this.#close(strand);
    }
  }

  /** @param {Strand} strand */
  #close(strand) {
    const { part } = strand;
    if (part === null || part.eventCount === 0) {
      return;
    }
    const head = strand.head(this.thread);
    const { exits } = part;
    if (this.outbox.isFull()) {
      this.totals.callsDropped += exits;
    } else {
      const start = strand.start + strand.skew;
      const out = this.outbox.begin(start);
      part.write(head, start - this.outbox.base, out);
      this.outbox.end(TAG.SEGMENT, exits, 0, 0);
      this.totals.callsSent += exits;
    }
    part.exits = 0; // They are counted, and must not be counted again if `#release` fails.
    this.#release(strand, part);
    this.#reuse(part);
  }

  /** @param {Strand} strand a broken one */
  #giveUp(strand) {
    const { part } = strand;
    if (part !== null) {
      this.totals.callsDropped += part.exits;
      part.exits = 0;
      this.#release(strand, part);
    }
  }

  /**
   * Drops the open part if it has attributes, but no event.
   * @param {Strand} strand
   */
  #dropAttributes(strand) {
    const { part } = strand;
    if (part !== null && part.eventCount === 0) {
      this.totals.attributesDropped += part.attributeCount;
      this.#release(strand, part);
      this.#reuse(part);
    }
  }

  /** @param {Strand} strand @param {SegmentPart} part */
  #release(strand, part) {
    const last = /** @type {Strand} */ (this.active.pop());
    strand.part = null;
    this.pending -= part.charged;
    if (last !== strand) {
      this.active[strand.place] = last;
      last.place = strand.place;
    }
  }

  /** @param {SegmentPart} part */
  #reuse(part) {
    if (this.spare.length < SPARE_PARTS_MAX && part.capacity() <= SPARE_BYTES_MAX) {
      part.clear();
      this.spare.push(part);
    }
  }

  /**
   * True for the first call that an exception leaves, and for each outermost call of a strand. Only these record the exception.
   * A thrown value that is no object is recorded by each call that it leaves.
   * @param {unknown} error
   * @param {Call} call
   */
  #isNews(error, call) {
    const isTold = typeof error === 'object' && error !== null && this.told.has(error);
    return !isTold || call.strand.open[0] === call;
  }
}
