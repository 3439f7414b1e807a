// How do the parts come together, when do they run, and how do they end? One agent for a thread of JavaScript.
// Before: `register.js` or `index.js`. After: probes call the recorder, timers empty it, the link sends.

import { performance } from 'node:perf_hooks';
import { getEnvironmentData, isMainThread, setEnvironmentData, threadId } from 'node:worker_threads';
import { load, wrong } from './config.js';
import { labels, pairs } from './identity.js';
import { Log } from './log.js';
import { install, makeGuard } from './probes/index.js';
import { record, wrap } from './record/calls.js';
import { Recorder } from './record/recorder.js';
import { Session } from './record/session.js';
import { Switchboard } from './rules/switchboard.js';
import { Sampler } from './sample/sampler.js';
import { Samples } from './sample/samples.js';
import { Clock } from './send/clock.js';
import { farewell } from './send/farewell.js';
import { Link } from './send/link.js';
import { Outbox } from './send/outbox.js';
import { Protocol } from './send/protocol.js';
import { Totals } from './send/totals.js';
import { Dictionary } from './wire/dictionary.js';

/** How long a record may wait for others before it is sent. */
const FLUSH_MS = 100;
/** Between two looks whether what the rules of the server came to has changed. */
const LOOK_MS = 1_000;
/** Those whose default is to end the process, and which a program may outlive long enough to say goodbye. */
const SIGNALS = /** @type {NodeJS.Signals[]} */ (['SIGTERM', 'SIGINT', 'SIGHUP']);
/** Two copies of this package in one process share one agent. */
const SHARED = Symbol.for('tachograph.agent');
/** Warnings that a thread has told, for the threads that it starts. */
const TOLD = 'tachograph.told';

export class Agent {
  /** @param {import('./config.js').Config} config @param {Log} log */
  constructor(config, log) {
    this.config = config;
    this.log = log;
    this.guard = makeGuard(log);
    const common = labels(config);
    const session = Session.draw();
    const dictionary = new Dictionary();
    const clock = new Clock();
    const totals = new Totals();
    const wake = () => this.#wake();
    const outbox = new Outbox({ dictionary, clock, bytesMax: config.queue, wake });
    const thread = isMainThread ? 'main' : `worker-${threadId}`;
    this.clock = clock;
    this.totals = totals;
    this.outbox = outbox;
    this.recorder = new Recorder({ session, dictionary, outbox, clock, totals, thread, pendingMax: config.pending, wake, log });
    this.samples = new Samples({ dictionary, outbox, clock, totals, common, log });
    // The numbers of the process are one thread's to tell.
    this.sampler = config.samplers && isMainThread ? new Sampler(this.samples, totals, outbox) : null;
    this.protocol = new Protocol({ session: session.bytes, pairs: pairs(common), outbox, dictionary, totals, log });
    this.link = new Link({ address: config.server, protocol: this.protocol, totals, log });
    const answer = (/** @type {Buffer} */ frame) => {
      this.protocol.say(frame);
      this.link.pump();
    };
    this.switchboard = this.protocol.switchboard = new Switchboard({ dictionary, log, answer });
    this.isArmed = true;
    // Made once and armed again and again: a timer made inside a call would remember its context.
    this.timer = setTimeout(() => this.#tick(), FLUSH_MS).unref();
  }

  /** Begins to watch and to send. */
  start() {
    install({ recorder: this.recorder, config: this.config, log: this.log });
    this.link.start();
    this.sampler?.start(this.config.sample_interval);
    setInterval(
      this.guard(() => this.#count()),
      this.config.sample_interval,
    ).unref();
    setInterval(
      this.guard(() => this.switchboard.tell(performance.now())),
      LOOK_MS,
    ).unref();
    process.on('exit', () => this.#end());
    if (this.config.signals && isMainThread) {
      for (const signal of SIGNALS) {
        this.#farewellAt(signal);
      }
    }
  }

  /** Tells of the operations that are counted. */
  #count() {
    this.recorder.tallies.sample(this.samples, performance.now());
  }

  #wake() {
    if (!this.isArmed) {
      this.isArmed = true;
      this.timer.refresh();
    }
  }

  #tick() {
    this.isArmed = false;
    this.guard(() => {
      this.clock.update();
      this.recorder.sweep(false);
      this.outbox.close();
      this.switchboard.tell(performance.now());
      this.link.pump();
    })();
    if (this.recorder.active.length > 0) {
      this.#wake();
    }
  }

  /** The process ends: everything recorded so far is sent, open calls included. */
  #end() {
    this.guard(() => {
      this.recorder.sweep(true);
      this.#count();
      this.sampler?.takeAgent(); // after all that it counts
      this.outbox.close();
      if (!farewell(this.link, this.outbox, this.config.flush_max)) {
        const { bytes } = this.outbox;
        this.log.say(`the program ends before the server has everything: ${bytes} bytes of records are not acknowledged`);
      }
      this.link.end();
    })();
  }

  /**
   * A signal that nobody else listens to ends the process as it would without us.
   * @param {NodeJS.Signals} signal
   */
  #farewellAt(signal) {
    const listener = () => {
      if (process.listenerCount(signal) > 1) {
        return; // the program decides; `exit` comes when it ends
      }
      process.removeListener(signal, listener);
      this.#end();
      process.kill(process.pid, signal);
    };
    process.on(signal, listener);
  }

  /** @template T @param {string} name @param {() => T} fn @returns {T} */
  record(name, fn) {
    return record(this.recorder, name, fn);
  }

  /** @template {(this: any, ...args: any[]) => any} F @param {F} fn @param {string} name @returns {F} */
  wrap(fn, name) {
    return wrap(this.recorder, fn, name);
  }

  /** @param {import('./sample/samples.js').Labels} of @param {number | bigint} value */
  sample(of, value) {
    this.guard(() => this.samples.sample(of, value))();
  }

  /** @param {import('./sample/samples.js').Labels} of @param {string} text */
  entry(of, text) {
    this.guard(() => this.samples.entry(of, text))();
  }
}

/**
 * Starts the agent of this thread, unless it has one.
 * @returns {Agent | null} null where it is switched off
 */
export function start() {
  const global = /** @type {any} */ (globalThis);
  if (!(SHARED in global)) {
    Object.defineProperty(global, SHARED, { value: startNew() });
  }
  return global[SHARED];
}

function startNew() {
  const config = load(process.env);
  const log = new Log(config.log, config.log_detail);
  const fault = log.fallBack();
  if (fault !== '') {
    config.warnings.push(wrong('TACHO_LOG', config.log, `expected a file that can be written to (${fault})`, 'standard error'));
  }
  warn(config.warnings, log);
  if (!config.enabled) {
    return null;
  }
  try {
    const agent = new Agent(config, log);
    agent.start();
    return agent;
  } catch (error) {
    log.say(`the agent did not start, the program runs without it: ${error instanceof Error ? error.stack : error}`);
    return null;
  }
}

/**
 * Each line once in a process: threads are started with what was told before.
 * @param {string[]} warnings
 * @param {Log} log
 */
function warn(warnings, log) {
  const told = /** @type {string[]} */ (getEnvironmentData(TOLD) ?? []);
  for (const warning of warnings.filter((line) => !told.includes(line))) {
    log.say(warning);
  }
  setEnvironmentData(TOLD, [...told, ...warnings]);
}
