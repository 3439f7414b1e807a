// An internal error (stack overflow, out of memory) may interrupt any function of the agent at the beginning of that function.
// Even then all frames stay well formed, each call is counted once, and later calls are recorded. The test runs a copy of the
// agent in which each function first calls `globalThis.boundary`.

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { parse } from 'acorn';
import { PACKAGE } from './support/tacho.js';

const place = mkdtempSync(join(tmpdir(), 'tachograph-faults-'));
after(() => rmSync(place, { recursive: true, force: true }));
const CALL = 'globalThis.boundary?.()';

/** Inserts `CALL` into each function of the source text. */
function instrumented(source) {
  const inserts = [];
  const visit = (node) => {
    if (typeof node?.type !== 'string') return;
    if (/^(?:Function|ArrowFunction)/.test(node.type)) {
      const { start, end, type } = node.body;
      if (type === 'BlockStatement') inserts.push([start + 1, `${CALL};`]);
      else inserts.push([start, `(${CALL}, `], [end, ')']);
    }
    for (const child of Object.values(node)) (Array.isArray(child) ? child : [child]).forEach(visit);
  };
  visit(parse(source, { ecmaVersion: 'latest', sourceType: 'module' }));
  let [text, at] = ['', 0];
  for (const [position, insert] of inserts.sort(([a], [b]) => a - b)) {
    text += source.slice(at, position) + insert;
    at = position;
  }
  return text + source.slice(at);
}

for (const part of ['src', 'test/support']) cpSync(join(PACKAGE, part), join(place, part), { recursive: true });
writeFileSync(join(place, 'package.json'), '{ "type": "module" }');
for (const name of readdirSync(join(place, 'src'), { recursive: true }).filter((name) => name.endsWith('.js'))) {
  const file = join(place, 'src', name);
  writeFileSync(file, instrumented(readFileSync(file, 'utf8')));
}
const load = (name) => import(pathToFileURL(join(place, name)).href);
const { parts } = await load('test/support/parts.js');
const { DROPPED } = await load('src/record/recorder.js');
const { STATE } = await load('src/wire/constants.js');

class Fault extends RangeError {}

/**
 * An agent with one internal error: at the `failsAt`-th function call. If `lasts` is true, all further function calls fail until
 * the agent returns to the program, as while the stack is full.
 */
class Victim {
  constructor(failsAt, lasts, limits) {
    this.all = parts({ session: '0f1e2d3c4b5a69788796a5b4c3d2e1f0', ...limits });
    this.failsAt = failsAt;
    this.lasts = lasts;
    this.made = 0;
    this.begun = 0;
    this.notEnded = 0;
    this.names = new Map();
    this.attributes = new Map();
    this.samples = 0;
    this.isWoken = false;
    this.all.recorder.wake = this.all.outbox.wake = () => (this.isWoken = true);
  }

  /** Calls the agent. Returns undefined if the error reaches the program. */
  step(run) {
    globalThis.boundary = () => {
      if (++this.made === this.failsAt || (this.lasts && this.made > this.failsAt && this.isFailing)) {
        this.isFailing = true;
        throw new Fault('Maximum call stack size exceeded');
      }
    };
    this.isFailing = false;
    try {
      return { result: run() };
    } catch (error) {
      assert.ok(error instanceof Fault, error);
      return undefined;
    } finally {
      delete globalThis.boundary;
      const { recorder, outbox } = this.all;
      assert.ok(this.isWoken || (recorder.active.length === 0 && !outbox.isOpen), 'data, but no timer');
    }
  }

  operation(name, kind = 1) {
    return this.step(() => this.all.dictionary.operation(kind, name))?.result ?? kind; // the first ids are `(other)` of each kind
  }

  counted(name) {
    const operation = this.operation(name);
    this.all.dictionary.states[operation] = STATE.AGGREGATE;
    return operation;
  }

  enter(parent, operation, remote) {
    const { recorder } = this.all;
    const entered = this.step(() =>
      remote === undefined ? recorder.enter(parent, operation) : recorder.enterFrom(remote, operation),
    );
    if (entered === undefined) return DROPPED; // the program got the error, and its function was not called
    this.begun++;
    if (entered.result !== DROPPED) this.#name(entered.result, operation);
    return entered.result;
  }

  #name(call, operation) {
    const key = `${call.strand.number}/${call.number}`;
    this.names.set(key, [...(this.names.get(key) ?? []), this.all.dictionary.entries[operation].name]);
  }

  attribute(call, key, value) {
    this.attributes.set(key, value);
    this.step(() => this.all.recorder.attribute(call, key, value));
  }

  rename(call, name) {
    const operation = this.operation(name, 2);
    this.step(() => this.all.recorder.rename(call, operation));
    if (call.operation === operation) this.#name(call, operation);
  }

  exit(call) {
    if (this.step(() => this.all.recorder.exit(call)) === undefined && call.end < 0) this.notEnded++;
  }

  fail(call, error) {
    if (this.step(() => this.all.recorder.fail(call, error)) === undefined && call.end < 0) this.notEnded++;
  }

  sample(name, value = 1.5) {
    this.samples++;
    this.step(() => this.all.samples.sample({ __name__: name }, value));
  }

  entry(name, text) {
    this.step(() => this.all.samples.entry({ __name__: name }, text));
  }

  /** Does what the timer of the agent does. */
  tick() {
    const { recorder, outbox } = this.all;
    this.step(() => {
      recorder.sweep(true);
      outbox.close();
    });
    this.isWoken = recorder.active.length > 0 || outbox.isOpen;
  }

  check() {
    const { all, names, attributes } = this;
    const { recorder, outbox, totals } = all;
    this.failsAt = 0;
    const later = this.enter(undefined, this.operation('later'));
    this.exit(later);
    const decoder = all.decoded();
    assert.deepEqual([recorder.pending, recorder.active.length], [0, 0]);
    const calls = [...decoder.calls.values()];
    assert.ok(calls.some(({ name, end }) => name === 'later' && end !== null) || outbox.isFull());
    for (const [key, { name }] of decoder.calls) assert.ok(names.get(key)?.includes(name) ?? true, `${key}: ${name}`);
    for (const [key, value] of calls.flatMap((call) => Object.entries(call.attributes))) {
      const given = String(attributes.get(key) ?? value).replaceAll('-', '');
      assert.equal(String(value).slice(0, 100), given.slice(0, 100));
    }
    const counted = recorder.tallies.all.reduce((sum, tally) => tally.buckets.reduce((a, b) => a + b, sum), 0);
    assert.equal(calls.filter(({ end }) => end !== null).length, totals.callsSent);
    assert.equal(
      outbox.frames.reduce((sum, frame) => sum + frame.calls, 0),
      totals.callsSent,
    );
    assert.equal(totals.callsSent + totals.callsDropped + counted + this.notEnded, this.begun);
    assert.equal(decoder.samples.length, totals.samplesSent);
    assert.ok(totals.samplesSent + totals.samplesDropped >= this.samples - 1);
    assert.equal(decoder.entries.length, totals.entriesSent);
    assert.deepEqual(
      outbox.frames.map(({ seq }) => seq),
      outbox.frames.map((_, at) => at + 1),
    );
  }
}

const REMOTE = { trace: Buffer.alloc(16, 7), span: { high: 1, low: 2 } };
const UUID = '123e4567-e89b-12d3-a456-426614174000';
/** What the program does. */
const PROGRAMS = {
  'nested calls with attributes': (agent) => {
    const root = agent.enter(undefined, agent.operation('root'));
    for (let at = 0; at < 2; at++) {
      const inner = agent.enter(root, agent.operation('inner'));
      agent.attribute(inner, `text ${at}`, 'often');
      agent.attribute(inner, `uuid ${at}`, UUID);
      agent.attribute(inner, `number ${at}`, 17);
      agent.exit(agent.enter(inner, agent.operation(`innermost ${at}`)));
      agent.exit(inner);
    }
    agent.exit(root);
  },
  'calls with exceptions': (agent) => {
    const root = agent.enter(undefined, agent.operation('root'));
    const inner = agent.enter(root, agent.operation('SELECT', 4));
    const error = new TypeError('no');
    agent.fail(inner, error);
    agent.fail(root, error);
  },
  'calls that end before their callees': (agent) => {
    const root = agent.enter(undefined, agent.operation('root'));
    const middle = agent.enter(root, agent.operation('middle'));
    const inner = agent.enter(middle, agent.operation('inner'));
    const beside = agent.enter(root, agent.operation('beside'));
    agent.exit(middle);
    agent.tick();
    agent.exit(root);
    agent.attribute(inner, 'late', 'value');
    agent.exit(beside);
    agent.exit(inner);
  },
  'a request in several parts': (agent) => {
    const root = agent.enter(undefined, agent.operation('GET', 2), REMOTE);
    const inner = agent.enter(root, agent.operation('inner'));
    agent.tick();
    agent.exit(agent.enter(inner, agent.operation('innermost')));
    agent.rename(root, 'GET /first');
    agent.tick();
    agent.attribute(inner, 'dropped by a sweep', 1);
    agent.tick();
    agent.exit(inner);
    agent.rename(root, 'GET /second');
    agent.exit(root);
  },
  'long attributes': (agent) => {
    const root = agent.enter(undefined, agent.operation('root'));
    for (let at = 0; at < 5; at++) agent.attribute(root, `long ${at}`, String(at).repeat(65_000));
    agent.exit(agent.enter(root, agent.operation('inner')));
    agent.exit(root);
  },
  'names that fill a frame of the dictionary': (agent) => {
    const root = agent.enter(undefined, agent.operation('root'));
    for (let at = 0; at < 9; at++) agent.operation(`${at}`.repeat(8_000));
    agent.exit(agent.enter(root, agent.operation('inner')));
    agent.exit(root);
  },
  'counted calls': (agent) => {
    const root = agent.enter(undefined, agent.operation('root'));
    for (const caller of [root, root, undefined]) {
      const counted = agent.enter(caller, agent.counted('counted'));
      agent.exit(agent.enter(counted, agent.operation('inner')));
      agent.exit(counted);
    }
    agent.exit(root);
  },
  'samples and entries': (agent) => {
    for (let at = 0; at < 3; at++) {
      agent.sample('sample', at === 0 ? 5n : 1.5);
      agent.entry('entry', `${at}`.repeat(30_000));
    }
    agent.exit(agent.enter(undefined, agent.operation('root')));
    agent.tick();
    agent.sample('last');
  },
};
const LIMITS = { 'no limit': {}, 'little memory': { pending: 600 }, 'a short queue': { queue: 200 } };
/** Programs that run with each of `LIMITS`. The other programs run only with `no limit`. */
const LIMITED = ['nested calls with attributes', 'calls that end before their callees', 'a request in several parts'];

for (const [what, program] of Object.entries(PROGRAMS)) {
  for (const [limit, limits] of Object.entries(LIMITS).slice(0, LIMITED.includes(what) ? undefined : 1)) {
    test(`an internal error at any function call loses only calls that are counted: ${what}, ${limit}`, () => {
      for (const lasts of [false, true]) {
        for (let at = 1, made = Infinity; at <= made; at++) {
          const victim = new Victim(at, lasts, limits);
          try {
            program(victim);
            made = victim.made;
            victim.check();
          } catch (error) {
            throw new Error(`internal error at function call ${at}, lasts: ${lasts}: ${error.stack}`);
          }
        }
      }
    });
  }
}
