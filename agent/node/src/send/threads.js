// Sends the data of the process's other threads. A thread gets no event when it is terminated or when its parent ends. So a
// thread that terminates another thread first asks that thread to send its data, and waits. A thread that ends asks its
// descendants in the same way. An asked thread uses its own connection. All threads share a table of states, so that only threads
// with unsent data are asked, and the wait for a thread with a blocked loop is short.
//
//   FREE --> CLAIMED --> QUIET <--> NEWS --(asked)--> ASKED --(its loop turns)--> TALKS --> FREE
//
// The table has a slot for each thread except the main thread, of four numbers: thread id, state, id of the parent, and time of
// the thread's last check, in seconds.
// Before: `../agent.js`. After: `farewell.js`, in the asked thread.

import { performance } from 'node:perf_hooks';
import worker, { BroadcastChannel, getEnvironmentData, isMainThread, setEnvironmentData, threadId } from 'node:worker_threads';
import { replace } from './replace.js';

/** A claimed slot is not yet filled in: its other numbers belong to an earlier thread. */
const [FREE, CLAIMED, QUIET, NEWS, ASKED, TALKS] = [0, 1, 2, 3, 4, 5];
/** Limit on slots; further threads are not asked. */
const SLOTS = 256;
/** Count of the numbers in a slot, and the position of each number. */
const [WIDTH, ID, STATE, PARENT, SEEN] = [4, 0, 1, 2, 3];
const TABLE = 'tachograph.threads';
const CHANNEL = 'tachograph.threads';
const PARENT_ID = 'tachograph.parent';
/** If a thread has made no check for this long, it has died without an event, or cannot be asked. Others may take its slot. */
const GONE_SECONDS = 30;
/** An asked thread must begin to send within this share of the wait for it. */
const SHARE = 1 / 8;

export class Threads {
  /**
   * @param {number} waitMs longest wait: at the end for all threads together, and at each `terminate`
   * @param {import('../probes/index.js').Surroundings['guard']} guard
   */
  constructor(waitMs, guard) {
    this.waitMs = waitMs;
    this.guard = guard;
    /** @type {Int32Array | undefined} */
    this.table = /** @type {any} */ (
      isMainThread ? new Int32Array(new SharedArrayBuffer(SLOTS * WIDTH * 4)) : getEnvironmentData(TABLE)
    );
    this.parent = Number(getEnvironmentData(PARENT_ID) ?? 0);
    /** Start of this thread's slot; -1 for none. */
    this.slot = -1;
    /** @type {any} a BroadcastChannel, in a thread that takes part */
    this.channel = undefined;
    if (isMainThread) {
      setEnvironmentData(TABLE, this.table);
    }
    // This thread is the parent of all threads that it starts from now on.
    setEnvironmentData(PARENT_ID, threadId);
    this.#watchTerminate();
  }

  /**
   * Takes a slot, in a thread that another thread has started.
   * @param {() => void} last sends the remaining data; nothing is recorded after it
   */
  join(last) {
    const { table } = this;
    for (let at = 0; table !== undefined && this.slot < 0 && at < table.length; at += WIDTH) {
      if (claim(table, at)) {
        Atomics.store(table, at + ID, threadId);
        Atomics.store(table, at + PARENT, this.parent);
        Atomics.store(table, at + SEEN, seconds());
        Atomics.store(table, at + STATE, QUIET);
        this.slot = at;
      }
    }
    if (this.slot < 0) {
      return;
    }
    this.channel = /** @type {any} */ (new BroadcastChannel(CHANNEL));
    this.channel.onmessage = this.guard(() => {
      if (this.#move(ASKED, TALKS)) {
        last();
        this.leave();
      }
    });
    this.channel.unref();
  }

  /**
   * Used in the main thread. Listens for threads with unsent data, because a signal that ends the process also ends these
   * threads.
   * @param {() => void} heard called when a thread has unsent data
   */
  watch(heard) {
    const channel = /** @type {any} */ (new BroadcastChannel(CHANNEL));
    channel.onmessage = this.guard(heard);
    channel.unref();
  }

  /** Called periodically: notes that this thread is alive. */
  look() {
    if (this.table !== undefined && this.#isOwn()) {
      Atomics.store(this.table, this.slot + SEEN, seconds());
    }
  }

  /** True if any other thread has unsent data. */
  haveNews() {
    const { table } = this;
    for (let at = 0; table !== undefined && at < table.length; at += WIDTH) {
      if (at !== this.slot && Atomics.load(table, at + STATE) === NEWS && !isGone(Atomics.load(table, at + SEEN))) {
        return true;
      }
    }
    return false;
  }

  /** @param {boolean} isThere whether there is unsent data */
  news(isThere) {
    if (this.#move(isThere ? QUIET : NEWS, isThere ? NEWS : QUIET) && isThere) {
      this.channel?.postMessage(null);
    }
  }

  /** Called when this thread has sent everything and ends: other threads no longer ask it. */
  leave() {
    const { table, slot, channel } = this;
    if (table !== undefined && this.#isOwn()) {
      Atomics.store(table, slot + STATE, FREE);
      Atomics.notify(table, slot + STATE);
    }
    this.slot = -1;
    if (channel !== undefined) {
      channel.onmessage = null;
      channel.close();
      this.channel = undefined;
    }
  }

  /** True if this thread still owns its slot. */
  #isOwn() {
    return this.slot >= 0 && Atomics.load(/** @type {Int32Array} */ (this.table), this.slot + ID) === threadId;
  }

  /** @param {number} from @param {number} to */
  #move(from, to) {
    const { table, slot } = this;
    if (table === undefined || !this.#isOwn()) {
      return false;
    }
    const isMoved = Atomics.compareExchange(table, slot + STATE, from, to) === from;
    Atomics.notify(table, slot + STATE);
    return isMoved;
  }

  /**
   * Asks threads to send their remaining data.
   * @param {(at: number) => boolean} isMeant selects threads by the positions of their slots
   * @returns {number[]} slots of the asked threads: those that have unsent data
   */
  #ask(isMeant) {
    const { table } = this;
    const asked = [];
    for (let at = 0; table !== undefined && at < table.length; at += WIDTH) {
      const isAsked = Atomics.load(table, at + STATE) === NEWS && isMeant(at) && !isGone(Atomics.load(table, at + SEEN));
      if (isAsked && Atomics.compareExchange(table, at + STATE, NEWS, ASKED) === NEWS) {
        asked.push(at);
      }
    }
    if (asked.length > 0) {
      const channel = new BroadcastChannel(CHANNEL);
      channel.postMessage(null);
      channel.close();
    }
    return asked;
  }

  /**
   * True if a thread ends together with this thread. The end of the main thread ends all threads; the end of another thread ends
   * its descendants.
   * @param {number} at its slot
   */
  #isBelow(at) {
    const table = /** @type {Int32Array} */ (this.table);
    let parent = Atomics.load(table, at + PARENT);
    for (let steps = 0; !isMainThread && parent !== threadId && steps < SLOTS; steps++) {
      const above = this.#slotOf(parent);
      if (above < 0) {
        return false;
      }
      parent = Atomics.load(table, above + PARENT);
    }
    return at !== this.slot && (isMainThread || parent === threadId);
  }

  /** @param {number} id of a thread @returns {number} -1 if it has no slot */
  #slotOf(id) {
    const { table } = this;
    for (let at = 0; table !== undefined && at < table.length; at += WIDTH) {
      if (Atomics.load(table, at + ID) === id && Atomics.load(table, at + STATE) !== FREE) {
        return at;
      }
    }
    return -1;
  }

  /** Called when this thread and its descendants end. Waits until the descendants have sent their data, at most `waitMs`. */
  askAll() {
    const begun = performance.now();
    for (const slot of this.#ask((at) => this.#isBelow(at))) {
      for (const [state, share] of [
        [ASKED, SHARE],
        [TALKS, 1],
      ]) {
        const left = Math.max(0, begun + share * this.waitMs - performance.now());
        Atomics.wait(/** @type {Int32Array} */ (this.table), slot + STATE, state, left);
      }
    }
  }

  /** Delays `terminate` of a thread with unsent data until it has sent the data, at most for `waitMs`. */
  #watchTerminate() {
    const begin = this.guard((/** @type {worker.Worker} */ thread) => this.#terminating(thread));
    replace(worker.Worker.prototype, 'terminate', (terminate) => {
      return function (...args) {
        const finish = () => Reflect.apply(terminate, this, args);
        const done = begin(this);
        return done === undefined ? finish() : done.then(finish, finish);
      };
    });
  }

  /**
   * @param {worker.Worker} thread that is terminated
   * @returns {Promise<void> | undefined} settled when the thread has sent its data or the wait is over; undefined without data
   */
  #terminating(thread) {
    const { table } = this;
    const id = thread.threadId;
    const [slot] = this.#ask((at) => /** @type {Int32Array} */ (table)[at + ID] === id);
    if (slot !== undefined) {
      thread.ref();
      return this.#untilDone(slot);
    }
    const quiet = this.#slotOf(id);
    if (table !== undefined && quiet >= 0) {
      Atomics.compareExchange(table, quiet + STATE, QUIET, FREE);
    }
    return undefined;
  }

  /** @param {number} slot */
  async #untilDone(slot) {
    const table = /** @type {Int32Array} */ (this.table);
    const begun = performance.now();
    for (let pause = 1; ; pause *= 2) {
      const state = Atomics.load(table, slot + STATE);
      const limit = this.waitMs * (state === ASKED ? SHARE : 1);
      const left = begun + limit - performance.now();
      if ((state !== ASKED && state !== TALKS) || left <= 0) {
        Atomics.compareExchange(table, slot + STATE, state, FREE);
        return;
      }
      await new Promise((done) => setTimeout(done, Math.min(pause, left)));
    }
  }
}

/**
 * Takes a free slot, or the slot of a dead thread. Only one thread gets the slot, even if several start at the same moment.
 * @param {Int32Array} table
 * @param {number} at
 */
function claim(table, at) {
  const seen = Atomics.load(table, at + SEEN);
  const state = Atomics.load(table, at + STATE);
  if (
    state !== FREE &&
    (state === CLAIMED || !isGone(seen) || Atomics.compareExchange(table, at + SEEN, seen, seconds()) !== seen)
  ) {
    return false; // the slot is in use, or another thread has just taken it
  }
  return Atomics.compareExchange(table, at + STATE, state, CLAIMED) === state;
}

/** @param {number} seen time of a thread's last check */
const isGone = (seen) => seconds() - seen > GONE_SECONDS;

/** Seconds of a clock shared by all threads. */
const seconds = () => Math.trunc(Date.now() / 1_000);
