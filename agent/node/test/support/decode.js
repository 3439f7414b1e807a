// A decoder of DICT and DATA frames. It fails for undefined operations, ids with two meanings, exits without an open call,
// attributes of missing calls, and parts that contradict earlier parts. Unlike the server, it does not check limits.

import { FrameReader } from '../../src/wire/frame.js';

/** The fields of a frame or record, read in order. */
class Fields {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  get isAtEnd() {
    return this.at === this.bytes.length;
  }

  u8() {
    if (this.isAtEnd) throw new Error('beyond the end');
    return this.bytes[this.at++];
  }

  varint() {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.u8();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  }

  zigzag() {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  raw(count) {
    if (this.at + count > this.bytes.length) throw new Error('beyond the end');
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  text() {
    return this.raw(this.varint()).toString('utf8');
  }

  i64() {
    return this.raw(8).readBigInt64LE();
  }
}

export class Decoder {
  /** @param {import('../../src/record/session.js').Session} session */
  constructor(session) {
    this.session = session;
    this.texts = new Map();
    this.operations = new Map();
    this.series = new Map();
    /** State of each call, by segment and number. */
    this.calls = new Map();
    this.samples = [];
    this.entries = [];
    this.parts = [];
  }

  /** @param {Buffer} bytes whole frames */
  take(bytes) {
    const reader = new FrameReader();
    reader.push(bytes);
    for (let frame = reader.next(); frame !== null; frame = reader.next()) {
      const fields = new Fields(frame.body.body);
      if (frame.type === 2) this.#dict(fields);
      if (frame.type === 3) this.#data(fields);
    }
    return this;
  }

  #dict(fields) {
    while (!fields.isAtEnd) {
      const what = fields.u8();
      const id = fields.varint();
      if (what === 1) this.#define(this.texts, id, fields.text());
      if (what === 2) this.#define(this.operations, id, { kind: fields.u8(), name: fields.text() });
      if (what === 3)
        this.#define(
          this.series,
          id,
          Object.fromEntries(Array.from({ length: fields.varint() }, () => [fields.text(), fields.text()])),
        );
    }
  }

  #define(map, id, meaning) {
    if (map.has(id)) throw new Error(`id ${id} is defined twice: ${JSON.stringify([map.get(id), meaning])}`);
    map.set(id, meaning);
  }

  #data(fields) {
    fields.varint();
    const base = fields.i64();
    while (!fields.isAtEnd) {
      const tag = fields.u8();
      const record = new Fields(fields.raw(fields.varint()));
      if (tag === 1) this.#samples(record);
      if (tag === 2) this.entries.push([this.series.get(record.varint()), record.zigzag(), record.u8(), record.text()]);
      if (tag === 3) this.#segment(record, base);
      if (!record.isAtEnd) throw new Error(`record ${tag} is longer than its fields`);
    }
  }

  #samples(record) {
    const type = record.u8();
    const series = this.series.get(record.varint());
    for (let left = record.varint(); left > 0; left--) {
      record.zigzag();
      this.samples.push([series, type === 1 ? record.raw(8).readDoubleLE() : record.zigzag()]);
    }
  }

  #segment(record, base) {
    const flags = record.u8();
    const segment = record.varint();
    let trace = this.session.trace(segment).toString('hex');
    if (flags & 4) trace = record.raw(16).toString('hex');
    if (flags & 8) trace = this.session.trace(record.varint()).toString('hex');
    const thread = this.texts.get(record.varint());
    const start = base + BigInt(record.zigzag());
    const parent = flags & 2 ? record.raw(8).toString('hex') : null;
    const open = [];
    let part = 0;
    let next = 0;
    if (flags & 1) {
      part = record.varint();
      next = record.varint();
      for (let left = record.varint(); left > 0; left--) {
        const operation = record.varint();
        const number = record.varint();
        const begin = start - BigInt(record.varint());
        open.push(this.#carried({ segment, number, operation, trace, thread, begin, parent: open.at(-1)?.span ?? parent }));
      }
    }
    this.parts.push({ segment, part });
    this.#events(record, start, { segment, trace, thread, parent, open, next });
    if (flags & 16) this.#attributes(record, segment);
  }

  #events(record, start, { segment, trace, thread, parent, open, next }) {
    let now = start;
    for (let left = record.varint(); left > 0; left--) {
      const step = record.varint();
      now += BigInt(Math.floor(step / 2));
      const operation = step % 2 === 1 ? record.varint() : 0;
      if (operation !== 0) {
        const begin = now;
        open.push(
          this.#carried({ segment, number: next++, operation, trace, thread, begin, parent: open.at(-1)?.span ?? parent }),
        );
      } else {
        const call = open.pop();
        if (call === undefined) throw new Error('an exit without an open call');
        if (call.end !== null) throw new Error('a call that ends twice');
        call.end = now;
        call.failed = step % 2 === 1;
      }
    }
  }

  /**
   * Notes a call that is entered, or carried (open since an earlier part). All descriptions of one call must agree, except for
   * its name.
   */
  #carried({ segment, number, operation, trace, thread, begin, parent }) {
    const key = `${segment}/${number}`;
    const known = this.calls.get(key);
    const { high, low } = this.session.span(segment, number);
    const span = high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
    const found = { span, trace, thread, parent, begin, ...this.operations.get(operation) };
    if (found.name === undefined) throw new Error(`operation ${operation} is not defined`);
    if (known === undefined) {
      this.calls.set(key, { ...found, end: null, failed: false, attributes: {} });
    } else {
      for (const [name, value] of Object.entries(found)) {
        // The name of a request may be known late, so the name in the last part is used.
        if (known[name] !== value && name !== 'name') throw new Error(`call ${key}: ${name} was ${known[name]}, is ${value}`);
      }
      known.name = found.name;
    }
    return this.calls.get(key);
  }

  #attributes(record, segment) {
    for (let left = record.varint(); left > 0; left--) {
      const call = this.calls.get(`${segment}/${record.varint()}`);
      if (call === undefined) throw new Error('an attribute of a missing call');
      const key = this.texts.get(record.varint());
      const form = record.u8();
      const forms = [
        () => this.texts.get(record.varint()),
        () => record.text(),
        () => record.raw(16).toString('hex'),
        () => record.zigzag(),
      ];
      call.attributes[key] = forms[form]();
    }
  }
}
