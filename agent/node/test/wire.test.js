// Encoding and decoding of the protocol: the vectors of testdata/wire, shared with the other agents and the Rust code, and the
// limits of each type.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from '../src/record/session.js';
import { Bytes } from '../src/wire/bytes.js';
import { ATTRIBUTE_BYTES_MAX, FORM, FRAME, TAG } from '../src/wire/constants.js';
import { crc32c } from '../src/wire/crc32c.js';
import { Dictionary, OTHER, defineOperation, defineSeries, defineText } from '../src/wire/dictionary.js';
import { FrameReader, beginFrame, byeFrame, finishFrame, helloFrame, pingFrame } from '../src/wire/frame.js';
import { probedFrame, readProbes } from '../src/wire/probes.js';
import { entry, sampleValue, samplesHead } from '../src/wire/records.js';
import { SegmentPart } from '../src/wire/segment.js';
import { vectors } from './support/vectors.js';

/** A number if it is exact, else a bigint. */
const number = (text) => (Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text));
/** The value of the first line with this key. */
const value = (lines, key) => lines.find(([name]) => name === key)?.[1];
const all = (lines, key) => lines.filter(([name]) => name === key).map(([, text]) => text);
const split = (text, at) => [text.slice(0, text.indexOf(at)), text.slice(text.indexOf(at) + 1)];

const ENCODERS = {
  HELLO: (lines) => {
    const session = Buffer.from(value(lines, 'session'), 'hex');
    const secret = all(lines, 'secret').map((hex) => Buffer.from(hex, 'hex'))[0] ?? null;
    if (secret !== null) {
      assert.deepEqual(Session.of(secret).bytes, session);
    }
    const pairs = all(lines, 'pair').map((pair) => split(pair, '='));
    const token = all(lines, 'token').map((text) => Buffer.from(text))[0] ?? null;
    return helloFrame(session, pairs, { versionMax: number(value(lines, 'version_max')), secret, token });
  },
  PING: (lines) =>
    pingFrame(
      ...['executions_dropped', 'samples_dropped', 'entries_dropped', 'bytes_buffered'].map((key) => number(value(lines, key))),
    ),
  BYE: () => byeFrame(),
  PROBED: (lines) => {
    const [revision, on, aggregated, off] = ['revision', 'on', 'aggregated', 'off'].map((key) => number(value(lines, key)));
    const rules = all(lines, 'rule').map((rule) => {
      const [, matched, ...fault] = rule.split(' ');
      return { matched: number(matched), fault: fault.join(' ') };
    });
    const [reasons, times] = ['reason', 'since'].map((key) => all(lines, key));
    const moved = all(lines, 'moved').map((operation, at) => ({ operation, reason: reasons[at], since: BigInt(times[at]) }));
    return probedFrame({ revision, on, aggregated, off, rules, moved });
  },
  DICT: (lines) => {
    const out = beginFrame(new Bytes(16));
    lines.forEach(([key, text], at) => {
      if (key !== 'define') return;
      const [what, id, ...rest] = text.split(' ');
      if (what === 'text') defineText(out, number(id), rest.join(' '));
      if (what === 'operation') defineOperation(out, number(id), number(rest[0]), rest.slice(1).join(' '));
      if (what === 'series') {
        const next = lines.findIndex(([name], later) => later > at && name === 'define');
        const labels = all(lines.slice(at, next < 0 ? undefined : next), 'label');
        defineSeries(
          out,
          number(id),
          labels.map((label) => split(label, '=')),
        );
      }
    });
    return finishFrame(out, FRAME.DICT).copy();
  },
  DATA: (lines) => {
    const out = beginFrame(new Bytes(16))
      .varint(number(value(lines, 'seq')))
      .u64(BigInt(value(lines, 'base')));
    const starts = lines.flatMap(([key], at) => (key === 'record' ? [at] : []));
    starts.forEach((from, at) => {
      const record = lines.slice(from, starts[at + 1]);
      const body = new Bytes(4);
      RECORDS[value(record, 'record')](body, record);
      out.u8({ samples: TAG.SAMPLES, entry: TAG.ENTRY, segment: TAG.SEGMENT }[value(record, 'record')]);
      out.varint(body.size).append(body);
    });
    return finishFrame(out, FRAME.DATA).copy();
  },
};

const RECORDS = {
  samples: (out, lines) => {
    const samples = all(lines, 'sample').map((sample) => sample.split(' '));
    const type = number(value(lines, 'type'));
    samplesHead(out, type, number(value(lines, 'series')), samples.length);
    for (const [dt, text] of samples) {
      sampleValue(out.zigzag(number(dt)), type, type === 1 ? Buffer.from(text, 'hex').readDoubleBE() : number(text));
    }
  },
  entry: (out, lines) => {
    const text = value(lines, 'text');
    const body = text ?? Buffer.from(value(lines, 'bytes'), 'hex');
    entry(out, number(value(lines, 'series')), number(value(lines, 'dt')), body, 1_000);
  },
  segment: (out, lines) => {
    const part = new SegmentPart();
    for (const carried of all(lines, 'carried')) part.carry(...carried.split(' ').map(number));
    for (const event of all(lines, 'event')) {
      const [what, dt, operation] = event.split(' ');
      part[what](Number(dt), Number(operation));
    }
    for (const attribute of all(lines, 'attribute')) {
      const [call, key, form, ...rest] = attribute.split(' ');
      const text = rest.join(' ');
      if (form === 'integer') part.attributeInteger(number(call), number(key), number(text));
      else part.attributeText(number(call), number(key), text, form === 'text' ? number(text) : 0);
    }
    const parent = value(lines, 'parent');
    const trace = value(lines, 'trace');
    const head = {
      number: number(value(lines, 'number')),
      parent: parent === undefined ? null : { high: parseInt(parent.slice(0, 8), 16), low: parseInt(parent.slice(8), 16) },
      trace: trace === undefined ? null : Buffer.from(trace, 'hex'),
      traceOf: number(value(lines, 'trace_of') ?? 0),
      part: number(value(lines, 'part') ?? 0),
      firstCall: number(value(lines, 'first_call') ?? 0),
      thread: number(value(lines, 'thread')),
    };
    part.write(head, number(value(lines, 'start')), out);
  },
};

const DECODERS = {
  WELCOME: (body) => [
    ['version', body.u8()],
    ['acked', body.varint()],
    ['frame_body_bytes_max', body.varint()],
    ['heartbeat_ms', body.varint()],
  ],
  ACK: (body) => [['seq', body.varint()]],
  REJECT: (body) => [
    ['seq', body.varint()],
    ['record', body.varint()],
    ['reason', body.string()],
  ],
  WAIT: (body) => [['ms', body.varint()]],
  PONG: (body) => [['time', body.i64()]],
  PROBES: (body) => {
    const { revision, rules } = readProbes(body);
    return [['revision', revision], ...rules.map(({ state, pattern }) => ['rule', `${state} ${pattern}`])];
  },
  ERROR: (body) => [
    ['code', body.varint()],
    ['message', body.string()],
  ],
};

const VECTORS = ['control.vec', 'token.vec', 'data.vec', 'probes.vec'].flatMap((file) => vectors(file));
for (const { name, lines, hex } of VECTORS) {
  const type = value(lines, 'frame');
  test(`vector ${name} is ${type in ENCODERS ? 'encoded' : 'decoded'}`, () => {
    if (type in ENCODERS) {
      assert.equal(ENCODERS[type](lines).toString('hex'), hex);
    } else {
      const reader = new FrameReader();
      for (const byte of Buffer.from(hex, 'hex')) reader.push(Buffer.from([byte]));
      const frame = reader.next();
      assert.equal(frame.type, FRAME[type]);
      const fields = DECODERS[type](frame.body).map(([key, field]) => [key, String(field)]);
      assert.deepEqual([['frame', type], ...fields], lines);
    }
    const session = value(lines, 'session');
    if (type === 'DATA' && session !== undefined) {
      const ids = new Session(Buffer.from(session, 'hex'));
      const own = (half) => half.high.toString(16).padStart(8, '0') + half.low.toString(16).padStart(8, '0');
      const segment = number(value(lines, 'number'));
      const traceOf = value(lines, 'trace_of');
      const trace = value(lines, 'trace') ?? ids.trace(traceOf === undefined ? segment : number(traceOf)).toString('hex');
      assert.equal(trace, value(lines, 'trace_id'));
      for (const span of all(lines, 'span')) {
        assert.equal(`${span.split(' ')[0]} ${own(ids.span(segment, number(span.split(' ')[0])))}`, span);
      }
    }
  });
}

test('vectors exist for every frame', () => {
  const seen = new Set(VECTORS.map(({ lines }) => value(lines, 'frame')));
  assert.deepEqual([...seen].sort(), Object.keys(FRAME).sort());
});

test('span ids are those of 64 bit arithmetic', () => {
  const mask = (1n << 64n) - 1n;
  const mix64 = (n) => {
    n = ((n ^ (n >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    n = ((n ^ (n >> 27n)) * 0x94d049bb133111ebn) & mask;
    return n ^ (n >> 31n);
  };
  const numbers = [0, 1, 255, 256, 65_535, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 12_345, 2 ** 53 - 1];
  const calls = [0, 1, 4_711, 2 ** 24 - 1];
  for (const low of ['0000000000000000', 'ffffffffffffffff', 'fffffffffffffffe', '8796a5b4c3d2e1f0', '00000000ffffffff']) {
    const session = new Session(Buffer.from(`0f1e2d3c4b5a6978${low}`, 'hex'));
    for (const segment of numbers) {
      for (const call of calls) {
        const expected = mix64((BigInt(`0x${low}`) + (BigInt(segment) << 24n) + BigInt(call)) & mask);
        const { high, low: lower } = session.span(segment, call);
        assert.equal((BigInt(high) << 32n) | BigInt(lower), expected, `${low} ${segment} ${call}`);
      }
    }
  }
});

const CHECKSUMS = [
  ['123456789', 0xe3069283],
  ['', 0],
  ['\0'.repeat(32), 0x8a9136aa],
  ['a', 0xc1d04330],
];
for (const [text, sum] of CHECKSUMS) {
  test(`crc32c of ${JSON.stringify(text)} is 0x${sum.toString(16)}`, () => {
    const bytes = Buffer.from(text, 'latin1');
    assert.equal(crc32c(bytes, 0, bytes.length), sum);
    const half = bytes.length >> 1;
    assert.equal(crc32c(bytes, half, bytes.length, crc32c(bytes, 0, half)), sum);
  });
}

const PRIMITIVES = [
  ['varint', 0, '00'],
  ['varint', 127, '7f'],
  ['varint', 128, '8001'],
  ['varint', 2 ** 31 - 1, 'ffffffff07'],
  ['varint', 2 ** 31, '8080808008'],
  ['varint', 2 ** 32, '8080808010'],
  ['varint', 2 ** 53 - 1, 'ffffffffffffff0f'],
  ['varint', 2n ** 64n - 1n, 'ffffffffffffffffff01'],
  ['zigzag', 0, '00'],
  ['zigzag', -1, '01'],
  ['zigzag', 1, '02'],
  ['zigzag', -(2 ** 31), 'ffffffff0f'],
  ['zigzag', 2 ** 52, '8080808080808010'],
  ['zigzag', 2 ** 53, '8080808080808020'],
  ['zigzag', -(2 ** 53), 'ffffffffffffff1f'],
  ['zigzag', -(2n ** 63n), 'ffffffffffffffffff01'],
  ['u64', -1n, 'ffffffffffffffff'],
];
for (const [kind, given, hex] of PRIMITIVES) {
  test(`${kind} of ${given} is ${hex}`, () => assert.equal(new Bytes(1)[kind](given).view().toString('hex'), hex));
}

test('the fast path of events writes the same bytes as the general case', () => {
  const edges = [0, 1, 63, 64, 2 ** 13, 2 ** 20, 2 ** 27 - 1, 2 ** 27, 2 ** 31, 2 ** 40, 2 ** 52];
  for (const dt of edges) {
    for (const operation of [1, 127, 128, 65_536]) {
      const part = new SegmentPart();
      part.enter(dt, operation);
      part.exit(dt);
      part.failed(dt);
      const wide = BigInt(dt) * 2n;
      const expected = new Bytes(64)
        .varint(wide + 1n)
        .varint(operation)
        .varint(wide)
        .varint(wide + 1n)
        .varint(0);
      assert.deepEqual(part.events.view(), expected.view(), `${dt} ${operation}`);
    }
  }
});

const CUTS = [
  ['short', 10, 'short'],
  ['0123456789', 10, '0123456789'],
  ['0123456789a', 10, '0123456…'],
  ['ääääää', 12, 'ääääää'],
  ['äääääää', 12, 'ääää…'],
  ['漢漢漢漢漢', 12, '漢漢漢…'],
  ['🚀🚀🚀🚀', 12, '🚀🚀…'],
  ['a🚀🚀🚀🚀', 12, 'a🚀🚀…'],
];
for (const [text, bytesMax, expected] of CUTS) {
  test(`${text} is cut to ${bytesMax} bytes`, () => {
    const bytes = new Bytes(4).stringCut(text, bytesMax).view();
    assert.equal(bytes.toString('utf8', 1), expected);
    assert.equal(bytes[0], bytes.length - 1);
    assert.ok(bytes[0] <= bytesMax);
  });
}

test('a lone surrogate becomes valid UTF-8', () => {
  const bytes = new Bytes(4).string('a\ud83db').view().subarray(1);
  assert.equal(new TextDecoder('utf8', { fatal: true }).decode(bytes), 'a\ufffdb');
});

const DAMAGED = [
  ['a length past the limit', Buffer.from('0100400003000000' + '00000000', 'hex'), /4194305 bytes/],
  ['a wrong checksum', Buffer.from('00000000050000000029f4c1', 'hex'), /checksum mismatch/],
  ['the greeting of an SSH server', Buffer.from('SSH-2.0-OpenSSH_9.2p1\r\n'), /frame of \d+ bytes/],
  ['a response of HTTP', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), /answers with HTTP/],
];
for (const [what, bytes, message] of DAMAGED) {
  test(`${what} is invalid`, () => {
    const reader = new FrameReader();
    reader.push(bytes);
    assert.throws(() => reader.next(), { message });
  });
}

const SHORT = [
  ['varint', '80', /beyond the end/],
  ['varint', 'ffffffffffffffffffff01', /more than 64 bits/],
  ['string', '05616263', /beyond the end/],
  ['i64', '00', /beyond the end/],
];
for (const [kind, hex, message] of SHORT) {
  test(`${kind} of ${hex} is invalid`, () => {
    const out = beginFrame(new Bytes(32)).raw(Buffer.from(hex, 'hex'));
    const reader = new FrameReader();
    reader.push(finishFrame(out, FRAME.ACK).copy());
    const { body } = reader.next();
    assert.throws(() => body[kind](), { message });
  });
}

test('an id is assigned once, and names past the bound get the id of (other)', () => {
  const dictionary = new Dictionary({ methods: 10 });
  const first = dictionary.operation(1, 'a');
  assert.equal(dictionary.operation(1, 'a'), first);
  assert.notEqual(dictionary.operation(2, 'a'), first);
  const ids = Array.from({ length: 100 }, (_, at) => dictionary.operation(1, `name ${at}`));
  assert.equal(new Set(ids).size, 10 - 1); // the ten ids include `(other)` and `a`; all further names get the id of `(other)`
  assert.equal(ids[99], dictionary.operation(1, OTHER));
  assert.notEqual(ids[99], dictionary.operation(4, 'select 1'));
});

test('the names of all kinds together stay below the limits of the protocol', () => {
  const dictionary = new Dictionary();
  const statements = new Set(Array.from({ length: 10_000 }, (_, at) => dictionary.operation(4, `select ${at}`)));
  assert.equal(statements.size, 8_192);
  const methods = new Set(Array.from({ length: 70_000 }, (_, at) => dictionary.operation(1, `m${at}`)));
  assert.ok(methods.size > 24_000 && methods.size < 25_000);
  const routes = new Set(Array.from({ length: 10_000 }, (_, at) => dictionary.operation(2, `GET /${at}`)));
  assert.equal(routes.size, 8_192, 'each kind must have a bound of its own');
  for (const kind of [3, 5, 6]) for (let at = 0; at < 10_000; at++) dictionary.operation(kind, `${at}`);
  assert.ok(dictionary.operationCount <= 65_536);
  assert.ok(dictionary.size() < 16_777_216);
});

test('strings are bounded in bytes', () => {
  const dictionary = new Dictionary({ stringBytes: 100_000 });
  for (let at = 0; at < 1_000; at++) {
    dictionary.operation(1, `${at}`.padEnd(9_000, 'x'));
    dictionary.text(`${at}`.padEnd(5_000, 'y'));
    dictionary.value(`${at}`);
    dictionary.series([['__name__', `${at}`.padEnd(5_000, 'z')]]);
  }
  assert.ok(dictionary.size() < 100_000 + 30_000);
  assert.equal(dictionary.series([['__name__', 'a']]), 0);
});

test('a short value gets an id the second time', () => {
  const dictionary = new Dictionary();
  assert.equal(dictionary.value('GET'), 0);
  const id = dictionary.value('GET');
  assert.ok(id > 0);
  assert.equal(dictionary.value('GET'), id);
  const long = 'x'.repeat(65);
  assert.deepEqual([dictionary.value(long), dictionary.value(long)], [0, 0]);
});

test('a dictionary is sent in frames of some 64 KiB, complete and in order', () => {
  const dictionary = new Dictionary();
  for (let at = 0; at < 20_000; at++) dictionary.operation(1, `com.shop.Board.method${at}`);
  const bodies = [];
  for (let sent = 0; sent < dictionary.size();) {
    const { frame, end } = dictionary.frame(sent, dictionary.size());
    const reader = new FrameReader();
    reader.push(Buffer.from(frame));
    bodies.push(reader.next().body.body);
    sent = end;
  }
  assert.ok(bodies.length > 5 && bodies.every((body) => body.length < 70_000));
  assert.deepEqual(Buffer.concat(bodies), dictionary.definitions.view());
});

test('a UUID in lower case is sent as 16 bytes, and other text as a string of limited length', () => {
  const part = new SegmentPart();
  part.attributeText(0, 1, '01234567-89ab-cdef-0123-456789abcdef', 9);
  part.attributeText(0, 1, '01234567-89AB-cdef-0123-456789abcdef', 0);
  part.attributeText(0, 1, 'x'.repeat(5_000), 0);
  const bytes = part.attributes.view();
  assert.equal(bytes[2], FORM.UUID);
  assert.equal(bytes[3 + 16 + 2], FORM.STRING);
  assert.ok(bytes.subarray(-3).equals(Buffer.from('…')));
  assert.ok(bytes.length < ATTRIBUTE_BYTES_MAX + 80);
});
