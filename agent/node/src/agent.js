// Connects the parts of the agent, starts and stops them. Each thread of JavaScript has its own agent. Before: `register.js`,
// `index.js`. After: `record/recorder.js`, `send/link.js`.

import { performance } from 'node:perf_hooks';
import { getEnvironmentData, isMainThread, setEnvironmentData, threadId } from 'node:worker_threads';
import { load } from './config.js';
import { labels, pairs } from './identity.js';
import { Log } from './log.js';
import * as messages from './messages.js';
import { install, makeGuard } from './probes/index.js';
import { record, wrap } from './record/calls.js';
import { Recorder } from './record/recorder.js';
import { Session } from './record/session.js';
import { Switchboard } from './rules/switchboard.js';
import { Token } from './secret.js';
import { Sampler } from './sample/sampler.js';
import { Samples } from './sample/samples.js';
import { Clock } from './send/clock.js';
import { watchEnd } from './send/endings.js';
import { farewell } from './send/farewell.js';
import { Link } from './send/link.js';
import { Outbox } from './send/outbox.js';
import { Protocol } from './send/protocol.js';
import { Signals } from './send/signals.js';
import { Threads } from './send/threads.js';
import { Tls } from './send/tls.js';
import { Totals } from './send/totals.js';
import { Dictionary } from './wire/dictionary.js';

/** Longest time that a frame stays open for further records. */
const FLUSH_MS = 100;
/** Interval at which the agent checks for changed counts of rules and for unsent data. */
const LOOK_MS = 1_000;
/** Property of `globalThis` with the agent of this thread, so that several copies of this package use one agent. */
const SHARED = Symbol.for('tachograph.agent');
/** Key of the environment data with the warnings that were logged already. A new thread gets a copy of this data. */
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
    const outbox = new Outbox({ dictionary, clock, bytesMax: config.queue, wake, settled: () => this.signals.settle() });
    const thread = isMainThread ? 'main' : `worker-${threadId}`;
    this.clock = clock;
    this.totals = totals;
    this.outbox = outbox;
    this.recorder = new Recorder({ session, dictionary, outbox, clock, totals, thread, pendingMax: config.pending, wake, log });
    this.recorder.databaseMessages = config.database_messages;
    this.samples = new Samples({ dictionary, outbox, clock, totals, common, log });
    // Process samples are sent by one thread only.
    this.sampler = config.samplers && isMainThread ? new Sampler(this.samples, totals, outbox) : null;
    const { bytes, secret } = session;
    const token = new Token({ given: config.token, file: config.token_file, isInsecure: config.insecure_token });
    this.protocol = new Protocol({ session: bytes, secret, pairs: pairs(common), outbox, dictionary, totals, log, token });
    const { tls_ca: ca, tls_client_cert: cert, tls_client_key: key } = config;
    const tls = ca === '' ? null : new Tls({ ca, cert, key });
    this.link = new Link({ address: config.server, protocol: this.protocol, totals, log, tls });
    const answer = (/** @type {Buffer} */ frame) => {
      this.protocol.say(frame);
      this.link.pump();
    };
    this.switchboard = this.protocol.switchboard = new Switchboard({ dictionary, log, answer });
    this.signals = new Signals({ hasNews: () => this.#hasNews() || this.threads.haveNews(), last: () => this.#last(true) });
    this.threads = new Threads(config.flush_max, this.guard);
    this.recorder.signals = this.signals;
    /** Deadline of the wait for the server at the end of the process; 0 before the end begins. */
    this.deadline = 0;
    this.isOver = false;
    this.isArmed = true;
    // The timer is created once and rescheduled. A timer that is created inside a call would keep the context of the call.
    this.timer = setTimeout(() => this.#tick(), FLUSH_MS).unref();
  }

  start() {
    install({ recorder: this.recorder, config: this.config, log: this.log });
    this.link.start();
    this.sampler?.start(this.config.sample_interval);
    setInterval(
      this.guard(() => this.#count()),
      this.config.sample_interval,
    ).unref();
    setInterval(
      this.guard(() => this.#look()),
      LOOK_MS,
    ).unref();
    const over = () => this.#last(true);
    const { signals } = this;
    const listens = (/** @type {unknown} */ event) => signals.listens(event);
    const told = (/** @type {unknown} */ event) => signals.told(event);
    watchEnd({ exits: () => this.#last(false), ends: over, listens, told }, isMainThread);
    if (!isMainThread) {
      this.threads.join(over);
    } else if (this.config.signals) {
      this.signals.start();
      this.threads.watch(() => this.signals.soon());
    }
  }

  #look() {
    this.switchboard.tell(performance.now());
    this.signals.look();
    this.threads.look();
    this.threads.news(this.#hasNews());
  }

  /** True if there is data that the server has not acknowledged, and a socket, connected or connecting. */
  #hasNews() {
    const { recorder, outbox, link } = this;
    const isNews = recorder.active.length > 0 || recorder.tallies.hasNews || outbox.isOpen || !outbox.isAcknowledged();
    return isNews && link.socket !== null;
  }

  /** Sends the counts of aggregated operations. */
  #count() {
    this.recorder.tallies.sample(this.samples, performance.now());
  }

  #wake() {
    // The timer is first: it sends the data even if the program's stack overflows in the other calls.
    if (!this.isArmed) {
      this.timer.refresh();
      this.isArmed = true;
    }
    this.signals.soon();
    this.threads.news(true);
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
    if (this.recorder.active.length > 0 || this.outbox.isOpen) {
      this.#wake();
    }
  }

  /**
   * Sends everything recorded so far, including open calls, when the process or the thread ends. May be called again, because
   * exit handlers may record something after the first call.
   * @param {boolean} isLast true if no code runs after it that may record something; later calls of this method have no effect
   */
  #last(isLast) {
    this.guard(() => {
      if (this.isOver) {
        return;
      }
      this.isOver = isLast;
      const isFirst = this.deadline === 0;
      this.deadline ||= performance.now() + this.config.flush_max;
      this.signals.end();
      this.recorder.sweep(true);
      if (isFirst || this.outbox.isOpen) {
        this.threads.askAll();
        this.#count();
        this.sampler?.takeAgent(); // last, because it counts the other samples
        this.outbox.close();
      }
      if (!farewell(this.link, this.outbox, this.deadline, isLast) && isFirst) {
        const { bytes } = this.outbox;
        this.log.say(messages.endUnacknowledged(bytes));
      }
      this.link.outage.tellPast(performance.now());
      if (isLast) {
        this.link.end();
      }
      this.threads.leave();
    })();
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
 * @returns {Agent | null} null if it is disabled or has failed to start
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
    const allowed = messages.expected(`a writable file (${fault})`);
    config.warnings.push(messages.settingWrong('TACHO_LOG', config.log, allowed, 'standard error'));
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
    log.say(`the agent failed to start, the program runs without it: ${error instanceof Error ? error.stack : error}`);
    return null;
  }
}

/**
 * Logs the lines, except those that an ancestor of this thread (its parent, the parent's parent, ...) logged before the thread
 * began.
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
