// Turns overlapping calls into properly nested sequences. A strand is one segment under construction, with calls of one trace.
// Each call except the outermost began while its parent was the innermost open call of the strand, and normally ends before its
// parent. `recorder.js` adds a call to the strand of its parent only if the parent is the innermost open call of that strand.
// Otherwise the call begins a new strand.
//
// A parent that does not await a call may end while this call continues. Then the open part is closed, and the calls inside the
// parent move to a strand of their own, a *branch*. On the wire a branch belongs to the same segment, so the calls keep their
// ids. Parts of a branch carry only the moved calls, name the ended call as parent, and enter no further calls.
//
// Before: `recorder.js`. After: `../wire/segment.js` (bytes), `../send/outbox.js`.

/** @typedef {import('../wire/segment.js').SegmentPart} SegmentPart */

const EVENTS_MAX = 4_096;
/**
 * Maximum length of a part in a deep recursion. Each part after the first begins with a list of the open calls, so shorter parts
 * would consist mostly of these lists.
 */
const EVENTS_MAX_DEEP = 60_000;
const ATTRIBUTE_BYTES_MAX = 262_144;
/** The numbers of the calls of a segment have 24 bits. */
const CALLS_MAX = 1 << 24;

/** Origin of a trace: a segment of this session, or another process. */
export class Trace {
  /**
   * @param {number} segment used if `id` is null
   * @param {Uint8Array | null} id 16 bytes, of a trace that began in another process
   */
  constructor(segment, id) {
    this.segment = segment;
    this.id = id;
    /** 32 hex digits, computed on demand. @type {string | null} */
    this.hex = null;
  }
}

/** One call. The asynchronous context refers to it as the parent of new calls. */
export class Call {
  /**
   * @param {Strand} strand
   * @param {number} number in its segment
   * @param {number} operation
   * @param {number} start
   */
  constructor(strand, number, operation, start) {
    this.strand = strand;
    this.number = number;
    this.operation = operation;
    this.start = start;
    /** Time of its end, -1 while it is open. */
    this.end = -1;
  }
}

export class Strand {
  /**
   * @param {number} number
   * @param {Trace} trace
   * @param {import('./session.js').Half | null} parent
   * @param {number} skew of the clock
   */
  constructor(number, trace, parent, skew) {
    this.number = number;
    this.trace = trace;
    this.parent = parent;
    this.skew = skew;
    /** Open calls, outermost first. @type {Call[]} */
    this.open = [];
    this.calls = 0;
    this.parts = 0;
    this.firstCall = 0;
    /** Times of the first and last event of the part. */
    this.start = 0;
    this.last = 0;
    /**
     * The strand that counts the calls and parts of this segment: this strand, or for a branch the strand that began the segment.
     * @type {Strand}
     */
    this.origin = this;
    /** The open part; null between two parts. @type {SegmentPart | null} */
    this.part = null;
    /** Position in the recorder's list of strands with an open part. */
    this.place = -1;
    /**
     * True while `recorder.js` changes the strand. An internal error (stack overflow, out of memory) interrupts the change, so it
     * stays true. Then the open part and the rest of the strand are dropped.
     */
    this.isBroken = false;
  }

  /**
   * True if a call with parent `parent` may be added here.
   * @param {Call} parent
   */
  takes(parent) {
    return this.open[this.open.length - 1] === parent && this.origin === this && !this.isBroken && this.calls < CALLS_MAX;
  }

  /**
   * Prepares for the first event of a part.
   * @param {SegmentPart} part
   * @param {number} time
   */
  #begin(part, time) {
    this.start = time;
    this.last = time;
    this.firstCall = this.origin.calls;
    if (this.origin.parts > 0) {
      for (const call of this.open) {
        part.carry(call.operation, call.number, Math.max(0, time - call.start));
      }
    }
  }

  /**
   * @param {SegmentPart} part
   * @param {number} time
   * @returns {number} ns since the event before
   */
  #step(part, time) {
    if (part.eventCount === 0) {
      this.#begin(part, time);
      return 0;
    }
    const step = time - this.last;
    if (step <= 0) {
      return 0;
    }
    this.last = time;
    return step;
  }

  /**
   * @param {SegmentPart} part
   * @param {number} operation
   * @param {number} time
   */
  enter(part, operation, time) {
    part.enter(this.#step(part, time), operation);
    const call = new Call(this, this.calls++, operation, time);
    this.open.push(call);
    return call;
  }

  /**
   * Ends the innermost call.
   * @param {SegmentPart} part
   * @param {number} time
   * @param {boolean} failed
   */
  exit(part, time, failed) {
    const step = this.#step(part, time);
    const call = /** @type {Call} */ (this.open.pop());
    if (failed) {
      part.failed(step);
    } else {
      part.exit(step);
    }
    call.end = time;
  }

  isLong() {
    const part = this.part;
    if (part === null) {
      return false;
    }
    const events = part.eventCount;
    return (
      (events >= EVENTS_MAX && events >= Math.min(EVENTS_MAX_DEEP, 2 * this.open.length)) ||
      (part.attributes !== null && part.attributes.size >= ATTRIBUTE_BYTES_MAX)
    );
  }

  /**
   * Moves the calls inside `call` to a strand of their own. `recorder.js` has closed the open part before.
   * @param {Call} call an open one, not the innermost
   * @param {import('./session.js').Half} span its id
   */
  branch(call, span) {
    const branch = new Strand(this.number, this.trace, span, this.skew);
    branch.origin = this.origin;
    branch.open = this.open.splice(this.open.indexOf(call) + 1);
    for (const moved of branch.open) {
      moved.strand = branch;
    }
  }

  /**
   * Fields before the events of the open part.
   * @param {number} thread
   * @returns {import('../wire/segment.js').Head}
   */
  head(thread) {
    const { id, segment } = this.trace;
    const part = this.origin.parts++;
    const { number, parent, firstCall } = this;
    return { number, parent, trace: id, traceOf: segment, part, firstCall, thread };
  }
}
