// Puts samples and entries into the queue. Labels get an id once; every series has service, host and instance. Before:
// `sampler.js`, `../index.js`. After: `../send/outbox.js`.

import { Buffer } from 'node:buffer';
import { now } from '../send/clock.js';
import {
  ENTRY_BYTES_MAX,
  LABELS_BYTES_MAX,
  LABELS_MAX,
  LABEL_NAME_BYTES_MAX,
  LABEL_VALUE_BYTES_MAX,
  TAG,
  VALUE,
} from '../wire/constants.js';
import { entry, sampleValue, samplesHead } from '../wire/records.js';

/** @typedef {string | Record<string, unknown>} Labels the name, or all labels with `__name__` */

/** Limit on cached label sets: as many as the dictionary accepts. */
const KNOWN_MAX = 16_384;

export class Samples {
  /**
   * @param {object} parts
   * @param {import('../wire/dictionary.js').Dictionary} parts.dictionary
   * @param {import('../send/outbox.js').Outbox} parts.outbox
   * @param {import('../send/clock.js').Clock} parts.clock
   * @param {import('../send/totals.js').Totals} parts.totals
   * @param {Record<string, string>} parts.common labels of every series
   * @param {import('../log.js').Log} parts.log
   */
  constructor({ dictionary, outbox, clock, totals, common, log }) {
    this.dictionary = dictionary;
    this.outbox = outbox;
    this.clock = clock;
    this.totals = totals;
    this.common = common;
    this.log = log;
    /** @type {Map<string, number>} */
    this.known = new Map();
  }

  /**
   * @param {Labels} labels
   * @param {number | bigint} value a bigint is sent as an integer of 64 bits
   */
  sample(labels, value) {
    const whole = typeof value === 'bigint';
    if (!whole && typeof value !== 'number') {
      this.totals.samplesDropped++;
      this.log.sayOnce('sample value', `a sample's value must be a number, not ${typeof value}: ${describe(labels)}`);
      return;
    }
    this.#write(labels, whole ? VALUE.I64 : VALUE.F64, value);
  }

  /**
   * A count, sent as an integer.
   * @param {Labels} labels
   * @param {number} value
   */
  count(labels, value) {
    this.#write(labels, VALUE.I64, value);
  }

  /** @param {Labels} labels @param {number} type @param {number | bigint} value */
  #write(labels, type, value) {
    let isSent = false;
    try {
      const id = this.outbox.isFull() ? 0 : this.#series(labels);
      if (id !== 0) {
        const at = now() + this.clock.skew;
        const out = this.outbox.begin(at);
        sampleValue(samplesHead(out, type, id, 1).zigzag(at - this.outbox.base), type, value);
        this.outbox.end(TAG.SAMPLES, 0, 1, 0);
        isSent = true;
      }
    } finally {
      this.totals[isSent ? 'samplesSent' : 'samplesDropped']++; // also if the program's stack overflows
    }
  }

  /**
   * @param {Labels} labels
   * @param {string} text
   */
  entry(labels, text) {
    let isSent = false;
    try {
      const id = this.outbox.isFull() ? 0 : this.#series(labels);
      if (id !== 0) {
        const at = now() + this.clock.skew;
        entry(this.outbox.begin(at), id, at - this.outbox.base, String(text), ENTRY_BYTES_MAX);
        this.outbox.end(TAG.ENTRY, 0, 0, 1);
        isSent = true;
      }
    } finally {
      this.totals[isSent ? 'entriesSent' : 'entriesDropped']++;
    }
  }

  /** @param {Labels} labels @returns {number} 0 if the labels are not valid or there are too many series */
  #series(labels) {
    const key = typeof labels === 'string' ? labels : JSON.stringify(labels);
    const known = this.known.get(key);
    if (known !== undefined) {
      return known;
    }
    const own = typeof labels === 'string' ? { __name__: labels } : labels;
    /** @type {[string, string][]} */
    const pairs = Object.entries({ ...this.common, ...own }).map(([name, value]) => [name, String(value)]);
    const fault = faultOf(pairs);
    if (fault !== null) {
      this.log.sayOnce(`series ${fault}`, `a series was dropped: ${fault} (${describe(labels)})`);
    }
    const id = fault === null ? this.dictionary.series(pairs) : 0;
    if (this.known.size < KNOWN_MAX) {
      this.known.set(key, id);
    }
    return id;
  }
}

/** @param {[string, string][]} pairs @returns {string | null} */
function faultOf(pairs) {
  if (pairs.length > LABELS_MAX) {
    return `${pairs.length} labels, at most ${LABELS_MAX} are allowed`;
  }
  if (!pairs.some(([name, value]) => name === '__name__' && value !== '')) {
    return 'no __name__';
  }
  let bytes = 0;
  for (const [name, value] of pairs) {
    if (name === '' || Buffer.byteLength(name) > LABEL_NAME_BYTES_MAX) {
      return `a label's name must have 1 to ${LABEL_NAME_BYTES_MAX} bytes`;
    }
    if (Buffer.byteLength(value) > LABEL_VALUE_BYTES_MAX) {
      return `a label's value may have at most ${LABEL_VALUE_BYTES_MAX} bytes`;
    }
    // The limit counts names, values, and two bytes per label. A label with an empty value is no label.
    bytes += value === '' ? 0 : Buffer.byteLength(name) + Buffer.byteLength(value) + 2;
  }
  if (bytes > LABELS_BYTES_MAX) {
    return `labels of ${bytes} bytes, at most ${LABELS_BYTES_MAX} are allowed for one series`;
  }
  return null;
}

/** @param {Labels} labels */
function describe(labels) {
  return JSON.stringify(labels)?.slice(0, 200);
}
