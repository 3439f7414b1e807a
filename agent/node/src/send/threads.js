// What of the other threads of the process? One that is terminated, or whose process ends, gets no event: it is asked before, and
// says goodbye on its own connection while whoever asks waits for it. All threads share a table of states, so that nobody is
// asked who has nothing to send, and one whose loop does not turn is not waited for long.
//
//   QUIET <--> NEWS --(asked)--> ASKED --(its loop turns)--> TALKS --> FREE
//
// Before: `../agent.js`. After: `farewell.js`, in the other thread.

import { performance } from 'node:perf_hooks';
import worker, { BroadcastChannel, getEnvironmentData, isMainThread, setEnvironmentData, threadId } from 'node:worker_threads';

const [FREE, QUIET, NEWS, ASKED, TALKS] = [0, 1, 2, 3, 4];
/** Threads beyond these are not asked. */
const SLOTS = 256;
const TABLE = 'tachograph.threads';
const CHANNEL = 'tachograph.threads';
/** Of what a process may wait at its end, the share for a thread to begin to talk. */
const SHARE = 1 / 8;

export class Threads {
  /** @param {number} waitMs at most, for all threads together */
  constructor(waitMs) {
    this.waitMs = waitMs;
    /** A thread id and a state for each slot. @type {Int32Array} */
    this.table = isMainThread ? new Int32Array(new SharedArrayBuffer(SLOTS * 8)) : /** @type {any} */ (getEnvironmentData(TABLE));
    this.slot = -1;
    /** @type {{ postMessage(message: unknown): void } | undefined} that of a thread that takes part */
    this.channel = undefined;
    if (isMainThread) {
      setEnvironmentData(TABLE, this.table);
    }
    this.#watchTerminate();
  }

  /**
   * In a thread that was started by another one: takes a slot.
   * @param {() => void} last sends what there is; nothing is recorded after it
   */
  join(last) {
    const { table } = this;
    for (let at = 0; table !== undefined && this.slot < 0 && at < table.length; at += 2) {
      if (Atomics.compareExchange(table, at + 1, FREE, QUIET) === FREE) {
        Atomics.store(table, at, threadId);
        this.slot = at + 1;
      }
    }
    if (this.slot < 0) {
      return;
    }
    const channel = /** @type {any} */ (new BroadcastChannel(CHANNEL));
    channel.onmessage = () => {
      if (this.#move(ASKED, TALKS)) {
        last();
        this.leave();
      }
    };
    channel.unref();
    this.channel = channel;
  }

  /**
   * In the main thread: a signal that ends the process also ends the threads.
   * @param {() => void} heard called when a thread has something to send
   */
  watch(heard) {
    const channel = /** @type {any} */ (new BroadcastChannel(CHANNEL));
    channel.onmessage = heard;
    channel.unref();
  }

  /** Whether any other thread has something to send. */
  haveNews() {
    const { table } = this;
    for (let at = 1; table !== undefined && at < table.length; at += 2) {
      if (at !== this.slot && Atomics.load(table, at) === NEWS) {
        return true;
      }
    }
    return false;
  }

  /** @param {boolean} isThere whether something is left to be sent */
  news(isThere) {
    if (this.slot >= 0 && this.#move(isThere ? QUIET : NEWS, isThere ? NEWS : QUIET) && isThere) {
      this.channel?.postMessage(null);
    }
  }

  /** This thread has said goodbye, and ends. */
  leave() {
    if (this.slot >= 0) {
      Atomics.store(this.table, this.slot, FREE);
      Atomics.notify(this.table, this.slot);
      this.slot = -1;
    }
  }

  /** @param {number} from @param {number} to */
  #move(from, to) {
    const isMoved = Atomics.compareExchange(this.table, this.slot, from, to) === from;
    Atomics.notify(this.table, this.slot);
    return isMoved;
  }

  /**
   * Asks threads to say goodbye.
   * @param {number} [id] of one; all others where there is none
   * @returns {number[]} slots of those that have something to say
   */
  ask(id) {
    const { table } = this;
    const asked = [];
    for (let at = 0; table !== undefined && at < table.length; at += 2) {
      const isMeant = id === undefined ? at + 1 !== this.slot : table[at] === id;
      if (isMeant && Atomics.compareExchange(table, at + 1, NEWS, ASKED) === NEWS) {
        asked.push(at + 1);
      }
    }
    if (asked.length > 0) {
      const channel = new BroadcastChannel(CHANNEL);
      channel.postMessage(null);
      channel.close();
    }
    return asked;
  }

  /** The process ends: waits until all threads have sent what they have. */
  askAll() {
    const begun = performance.now();
    for (const slot of this.ask()) {
      for (const [state, share] of [
        [ASKED, SHARE],
        [TALKS, 1],
      ]) {
        Atomics.wait(this.table, slot, state, Math.max(0, begun + share * this.waitMs - performance.now()));
      }
    }
  }

  /** A thread that is terminated has until its loop turns once, and then until it has sent what it has. */
  #watchTerminate() {
    const threads = this;
    const { prototype } = worker.Worker;
    const { terminate } = prototype;
    prototype.terminate = function (...args) {
      const [slot] = threads.ask(this.threadId);
      const finish = () => Reflect.apply(terminate, this, args);
      if (slot === undefined) {
        threads.#forget(this.threadId);
        return finish();
      }
      this.ref();
      return threads.#untilDone(slot).then(finish);
    };
  }

  /** @param {number} id of a thread that has nothing to send and ends */
  #forget(id) {
    for (let at = 0; this.table !== undefined && at < this.table.length; at += 2) {
      if (this.table[at] === id) {
        Atomics.compareExchange(this.table, at + 1, QUIET, FREE);
      }
    }
  }

  /** @param {number} slot */
  async #untilDone(slot) {
    const begun = performance.now();
    for (let pause = 1; ; pause *= 2) {
      const state = Atomics.load(this.table, slot);
      const limit = this.waitMs * (state === ASKED ? SHARE : 1);
      const left = begun + limit - performance.now();
      if ((state !== ASKED && state !== TALKS) || left <= 0) {
        Atomics.store(this.table, slot, FREE);
        return;
      }
      await new Promise((done) => setTimeout(done, Math.min(pause, left)));
    }
  }
}
