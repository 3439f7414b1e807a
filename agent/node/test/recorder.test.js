// Overlapping calls are recorded with their parents, times and attributes, and are properly nested.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exceptionText } from '../src/record/exceptions.js';
import { DROPPED } from '../src/record/recorder.js';
import { parse } from '../src/record/traceparent.js';
import { parts, random } from './support/parts.js';

const hex = ({ high, low }) => high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');

/** The expected decoded state of a call. */
function expected({ session, clock }, call, model) {
  const { trace, number } = call.strand;
  return {
    span: hex(session.span(number, call.number)),
    trace: model.trace ?? Buffer.from(trace.id ?? session.trace(trace.segment)).toString('hex'),
    parent: model.parent,
    begin: clock.epoch(call.start),
    end: Number.isFinite(call.end) && call.end >= 0 ? clock.epoch(call.end) : null,
    failed: model.failed,
    attributes: model.attributes,
  };
}

/** Waits until the clock has advanced, so that no two calls have the same time. */
function tick() {
  for (const until = performance.now() + 0.002; performance.now() < until;);
}

/**
 * Calls begin inside random calls that are open or have just ended, or without a caller. They end in random order, with
 * attributes and runs of `recorder.sweep` in between.
 * @param {number} seed
 * @param {{ nested?: number }} how `nested`: of ten steps that end a call, the average number that end the newest open call. Each
 * other such step ends a random open call
 */
function play(seed, { nested = 5 } = {}) {
  const all = parts();
  const { recorder, dictionary } = all;
  const next = random(seed);
  const operations = Array.from({ length: 5 }, (_, at) => dictionary.operation(1, `operation ${at}`));
  const key = (call) => `${call.strand.number}/${call.number}`;
  const models = new Map();
  let open = [];
  const ended = [];
  for (let step = 0; step < 400; step++) {
    const what = next(10);
    if (what < 4 || open.length === 0) {
      const from = [...open, ...ended.slice(-3)];
      const parent = next(8) === 0 || from.length === 0 ? undefined : from[next(2) === 0 ? open.length - 1 : next(from.length)];
      const call = recorder.enter(parent, operations[next(5)]);
      const span = parent === undefined ? null : hex(all.session.span(parent.strand.number, parent.number));
      models.set(key(call), {
        call,
        parent: span,
        trace: parent && models.get(key(parent)).trace,
        failed: false,
        attributes: {},
      });
      const model = models.get(key(call));
      model.trace ??= all.session.trace(call.strand.number).toString('hex');
      open.push(call);
    } else if (what < 8) {
      const at = next(10) < nested ? open.length - 1 : next(open.length);
      const [call] = open.splice(at, 1);
      const failed = next(5) === 0;
      models.get(key(call)).failed = failed;
      if (failed) recorder.fail(call);
      else recorder.exit(call);
      ended.push(call);
    } else if (what === 8) {
      const call = open[next(open.length)];
      recorder.attribute(call, 'n', step);
      models.get(key(call)).attributes.n = step;
      models.get(key(call)).isTold = step;
    } else if (next(4) === 0) {
      // A sweep drops the attributes of an open part without events, so no sweep is made while such a part exists.
      if (all.recorder.active.every((strand) => strand.part.eventCount > 0)) recorder.sweep(true);
    }
    tick();
  }
  if (next(2) === 0) {
    for (const call of open) recorder.exit(call);
    open = [];
  }
  return { all, models };
}

for (let seed = 1; seed <= 60; seed++) {
  test(`overlapping calls keep their parents, times and attributes, seed ${seed}`, () => {
    const { all, models } = play(seed, { nested: [0, 5, 9, 10][seed % 4] });
    const { calls, parts: written } = all.decoded();
    assert.equal(all.totals.callsDropped, 0);
    assert.equal(calls.size, models.size);
    const lost = all.totals.attributesDropped;
    let missing = 0;
    for (const [key, model] of models) {
      const found = calls.get(key);
      const wanted = expected(all, model.call, model);
      if (lost > 0 && found.attributes.n !== wanted.attributes.n) {
        missing++;
        delete wanted.attributes.n;
        delete found.attributes.n;
      }
      const { span, trace, parent, begin, end, failed, attributes } = found;
      assert.deepEqual({ span, trace, parent, begin, end, failed, attributes }, wanted, key);
    }
    assert.ok(missing <= lost);
    const numbers = written.map(({ segment, part }) => `${segment}/${part}`);
    assert.equal(new Set(numbers).size, numbers.length, 'a part was written twice');
  });
}

test('calls that end innermost first are one segment', () => {
  const all = parts();
  const operation = all.dictionary.operation(1, 'a');
  const calls = [undefined];
  for (let depth = 0; depth < 10; depth++) calls.push(all.recorder.enter(calls.at(-1), operation));
  for (const call of calls.slice(1).reverse()) all.recorder.exit(call);
  assert.deepEqual(all.decoded().parts, [{ segment: 0, part: 0 }]);
});

test('a call that runs concurrently with another call of its caller is a segment of its own', () => {
  const all = parts();
  const operation = all.dictionary.operation(1, 'a');
  const root = all.recorder.enter(undefined, operation);
  const first = all.recorder.enter(root, operation);
  const second = all.recorder.enter(root, operation);
  for (const call of [first, second, root]) all.recorder.exit(call);
  const { parts: written, calls } = all.decoded();
  assert.deepEqual(written.map(({ segment }) => segment).sort(), [0, 1]);
  assert.equal(calls.get('1/0').parent, calls.get('0/0').span);
});

test('a long segment is cut into parts, and a deep recursion into few parts', () => {
  const all = parts();
  const operation = all.dictionary.operation(1, 'a');
  const root = all.recorder.enter(undefined, operation);
  for (let at = 0; at < 10_000; at++) all.recorder.exit(all.recorder.enter(root, operation));
  all.recorder.exit(root);
  const wide = all.decoded();
  assert.equal(wide.calls.size, 10_001);
  assert.equal(wide.parts.length, 5);
  const deep = parts();
  const again = deep.dictionary.operation(1, 'a');
  const open = [undefined];
  for (let at = 0; at < 20_000; at++) open.push(deep.recorder.enter(open.at(-1), again));
  for (const call of open.slice(1).reverse()) deep.recorder.exit(call);
  const found = deep.decoded();
  assert.equal(found.calls.size, 20_000);
  assert.ok([...found.calls.values()].every((call) => call.end !== null));
  assert.ok(found.parts.length < 12, `${found.parts.length} parts`);
});

test('a remote caller is the parent, and an outgoing header names the call', () => {
  const all = parts({ session: '0f1e2d3c4b5a69788796a5b4c3d2e1f0' });
  const operation = all.dictionary.operation(2, 'GET /');
  const remote = parse('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00');
  const root = all.recorder.enterFrom(remote, operation);
  const inner = all.recorder.enter(root, operation);
  const beside = all.recorder.enter(root, operation);
  const header = all.recorder.traceparent(beside);
  for (const call of [inner, beside, root]) all.recorder.exit(call);
  const { calls } = all.decoded();
  for (const call of calls.values()) assert.equal(call.trace, '4bf92f3577b34da6a3ce929d0e0e4736');
  assert.equal(calls.get('0/0').parent, '00f067aa0ba902b7');
  assert.equal(calls.get('1/0').parent, calls.get('0/0').span);
  assert.equal(header, `00-4bf92f3577b34da6a3ce929d0e0e4736-${calls.get('1/0').span}-01`);
  assert.equal(all.recorder.traceparent(undefined), null);
  assert.equal(all.recorder.traceparent(DROPPED), null);
});

test('a call long after the end of its caller is a trace of its own', () => {
  const all = parts();
  const operation = all.dictionary.operation(1, 'a');
  const root = all.recorder.enter(undefined, operation);
  all.recorder.exit(root);
  const soon = all.recorder.enter(root, operation);
  all.recorder.exit(soon);
  all.recorder.orphanNs = 0;
  tick();
  all.recorder.exit(all.recorder.enter(root, operation));
  const { calls } = all.decoded();
  assert.equal(calls.get('1/0').parent, calls.get('0/0').span);
  assert.equal(calls.get('2/0').parent, null);
});

test('a full queue drops whole trees, and their calls are counted', () => {
  const all = parts({ queue: 70_000 });
  const operation = all.dictionary.operation(1, 'a');
  let entered = 0;
  for (let trace = 0; trace < 10_000; trace++) {
    const root = all.recorder.enter(undefined, operation);
    const inner = all.recorder.enter(root, operation);
    entered += 2;
    all.recorder.exit(inner);
    all.recorder.exit(root);
  }
  const { calls } = all.decoded();
  assert.ok(calls.size > 1_000 && calls.size < entered);
  assert.equal(calls.size + all.totals.callsDropped, entered);
  assert.equal(all.totals.callsSent, calls.size);
  assert.ok([...calls.values()].every((call) => call.end !== null));
});

test('memory of open calls is bounded, and released', () => {
  const all = parts({ pending: 64_000 });
  const operation = all.dictionary.operation(1, 'a');
  const open = Array.from({ length: 1_000 }, () => all.recorder.enter(undefined, operation));
  assert.ok(all.recorder.pending < 70_000);
  const kept = open.filter((call) => call !== DROPPED);
  assert.equal(kept.length + all.totals.callsDropped, 1_000);
  for (const call of open) {
    all.recorder.attribute(call, 'a', 'b'.repeat(100));
    all.recorder.exit(call);
  }
  assert.equal(all.recorder.pending, 0);
  assert.equal(all.recorder.active.length, 0);
  const { calls } = all.decoded();
  assert.equal(calls.size, kept.length);
  assert.ok([...calls.values()].every((call) => call.end !== null));
});

test('the attributes of a segment are bounded', () => {
  const all = parts();
  const call = all.recorder.enter(undefined, all.dictionary.operation(1, 'a'));
  for (let at = 0; at < 4_200; at++) all.recorder.attribute(call, 'n', at);
  all.recorder.exit(call);
  assert.equal(all.totals.attributesDropped, 4_200 - 4_096);
  assert.equal(all.decoded().calls.get('0/0').attributes.n, 4_095);
});

test('an ended call does not change', () => {
  const all = parts();
  const call = all.recorder.enter(undefined, all.dictionary.operation(1, 'a'));
  all.recorder.exit(call);
  all.recorder.exit(call);
  all.recorder.fail(call, new Error('late'));
  all.recorder.attribute(call, 'late', 1);
  const [found] = all.decoded().calls.values();
  assert.deepEqual([found.failed, found.attributes], [false, {}]);
});

test('an exception is recorded where it appeared and at the outermost call that it left', () => {
  const all = parts();
  const operation = all.dictionary.operation(1, 'a');
  const [root, middle, inner] = [0, 1, 2].reduce((open) => [...open, all.recorder.enter(open.at(-1), operation)], []);
  const error = new RangeError('too far');
  for (const call of [inner, middle, root]) all.recorder.fail(call, error);
  const told = [...all.decoded().calls.values()].map((call) => [call.failed, call.attributes.exception]);
  assert.deepEqual(told, [
    [true, 'RangeError: too far'],
    [true, undefined],
    [true, 'RangeError: too far'],
  ]);
});

class Custom extends Error {
  get message() {
    throw new Error('never asked');
  }
}
class NeonDbError extends Error {}
class PrismaClientValidationError extends Error {}
/** A bundler has renamed this class. The property `name` of its exceptions has the original name. */
class Custom2 extends Error {}
class MongooseError extends Error {}
class Below extends MongooseError {}
function arrayThatCounts() {
  const array = [1];
  const get = () => assert.fail('code of the program');
  Object.defineProperty(array, '0', { get });
  Object.defineProperty(array, 'constructor', { get });
  return array;
}
const EXCEPTIONS = [
  [new Error('a'), 'Error: a'],
  [new TypeError(''), 'TypeError'],
  [new Custom(), 'Custom'],
  ['text', 'text'],
  [17, 'number'],
  [null, 'object'],
  [{ message: 'm' }, 'Object: m'],
  [Object.create(null), 'Error'],
  [new Proxy(new Error('p'), {}), 'object'],
  [Object.assign(new Error('s3cret'), { severity: 'ERROR', code: '22P02' }), 'Error (22P02)'],
  [Object.assign(new Error('s3cret'), { sqlMessage: 's3cret', code: 's3cret!' }), 'Error'],
  [new TypeError('s3cret', { cause: Object.assign(new Error('s3cret'), { code: 'SQLITE_ERROR' }) }), 'TypeError (SQLITE_ERROR)'],
  [Object.assign(new Error('s3cret'), { driverError: { parent: { code: 'ER_DUP_ENTRY' } } }), 'Error (ER_DUP_ENTRY)'],
  [new Error('a', { cause: new Error('b') }), 'Error: a'],
  [Object.assign(new Error('s3cret'), { code: 'EREQUEST', number: 2627 }), 'Error (2627)'],
  [Object.assign(new Error('s3cret'), { code: 'ORA-00001' }), 'Error (ORA-00001)'],
  [Object.assign(new Error('s3cret'), { errorNum: 1 }), 'Error'],
  [Object.assign(new Error('s3cret'), { sql: 'select 1', code: 17 }), 'Error (17)'],
  [Object.assign(new Error('s3cret'), { query: 'select 1', params: [] }), 'Error'],
  [
    new AggregateError([new Error('a'), Object.assign(new Error('s3cret'), { code: 'ER_DUP_ENTRY' })], 's3cret'),
    'AggregateError (ER_DUP_ENTRY)',
  ],
  [new AggregateError([new Error('a')], 'b'), 'AggregateError: b'],
  [new PrismaClientValidationError('s3cret'), 'PrismaClientValidationError'],
  [
    Object.assign(new Custom2('s3cret'), { name: 'PrismaClientKnownRequestError', code: 'P2002' }),
    'PrismaClientKnownRequestError (P2002)',
  ],
  [new Below('s3cret'), 'Below'],
  [Object.assign(new Error('s3cret'), { code: 'DUCKDB_NODEJS_ERROR' }), 'Error (DUCKDB_NODEJS_ERROR)'],
  [Object.assign(new Error('s3cret'), { sqlcode: -803, state: '23505' }), 'Error'],
  [Object.assign(new Error('s3cret'), { gdscode: 335544665 }), 'Error'],
  [Object.assign(new Error('s3cret'), { name: 'ClickHouseError', code: '60' }), 'Error (60)'],
  [new Error('s3cret', { cause: new NeonDbError('s3cret') }), 'Error'],
  [Object.assign(new Error('a'), { query: 'q', number: 5, errors: 'none', code: 'EACCES' }), 'Error: a'],
  [Object.assign(new Error('a'), { errors: arrayThatCounts() }), 'Error: a'],
];
for (const [error, text] of EXCEPTIONS) {
  test(`the text of an exception is ${text}`, () => assert.equal(exceptionText(error), text));
}

test('an internal error drops the calls of its strand, and affects neither the program nor other strands', () => {
  const all = parts();
  const operation = all.dictionary.operation(1, 'a');
  const root = all.recorder.enter(undefined, operation);
  root.strand.part.enter = () => {
    throw new RangeError('Maximum call stack size exceeded');
  };
  const inner = all.recorder.enter(root, operation);
  assert.equal(inner, DROPPED);
  all.recorder.exit(inner);
  all.recorder.exit(root);
  all.recorder.exit(all.recorder.enter(undefined, operation));
  assert.equal(all.recorder.pending, 0);
  const { calls } = all.decoded();
  assert.deepEqual([...calls.keys()], ['1/0']);
  assert.ok(all.totals.callsDropped >= 2);
  assert.match(all.log.lines[0], /Maximum call stack/);
});

test('a request gets its name when it ends, even if a part was already sent', () => {
  const { recorder, dictionary, decoded } = parts();
  const name = (text) => dictionary.operation(2, text);
  for (const isLong of [false, true]) {
    for (const [early, late] of [
      ['GET', `GET /${isLong}`],
      ['GET /a', 'GET'],
    ]) {
      for (let at = 0; isLong && at < 200; at++) name(`GET /${early}${at}`); // later names get ids of two bytes
      const call = recorder.enterFrom(null, name(early));
      const inner = recorder.enter(call, dictionary.operation(1, 'inner'));
      recorder.exit(inner);
      if (isLong) recorder.sweep(true);
      recorder.exit(recorder.enter(call, dictionary.operation(1, 'again')));
      recorder.rename(call, name(late));
      recorder.attribute(call, 'http.status', 200);
      recorder.exit(call);
      recorder.rename(call, name('too late'));
    }
  }
  const names = [...decoded().calls.values()].map((call) => call.name);
  assert.deepEqual(
    names,
    ['GET /false', 'GET', 'GET /true', 'GET'].flatMap((text) => [text, 'inner', 'again']),
  );
});
