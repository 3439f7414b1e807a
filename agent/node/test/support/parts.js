// The objects of an agent without a socket. `decoded` closes the open parts of segments and returns all records so far.

import { Recorder } from '../../src/record/recorder.js';
import { Session } from '../../src/record/session.js';
import { Samples } from '../../src/sample/samples.js';
import { Clock } from '../../src/send/clock.js';
import { Outbox } from '../../src/send/outbox.js';
import { Totals } from '../../src/send/totals.js';
import { Dictionary } from '../../src/wire/dictionary.js';
import { Decoder } from './decode.js';

export class Lines {
  constructor() {
    this.lines = [];
  }

  say(line) {
    this.lines.push(line);
  }

  sayOnce(subject, line) {
    this.lines.push(line);
  }

  detail() {}
}

/** @param {{ queue?: number, pending?: number, session?: string }} [limits] */
export function parts({ queue = 2 ** 24, pending = 2 ** 24, session: bytes } = {}) {
  const session = bytes === undefined ? Session.draw() : new Session(Buffer.from(bytes, 'hex'));
  const dictionary = new Dictionary();
  const clock = new Clock();
  const totals = new Totals();
  const log = new Lines();
  const outbox = new Outbox({ dictionary, clock, bytesMax: queue, wake: () => {} });
  const wake = () => {};
  const recorder = new Recorder({ session, dictionary, outbox, clock, totals, thread: 'main', pendingMax: pending, wake, log });
  const samples = new Samples({ dictionary, outbox, clock, totals, common: { service: 's' }, log });
  const decoded = () => {
    recorder.sweep(true);
    outbox.close();
    const decoder = new Decoder(session);
    for (let sent = 0; sent < dictionary.size();) {
      const { frame, end } = dictionary.frame(sent, dictionary.size());
      decoder.take(Buffer.from(frame));
      sent = end;
    }
    for (const { frame } of outbox.frames) decoder.take(frame);
    return decoder;
  };
  return { session, dictionary, clock, totals, log, outbox, recorder, samples, decoded };
}

/** A generator of numbers below `n`, deterministic for a seed (mulberry32). */
export function random(seed) {
  let state = seed;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  };
}
