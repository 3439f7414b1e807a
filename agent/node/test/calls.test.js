// A recorded function behaves the same for its caller: results, exceptions, promises, `this`, `new`, and the runtime's reports of
// unhandled rejections.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { record, wrap } from '../src/record/calls.js';
import { current } from '../src/record/context.js';
import { parts } from './support/parts.js';

const tree = (all) => {
  const calls = [...all.decoded().calls.values()];
  const nameOf = new Map(calls.map((call) => [call.span, call.name]));
  return calls.map((call) => [call.name, nameOf.get(call.parent) ?? null, call.failed]).sort();
};

test('a result, a receiver and arguments are passed on', () => {
  const all = parts();
  const board = {
    ads: 3,
    count: wrap(
      all.recorder,
      function count(by, ...more) {
        return [this.ads * by, ...more];
      },
      'Board.count',
    ),
  };
  assert.deepEqual(board.count(2, 'x', 'y'), [6, 'x', 'y']);
  assert.equal(board.count.name, 'count');
  assert.equal(board.count.length, 1);
  assert.deepEqual(tree(all), [['Board.count', null, false]]);
});

test('an exception is passed on', () => {
  const all = parts();
  const error = new TypeError('no');
  const broken = wrap(
    all.recorder,
    () => {
      throw error;
    },
    'broken',
  );
  assert.throws(broken, (thrown) => thrown === error);
  assert.equal(current(), undefined);
  assert.deepEqual(tree(all), [['broken', null, true]]);
});

test('a class stays a class', () => {
  const all = parts();
  class Ad {
    constructor(title) {
      this.title = title;
    }
  }
  const Watched = wrap(all.recorder, Ad, 'Ad');
  const ad = new Watched('bicycle');
  assert.ok(ad instanceof Ad && ad instanceof Watched);
  class Sub extends Watched {}
  assert.equal(new Sub('boat').title, 'boat');
  assert.ok(new Sub('boat') instanceof Sub);
});

test('a promise keeps its value, and the call lasts until it settles', async () => {
  const all = parts();
  // A timer counts from the start of the loop's turn, so a timer alone may end early.
  const pass = async (ms) => {
    for (const end = performance.now() + ms; performance.now() < end; await sleep(1));
    return ms;
  };
  const slow = wrap(all.recorder, pass, 'slow');
  assert.equal(await slow(20), 20);
  const [call] = all.decoded().calls.values();
  assert.ok(call.end - call.begin >= 19_000_000n, `${call.end - call.begin}`);
});

test('a rejection keeps its error', async () => {
  const all = parts();
  const error = new RangeError('far');
  await assert.rejects(
    record(all.recorder, 'late', async () => {
      await sleep(1);
      throw error;
    }),
    (thrown) => thrown === error,
  );
  assert.deepEqual(tree(all), [['late', null, true]]);
});

test('an unhandled rejection is reported once, and a handled one is not reported', async () => {
  const all = parts();
  const unhandled = [];
  const before = process.rawListeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', (reason) => unhandled.push(reason));
  const error = new Error('nobody');
  record(all.recorder, 'lost', () => Promise.reject(error));
  const handled = record(all.recorder, 'found', () => Promise.reject(new Error('somebody')));
  handled.catch(() => {});
  await sleep(20);
  process.removeAllListeners('unhandledRejection');
  for (const listener of before) process.on('unhandledRejection', listener);
  assert.deepEqual(unhandled, [error]);
});

class Lazy extends Promise {}
const EXOTIC = [
  ['a promise of a subclass', () => Lazy.resolve(1)],
  ['a promise with members', () => Object.assign(Promise.resolve(1), { kill() {} })],
  ['a thenable', () => ({ then: () => assert.fail('the agent called then') })],
  ['undefined', () => undefined],
  ['null', () => null],
];
for (const [what, make] of EXOTIC) {
  test(`${what} is passed on unchanged`, () => {
    const all = parts();
    const made = make();
    assert.equal(
      record(all.recorder, 'made', () => made),
      made,
    );
    assert.deepEqual(tree(all), [['made', null, false]]);
  });
}

test('calls after awaits, timers and callbacks have the right caller', async () => {
  const all = parts();
  const run = (name, fn) => record(all.recorder, name, fn);
  await run('root', async () => {
    run('sync', () => run('in sync', () => 1));
    await run('first', async () => {
      await sleep(2);
      run('in first', () => 1);
    });
    await Promise.all([
      run('left', async () => {
        await sleep(4);
        await run('in left', () => sleep(1));
      }),
      run('right', async () => {
        await sleep(2);
        run('in right', () => 1);
      }),
    ]);
    run('left alone', async () => {
      await sleep(10);
      run('in left alone', () => 1);
    });
    setTimeout(() => run('timer', () => 1), 3);
    process.nextTick(() => run('tick', () => 1));
    run('last', () => 1);
  });
  await sleep(30);
  assert.deepEqual(
    tree(all),
    [
      ['first', 'root', false],
      ['in first', 'first', false],
      ['in left alone', 'left alone', false],
      ['in left', 'left', false],
      ['in right', 'right', false],
      ['in sync', 'sync', false],
      ['last', 'root', false],
      ['left alone', 'root', false],
      ['left', 'root', false],
      ['right', 'root', false],
      ['root', null, false],
      ['sync', 'root', false],
      ['tick', 'root', false],
      ['timer', 'root', false],
    ].sort(),
  );
});

test('concurrent calls keep their own parents', async () => {
  const all = parts();
  const handle = async (at) => {
    await sleep(at % 7);
    await record(all.recorder, `inner ${at}`, () => sleep(at % 3));
    record(all.recorder, `after ${at}`, () => 1);
  };
  await Promise.all(Array.from({ length: 200 }, (_, at) => record(all.recorder, `outer ${at}`, () => handle(at))));
  const found = tree(all);
  assert.equal(found.length, 600);
  for (const [name, parent] of found) {
    const at = name.split(' ')[1];
    assert.equal(parent, name.startsWith('outer') ? null : `outer ${at}`);
  }
});

test('a program with a stack overflow gets its own exception, and recording continues', () => {
  const all = parts();
  const deeper = wrap(all.recorder, (n) => deeper(n + 1) + 1, 'deeper');
  for (let round = 0; round < 3; round++) {
    assert.throws(() => deeper(0), RangeError);
  }
  assert.equal(current(), undefined);
  record(all.recorder, 'after', () => 1);
  assert.ok(tree(all).some(([name]) => name === 'after'));
});

test('the frames are well formed wherever the stack overflows', () => {
  const all = parts();
  const fill = (/** @type {number} */ left) => (left > 0 ? fill(left - 1) : 0);
  // Overflows the stack at different places: while names, attributes, parts or frames are written.
  const deeper = (n, step) => {
    record(all.recorder, `name ${n} ${step}`, () => {
      all.recorder.attribute(current(), `key ${n % 50}`, `value ${n % 70} ${step}`);
      all.samples.sample({ __name__: 'depth', n: n % 100, step }, n);
      fill(step);
      deeper(n + 1, step);
    });
  };
  for (let step = 0; step < 40; step++) {
    for (let at = 0; at < 30; at++) record(all.recorder, 'between', () => 1);
    assert.throws(() => deeper(0, step), RangeError);
  }
  const calls = [...all.decoded().calls.values()];
  assert.equal(calls.filter(({ name, end }) => name === 'between' && end !== null).length, 40 * 30);
});
