// Two threads never get the same slot of the table of threads, even if one takes a slot while the other is taking one.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { Threads } from '../src/send/threads.js';

const LAST = () => {};
const SLOTS = { 'a free slot': { state: 0, seen: 0 }, 'the slot of a dead thread': { state: 2, seen: 0 } };
/** @type {Record<string, any>} */
const ORIGINAL = { compareExchange: Atomics.compareExchange, load: Atomics.load, store: Atomics.store };

/** @type {Threads[]} */
let threads;
beforeEach(() => {
  threads = [new Threads(1_000, (fn) => fn), new Threads(1_000, (fn) => fn)];
  threads[1].table = threads[0].table;
});
afterEach(() => {
  restore();
  threads.forEach((thread) => thread.leave());
});

const restore = () => Object.assign(Atomics, ORIGINAL);

/** Calls `then` once, before or after step number `count`, counted from 0. A step is an atomic operation on the table. */
function interrupt(count, isBefore, then) {
  let steps = 0;
  for (const [name, step] of Object.entries(ORIGINAL)) {
    Atomics[name] = (...args) => {
      const isNow = steps++ === count;
      const interrupted = () => (restore(), then());
      if (isNow && isBefore) interrupted();
      const result = step.apply(Atomics, args);
      if (isNow && !isBefore) interrupted();
      return result;
    };
  }
}

describe('a slot belongs to one thread', () => {
  for (const [what, slot] of Object.entries(SLOTS)) {
    for (let at = 0; at < 8; at++) {
      for (const isBefore of [true, false]) {
        test(`${what}, when another thread starts ${isBefore ? 'before' : 'after'} step ${at}`, () => {
          const [one, other] = threads;
          one.table.set([7, slot.state, 0, slot.seen]);
          interrupt(at, isBefore, () => other.join(LAST));
          one.join(LAST);
          restore();
          if (other.slot < 0) other.join(LAST);
          assert.deepEqual([one.slot, other.slot].sort(), [0, 4]);
          other.news(true);
          assert.ok(one.haveNews());
        });
      }
    }
  }
});
