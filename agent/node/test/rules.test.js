// Rules of a server: patterns and their order (vectors shared by the agents), states of calls, counts, and reports.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { record, wrap } from '../src/record/calls.js';
import { current } from '../src/record/context.js';
import { Pattern } from '../src/rules/pattern.js';
import { Rules } from '../src/rules/rules.js';
import { Switchboard } from '../src/rules/switchboard.js';
import { Bytes } from '../src/wire/bytes.js';
import { FRAME, KIND, STATE } from '../src/wire/constants.js';
import { FrameReader, beginFrame, finishFrame } from '../src/wire/frame.js';
import { readProbes } from '../src/wire/probes.js';
import { parts, random } from './support/parts.js';
import { vectors } from './support/vectors.js';

const { OFF, ON, AGGREGATE } = STATE;
const METHOD = KIND.METHOD;

/** State and pattern of a rule that is written like `0 com.shop..*`. */
const rule = (text) => ({ state: Number(text.slice(0, 1)), pattern: text.slice(2) });

for (const { name, lines } of vectors('decisions.vec', 'rules')) {
  test(`the last matching rule decides: ${name}`, () => {
    const all = (key) => lines.filter(([found]) => found === key).map(([, text]) => text);
    const rules = new Rules(all('rule').map(rule));
    const faulty = rules.list.flatMap(({ fault }, at) => (fault === '' ? [] : [String(at)]));
    assert.deepEqual(faulty, all('fault'));
    for (const line of all('method')) {
      const [owner, method, expected] = line.split(' ');
      const decided = rules.decide(METHOD, `${owner}.${method}`);
      assert.equal(decided < 0 ? '-' : String(decided), expected, line);
    }
  });
}

const KINDS = [
  ['*', METHOD, 'search', true],
  ['search', METHOD, 'search', true],
  ['sea*', METHOD, 'search', true],
  ['search', METHOD, 'Board.search', false],
  ['Board', METHOD, 'Board.search', true],
  ['Board..*', METHOD, 'Board.search', true],
  ['Board..search', METHOD, 'Board.a.search', true],
  ['Board..search', METHOD, 'Board.research', false],
  ['*', KIND.HTTP_SERVER, 'GET /ads/{id}', true],
  ['http-server', KIND.HTTP_SERVER, 'GET /ads/{id}', true],
  ['http-*', KIND.HTTP_CLIENT, 'GET 127.0.0.1:80', true],
  ['http-server', KIND.HTTP_CLIENT, 'GET 127.0.0.1:80', false],
  ['database', KIND.DATABASE, 'select * from a.b', true],
  ['*.b', KIND.DATABASE, 'select * from a.b', false],
  ['connection-wait', KIND.CONNECTION_WAIT, 'Pool.connect', true],
  ['http-server', METHOD, 'http-server', true],
];
for (const [pattern, kind, name, expected] of KINDS) {
  test(`${pattern} ${expected ? 'matches' : 'does not match'} ${name} of kind ${kind}`, () => {
    assert.equal(new Rules([{ state: OFF, pattern }]).decide(kind, name) === 0, expected);
  });
}

test('the search finds the last matching rule', () => {
  const draw = random(7);
  const pick = (from) => from[draw(from.length)];
  const plain = ['shop', 'a', 'ab', 'b', 'Board', 'find'];
  const some = (from, dots) => Array.from({ length: 1 + draw(4) }, (_, at) => (at > 0 ? pick(dots) : '') + pick(from)).join('');
  for (let round = 0; round < 2_000; round++) {
    const patterns = Array.from(
      { length: 1 + draw(6) },
      () => pick(['', '', '..']) + some([...plain, '*', 'a*', '*b', '*a*b*', 'S*p'], ['.', '.', '..']),
    );
    const name = some(plain, ['.']);
    const fitting = patterns.map((pattern) => new Pattern(pattern).fits(name.split('.')));
    const rules = new Rules(patterns.map((pattern) => ({ state: OFF, pattern })));
    assert.equal(rules.decide(METHOD, name), fitting.lastIndexOf(true), `${patterns} ${name}`);
  }
});

for (const make of [
  (at) => `shop.b${at}..*Service.*o*s*`,
  (at) => `shop.part1.mod${at}x.Board.post`,
  (at) => `..*Service${at}.find*`,
  (at) => `shop..part*..*${at}x*`,
]) {
  test(`a pattern of a long list is matched only with names that contain its rarest text: ${make(7)}`, (t) => {
    const patterns = [...Array.from({ length: 1_000 }, (_, at) => make(at)), 'shop..Board.find_7'];
    const rules = new Rules(patterns.map((pattern) => ({ state: OFF, pattern })));
    const { mock } = t.mock.method(Pattern.prototype, 'fits');
    for (let at = 0; at < 100; at++) {
      const decided = rules.decide(METHOD, `shop.part${at % 10}.mod${at}.Board.find_${at}`);
      assert.equal(decided, at === 7 ? 1_000 : -1);
    }
    assert.ok(mock.callCount() < 1_000, `${mock.callCount()} for 100 names`);
  });
}

const FAULTS = [
  [{ state: 3, pattern: '*' }, /^state 3 is not known here$/],
  [{ state: OFF, pattern: '@com.shop.Watched' }, /not supported in JavaScript: @com\.shop\.Watched/],
  [{ state: OFF, pattern: 'a b' }, /^' ' cannot be part of a pattern: a b$/],
  [{ state: OFF, pattern: 'a...b' }, /^a dot is out of place in the pattern: a\.\.\.b$/],
  [{ state: OFF, pattern: '' }, /^a dot is out of place in the pattern: $/],
];
for (const [given, fault] of FAULTS) {
  test(`an invalid rule has a reason: ${given.pattern}`, () => {
    const rules = new Rules([given, { state: OFF, pattern: 'a' }]);
    assert.match(rules.list[0].fault, fault);
    assert.deepEqual([rules.decide(METHOD, 'a'), rules.decide(METHOD, 'b')], [1, -1]);
  });
}

/** The parts of an agent. The reports of its switchboard are collected. */
function switched(rules = []) {
  const all = parts();
  const answers = [];
  const waiting = [];
  const switchboard = new Switchboard({
    dictionary: all.dictionary,
    log: all.log,
    answer: (frame) => answers.push(answered(frame)),
    later: (next) => waiting.push(next),
  });
  let revision = 0;
  const take = (...texts) => switchboard.take({ revision: ++revision, rules: texts.map(rule) });
  take(...rules);
  const state = (name, kind = METHOD) => all.dictionary.states[all.dictionary.operation(kind, name)];
  return { ...all, switchboard, answers, waiting, take, state };
}

/** The content of a PROBED: `revision on aggregated off`, then `matched fault` of each rule. */
function answered(frame) {
  const reader = new FrameReader();
  reader.push(frame);
  const { type, body } = reader.next();
  assert.equal(type, FRAME.PROBED);
  const counts = [body.varint(), body.varint(), body.varint(), body.varint()].join(' ');
  const rules = Array.from({ length: body.varint() }, (_, at) => {
    assert.equal(body.varint(), at);
    return `${body.varint()} ${body.string()}`.trim();
  });
  assert.equal(body.varint(), 0);
  return [counts, ...rules];
}

/** Names of the recorded calls, each preceded by the name of its caller. */
const recorded = (all) => {
  const calls = [...all.decoded().calls.values()];
  const nameOf = new Map(calls.map((call) => [call.span, call.name]));
  return calls.map((call) => `${nameOf.get(call.parent) ?? ''}>${call.name}${call.failed ? '!' : ''}`);
};

test('known operations are decided when rules arrive, new ones when they are named', () => {
  const all = switched();
  const known = [all.state('Board.post'), all.state('Price.of')];
  all.take('0 *', '1 Board', '2 Price.*');
  assert.deepEqual(known, [ON, ON]);
  assert.deepEqual([all.state('Board.post'), all.state('Price.of'), all.state('new')], [ON, AGGREGATE, OFF]);
  all.take('0 Board');
  assert.deepEqual([all.state('Board.post'), all.state('Price.of'), all.state('new')], [OFF, ON, ON]);
  all.take();
  assert.deepEqual([all.state('Board.post'), all.state('Price.of'), all.state('new')], [ON, ON, ON]);
});

test('each list is answered, and changes are reported after pauses that grow to 5 s and become short again', () => {
  const all = switched();
  for (const name of ['Board.post', 'Board.find', 'Price.of']) all.state(name);
  all.state('GET /ads', KIND.HTTP_SERVER);
  all.take('0 Board.*', '2 Price', '0 nothing.here', '1 a b', '0 http-server');
  all.take();
  assert.deepEqual(all.answers, [
    ['1 0 0 0'],
    ['2 0 1 3', '2', '1', '0', "0 ' ' cannot be part of a pattern: a b", '1'],
    ['3 4 0 0'],
  ]);
  let at = all.switchboard.toldAt;
  let count = 4;
  // Each pair: when a change arrives and when it is reported, both in milliseconds after the last report.
  const rising = [200, 400, 800, 1_600, 3_200, 5_000].map((pause) => [0, pause]);
  const late = [4_999, 5_001, 3_600_000].map((quiet) => [quiet, quiet]);
  const steps = [...rising, ...rising, [0, 200], late[0], [0, 800], late[1], ...rising, late[2], [0, 200], [0, 400]];
  for (const [comes, told] of steps) {
    all.switchboard.tell(at + comes);
    all.state(`another ${count}`);
    if (told > comes) all.switchboard.tell(at + told - 1);
    assert.deepEqual(all.answers.at(-1), [`3 ${count} 0 0`], 'too early');
    at += told + 0.01; // a bit more, because a sum of fractions may be rounded down
    all.switchboard.tell(at);
    assert.deepEqual(all.answers.at(-1), [`3 ${++count} 0 0`], `${comes} ${told}`);
  }
  const { length } = all.answers;
  all.switchboard.tell(at + 11_000);
  assert.equal(all.answers.length, length, 'a report without news');
  all.switchboard.closed();
  all.state('one more');
  all.switchboard.tell(at + 20_000);
  assert.equal(all.answers.length, length, 'a report although PROBES did not arrive on this connection');
});

test('without a connection the rules stay in force', () => {
  const all = switched(['0 *']);
  all.switchboard.closed();
  assert.equal(all.state('a'), OFF);
});

test('many rules for many operations are decided in slices, and the report follows at the end', () => {
  const all = switched();
  for (let at = 0; at < 5_000; at++) all.state(`com.shop.a${at}.Board.post`);
  const rules = Array.from({ length: 1_000 }, (_, at) => `0 com.shop.b${at}..*Service.*o*s*`);
  all.take(...rules);
  assert.equal(all.waiting.length, 1);
  assert.equal(all.answers.length, 1);
  all.state('com.shop.b7.Service.post');
  for (let next = all.waiting.shift(); next !== undefined; next = all.waiting.shift()) next();
  assert.equal(all.answers.length, 2);
  assert.equal(all.answers[1][0], '2 5000 0 1');
  assert.equal(all.answers[1][8], '1');
});

test('a list that arrives while another is decided replaces it', () => {
  const all = switched();
  for (let at = 0; at < 5_000; at++) all.state(`com.shop.a${at}.Board.post`);
  all.take(...Array.from({ length: 1_000 }, (_, at) => `0 com.shop.b${at}..*Service.*o*s*`));
  all.take('0 *');
  assert.equal(all.waiting.length, 1, 'only one pass over the operations must be scheduled');
  for (let next = all.waiting.shift(); next !== undefined; next = all.waiting.shift()) next();
  assert.deepEqual(all.answers.at(-1), ['3 0 0 5000', '5000']);
});

test('a call that is off is not recorded, and calls inside it belong to its caller', async () => {
  const all = switched();
  const { recorder } = all;
  const price = wrap(recorder, (n) => record(recorder, 'Price.tax', () => n), 'Price.of');
  const board = {
    ads: [5],
    post: wrap(
      recorder,
      async function (n) {
        await sleep(1);
        return [...this.ads, price(n)];
      },
      'Board.post',
    ),
  };
  for (const rules of [[], ['0 Price.of'], ['0 Board'], ['0 *'], []]) {
    all.take(...rules);
    assert.deepEqual(await board.post(7), [5, 7]);
  }
  const every = ['>Board.post', 'Board.post>Price.of', 'Price.of>Price.tax'];
  assert.deepEqual(
    recorded(all).sort(),
    [...every, '>Board.post', 'Board.post>Price.tax', '>Price.of', 'Price.of>Price.tax', ...every].sort(),
  );
});

test('a class that is off stays a class', () => {
  const all = switched(['0 *']);
  class Ad {}
  const Watched = wrap(all.recorder, Ad, 'Ad');
  assert.ok(new Watched() instanceof Ad);
  const broken = wrap(all.recorder, () => assert.fail('thrown'), 'broken');
  assert.throws(broken, /thrown/);
  assert.equal(current(), undefined);
  assert.deepEqual(recorded(all), []);
});

test('a change of rules does not affect open calls', async () => {
  const all = switched();
  const held = record(all.recorder, 'held', () => sleep(5));
  all.take('0 *');
  const off = record(all.recorder, 'off', () => sleep(5));
  all.take();
  await Promise.all([held, off]);
  assert.deepEqual(recorded(all), ['>held']);
});

test('an aggregated call is counted with its caller, and recorded calls inside belong to the outer recorded call', async () => {
  const all = switched(['2 Price.*']);
  const { recorder } = all;
  const tax = wrap(
    recorder,
    (n) => {
      if (n === 3) throw new RangeError('three');
      record(recorder, 'Log.write', () => n);
    },
    'Price.tax',
  );
  const of = wrap(
    recorder,
    async (n) => {
      await sleep(2);
      tax(n);
    },
    'Price.of',
  );
  const begun = performance.now();
  await record(recorder, 'outer', async () => {
    for (let n = 0; n < 4; n++) await of(n).catch(() => {});
  });
  const took = (performance.now() - begun) / 1_000;
  tax(0);
  assert.deepEqual(recorded(all), ['>outer', 'outer>Log.write', 'outer>Log.write', 'outer>Log.write', '>Log.write']);
  recorder.tallies.sample(all.samples, 0);
  const { samples } = all.decoded();
  const of_ = (name, operation, caller, le) =>
    samples.findLast(
      ([labels]) => labels.__name__ === name && labels.operation === operation && labels.caller === caller && labels.le === le,
    )?.[1];
  assert.equal(of_('tacho_operation_seconds_count', 'Price.of', 'outer'), 4);
  assert.equal(of_('tacho_operation_seconds_count', 'Price.tax', 'Price.of'), 4);
  assert.equal(of_('tacho_operation_seconds_count', 'Price.tax', '(none)'), 1);
  assert.equal(of_('tacho_operation_failed_total', 'Price.tax', 'Price.of'), 1);
  assert.equal(of_('tacho_operation_failed_total', 'Price.of', 'outer'), 1);
  const [sum, max] = ['sum', 'max'].map((name) => of_(`tacho_operation_seconds_${name}`, 'Price.of', 'outer'));
  assert.ok(sum >= 4 * 0.001 && sum <= took && max >= sum / 4 && max <= sum, `${sum} ${max}`);
  assert.equal(of_('tacho_operation_seconds_bucket', 'Price.of', 'outer', '0.000065536'), 0);
  assert.equal(of_('tacho_operation_seconds_bucket', 'Price.of', 'outer', '0.000000064'), 0);
  assert.equal(of_('tacho_operation_seconds_bucket', 'Price.of', 'outer', '+Inf'), 4);
  assert.equal(of_('tacho_agent_aggregated_other_total'), 0);
});

test('an unchanged count is sent once a minute', () => {
  const all = switched(['2 *']);
  record(all.recorder, 'a', () => 1);
  const told = (now) => {
    const before = all.totals.samplesSent;
    all.recorder.tallies.sample(all.samples, now);
    return all.totals.samplesSent - before;
  };
  const ONE_PAIR = 4 + 18 + 1;
  assert.deepEqual([told(0), told(59_000), told(61_000), told(62_000)], [ONE_PAIR, 1, ONE_PAIR, 1]);
});

test('pairs of operation and caller are bounded, and the sums stay complete', () => {
  const all = switched(['2 *']);
  const { recorder } = all;
  for (let at = 0; at < 600; at++) {
    for (let caller = 0; caller < 3; caller++) record(recorder, `caller ${caller}`, () => record(recorder, `m${at}`, () => at));
  }
  const tallies = recorder.tallies.all;
  assert.ok(tallies.length <= 513, `${tallies.length}`);
  const calls = tallies.reduce((sum, tally) => sum + tally.buckets.reduce((a, b) => a + b, 0), 0);
  assert.equal(calls, 600 * 3 * 2);
  recorder.tallies.sample(all.samples, 0);
  const others = all.decoded().samples.findLast(([{ __name__ }]) => __name__ === 'tacho_agent_aggregated_other_total')[1];
  assert.ok(others > 600 && others < 3_600, `${others}`);
});

test('a call that is renamed before its end is counted under the new name only', () => {
  const all = switched(['2 *']);
  const { recorder } = all;
  const operation = (name) => all.dictionary.operation(KIND.METHOD, name);
  const served = (early, late) => {
    const call = recorder.enterFrom(undefined, operation(early));
    recorder.rename(call, operation(late));
    recorder.exit(call);
  };
  for (let at = 0; at < 600; at++) served(`GET /x${at}`, 'GET (not found)');
  served('GET /users/7', 'GET /users/:id');
  const name = (tally) => all.dictionary.entries[tally.operation].name;
  const counted = recorder.tallies.all.map((tally) => [name(tally), tally.buckets.reduce((a, b) => a + b)]);
  assert.deepEqual(counted, [
    ['GET (not found)', 600],
    ['GET /users/:id', 1],
  ]);
});

test('if the stack overflows in a counted call, the program gets its own exception', () => {
  const all = switched(['2 *']);
  const deeper = wrap(all.recorder, (n) => deeper(n + 1) + 1, 'deeper');
  assert.throws(() => deeper(0), RangeError);
  assert.equal(current(), undefined);
  record(all.recorder, 'after', () => 1);
  assert.ok(all.recorder.tallies.all.length >= 2);
});

test('a list that claims too many rules is invalid', () => {
  const reader = new FrameReader();
  reader.push(finishFrame(beginFrame(new Bytes(16)).varint(1).varint(1_001), FRAME.PROBES).copy());
  const { body } = reader.next();
  assert.throws(() => readProbes(body), /claims 1001 rules/);
});
