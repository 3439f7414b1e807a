// The client follows the protocol: greeting, numbers, acknowledgements, repetition, waiting, refusals.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { Link } from '../src/send/link.js';
import { Outage } from '../src/send/outage.js';
import { Protocol, Refused } from '../src/send/protocol.js';
import { Bytes } from '../src/wire/bytes.js';
import { FRAME } from '../src/wire/constants.js';
import { FrameReader, beginFrame, finishFrame } from '../src/wire/frame.js';
import { Damaged } from '../src/wire/reader.js';
import { parts } from './support/parts.js';
import { until } from './support/tacho.js';

const NAMES = Object.fromEntries(Object.entries(FRAME).map(([name, type]) => [type, name]));

function frame(type, write = (out) => out) {
  return finishFrame(write(beginFrame(new Bytes(64))), FRAME[type]).copy();
}

const welcome = (acked, heartbeat = 5_000) =>
  frame('WELCOME', (out) => out.u8(1).varint(acked).varint(4_194_304).varint(heartbeat));
const ack = (seq) => frame('ACK', (out) => out.varint(seq));
const error = (code) => frame('ERROR', (out) => out.varint(code).string('because'));

function conversation(limits) {
  const all = parts(limits);
  const { session, outbox, dictionary, totals, log } = all;
  const protocol = new Protocol({ session: session.bytes, pairs: [['service', 's']], outbox, dictionary, totals, log });
  /** The types of the frames that the protocol sends at the time `now`. A DATA frame also has its number. */
  const said = (now, bytesMax = 2 ** 20) => {
    const reader = new FrameReader();
    for (let chunk = protocol.next(now, bytesMax); chunk !== null; chunk = protocol.next(now, bytesMax)) reader.push(chunk);
    const found = [];
    for (let next = reader.next(); next !== null; next = reader.next()) {
      found.push(next.type === FRAME.DATA ? `DATA ${next.body.varint()}` : NAMES[next.type]);
    }
    return found;
  };
  const call = (name) => {
    all.recorder.exit(all.recorder.enter(undefined, dictionary.operation(1, name)));
    outbox.close();
  };
  return { ...all, protocol, said, call };
}

test('a connection begins with HELLO, and the agent sends nothing else until WELCOME', () => {
  const { protocol, said, call } = conversation();
  call('a');
  assert.deepEqual(said(0), []);
  protocol.connected(0);
  assert.deepEqual(said(0), ['HELLO']);
  assert.deepEqual(said(1), []);
  protocol.take(welcome(0), 2);
  assert.deepEqual(said(2), ['PING', 'DICT', 'DATA 1']);
});

test('definitions are sent before the frame that needs them, once per connection', () => {
  const { protocol, said, call } = conversation();
  protocol.connected(0);
  protocol.take(welcome(0), 0);
  call('a');
  assert.deepEqual(said(0), ['HELLO', 'PING', 'DICT', 'DATA 1']);
  call('a');
  assert.deepEqual(said(1), ['DATA 2']);
  call('b');
  assert.deepEqual(said(2), ['DICT', 'DATA 3']);
});

test('frames stay until they are acknowledged, and are sent again after a reconnect', () => {
  const { protocol, said, call, outbox } = conversation();
  protocol.connected(0);
  protocol.take(welcome(0), 0);
  for (const name of ['a', 'b', 'c', 'd']) call(name);
  said(0);
  protocol.take(ack(2), 1);
  assert.equal(outbox.frames.length, 2);
  protocol.closed();
  call('e');
  protocol.connected(2);
  assert.deepEqual(said(2), ['HELLO']);
  protocol.take(welcome(3), 3);
  assert.deepEqual(said(3), ['PING', 'DICT', 'DATA 4', 'DICT', 'DATA 5']);
  protocol.take(ack(4), 4);
  protocol.take(ack(4), 4);
  protocol.take(ack(5), 5);
  assert.ok(outbox.isAcknowledged());
  assert.equal(outbox.bytes, 0);
  call('a');
  assert.deepEqual(said(6), ['DATA 6']);
});

test('bytes of the server may arrive in pieces of any size', () => {
  const { protocol, said, call, outbox } = conversation();
  protocol.connected(0);
  call('a');
  for (const byte of welcome(0)) protocol.take(Buffer.from([byte]), 1);
  said(1);
  for (const byte of ack(1)) protocol.take(Buffer.from([byte]), 2);
  assert.ok(outbox.isAcknowledged());
});

test('PING is sent at each heartbeat, and sooner after dropped calls', () => {
  const { protocol, said, totals } = conversation();
  protocol.connected(0);
  protocol.take(welcome(0, 1_000), 0);
  said(0);
  assert.deepEqual(said(999), []);
  assert.deepEqual(said(1_000), ['PING']);
  totals.callsDropped = 7;
  assert.deepEqual(said(1_100), []);
  assert.deepEqual(said(1_201), ['PING']);
  assert.deepEqual(said(1_500), []);
});

test('WAIT stops DATA, not PING', () => {
  const { protocol, said, call, log } = conversation();
  protocol.connected(0);
  protocol.take(welcome(0, 1_000), 0);
  said(0);
  protocol.take(
    frame('WAIT', (out) => out.varint(60_000)),
    0,
  );
  call('a');
  assert.deepEqual(said(1_000), ['PING']);
  assert.equal(protocol.silence(59_000), null);
  assert.deepEqual(said(60_000), ['PING', 'DICT', 'DATA 1']);
  assert.match(log.lines.join(), /asked to wait/);
});

test('after WAIT the server may be silent, even if another frame follows', () => {
  const { protocol } = conversation();
  protocol.connected(0);
  protocol.take(welcome(0, 1_000), 0);
  protocol.take(
    frame('WAIT', (out) => out.varint(60_000)),
    0,
  );
  protocol.take(
    frame('ACK', (out) => out.varint(0)),
    10,
  );
  assert.equal(protocol.silence(63_000), null);
  assert.match(protocol.silence(63_001) ?? '', /has not answered for 3000 ms/);
});

test('REJECT is counted and logged', () => {
  const { protocol, totals, log } = conversation();
  protocol.connected(0);
  protocol.take(welcome(0), 0);
  protocol.take(
    frame('REJECT', (out) => out.varint(7).varint(2).string('series 9 is not defined')),
    0,
  );
  assert.equal(totals.rejected, 1);
  assert.match(log.lines.join(), /frame 7, record 2.*series 9 is not defined/);
});

const CODES = [
  [1, 1_000, true],
  [2, 60_000, true],
  [3, 1_000, false],
  [4, 1_000, false],
  [5, 1_000, false],
  [6, 60_000, true],
  [7, 1_000, true],
  [8, 1_000, true],
  [9, 1_000, true],
  [77, 60_000, true],
];
for (const [code, pauseMs, isKept] of CODES) {
  test(`after ERROR ${code} the agent pauses for ${pauseMs} ms, and ${isKept ? 'keeps' : 'drops'} its frames`, () => {
    const { protocol, call, outbox, totals } = conversation();
    call('a');
    protocol.connected(0);
    assert.throws(
      () => protocol.take(error(code), 0),
      (thrown) => thrown instanceof Refused && thrown.pauseMs === pauseMs && /because/.test(thrown.message),
    );
    assert.equal(outbox.frames.length, isKept ? 1 : 0);
    assert.equal(totals.callsDropped, isKept ? 0 : 1);
  });
}

test('a server of another protocol is detected', () => {
  const { protocol } = conversation();
  protocol.connected(0);
  assert.throws(() => protocol.take(Buffer.from('SSH-2.0-OpenSSH_9.9\r\n'), 0), Damaged);
  protocol.closed();
  protocol.connected(0);
  assert.throws(() => protocol.take(Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), 0), { message: /answers with HTTP/ });
  protocol.closed();
  protocol.connected(0);
  assert.throws(() => protocol.take(ack(1), 0), { message: /came before WELCOME/ });
});

test('a frame of a later version is skipped', () => {
  const { protocol } = conversation();
  protocol.connected(0);
  protocol.take(welcome(0), 0);
  const later = beginFrame(new Bytes(64)).raw(Buffer.from('news'));
  protocol.take(finishFrame(later, 99).copy(), 0);
  assert.equal(protocol.state, 'open');
});

test('silence is detected', () => {
  const { protocol } = conversation();
  assert.equal(protocol.silence(1e9), null);
  protocol.connected(0);
  assert.equal(protocol.silence(5_000), null);
  assert.match(protocol.silence(5_001), /5000 ms/);
  protocol.take(welcome(0, 1_000), 5_000);
  assert.equal(protocol.silence(8_000), null);
  assert.match(protocol.silence(8_001), /3000 ms/);
});

test('the bytes for one write exceed the limit by at most one DATA frame with its definitions', () => {
  const { protocol, call } = conversation();
  protocol.connected(0);
  protocol.take(welcome(0), 0);
  for (let at = 0; at < 1_000; at++) call(`name ${at}`);
  assert.ok(protocol.next(0, 1_000).length < 20_000);
});

test('samples and entries carry the labels of the process, and invalid samples are logged', () => {
  const all = parts();
  const { samples, totals, log } = all;
  samples.sample({ __name__: 'queue', of: 'mail' }, 1.5);
  samples.sample({ __name__: 'queue', of: 'mail', service: 'other' }, 7n);
  samples.sample('name', NaN);
  samples.count('count', 2 ** 40);
  samples.entry({ __name__: 'log' }, 'hello');
  samples.entry('log', 'x'.repeat(2_000_000));
  const { samples: found, entries } = all.decoded();
  assert.deepEqual(found, [
    [{ __name__: 'queue', of: 'mail', service: 's' }, 1.5],
    [{ __name__: 'queue', of: 'mail', service: 'other' }, 7],
    [{ __name__: 'name', service: 's' }, NaN],
    [{ __name__: 'count', service: 's' }, 2 ** 40],
  ]);
  assert.equal(entries[0][3], 'hello');
  assert.equal(Buffer.byteLength(entries[1][3]), 1_048_576);
  const many = Object.fromEntries(Array.from({ length: 70 }, (_, at) => [`l${at}`, 'v']));
  const faults = [
    { of: 'mail' },
    { __name__: '' },
    { __name__: 'a', '': 'x' },
    { __name__: 'a', b: 'c'.repeat(5_000) },
    { __name__: 'a', ...many },
  ];
  for (const labels of faults) samples.sample(labels, 1);
  samples.sample('name', 'text');
  assert.equal(totals.samplesDropped, faults.length + 1);
  assert.equal(log.lines.length, faults.length + 1);
  assert.equal(totals.samplesSent, 4);
  assert.equal(totals.entriesSent, 2);
});

test('series are bounded', () => {
  const { samples, totals } = parts({ queue: 2 ** 26 });
  for (let at = 0; at < 20_000; at++) samples.sample({ __name__: 'n', at }, 1);
  assert.equal(totals.samplesSent, 16_384);
  assert.equal(totals.samplesDropped, 20_000 - 16_384);
});

/**
 * Each item: a name, events with their times in seconds, and the expected lines of the log, shortened. The event
 * `5 1 0` drops 5 calls, 1 sample and 0 entries; `looks` is a periodic check.
 */
const OUTAGES = [
  [
    'one outage',
    [
      [0, 'fails'],
      [9, 'fails'],
      [9, 'opens'],
    ],
    ['lost: at 0', 'again after 9 s; nothing was'],
  ],
  ['no outage', [[0, 'opens']], ['connected']],
  [
    'an outage at the start',
    [
      [0, 'cannot'],
      [1, '5 1 0'],
      [2, 'opens'],
      [61, 'fails'],
      [64, 'opens'],
    ],
    ['cannot: at 0', 'connected after 2 s; 5 calls, 1 samples and 0 entries were', 'lost: at 61', 'again after 3 s; nothing was'],
  ],
  [
    'a server sends WELCOME and ERROR together, and then cannot be reached',
    [
      [0, 'fails'],
      [1, 'cannot'],
      [2, 'opens'],
    ],
    ['lost: at 0', 'again after 2 s; nothing was'],
  ],
  [
    'two outages in a minute',
    [
      [0, 'fails'],
      [1, 'opens'],
      [2, '7 7 7'],
      [59, 'fails'],
      [59, '1 0 2'],
      [59, 'opens'],
      [60, '7 7 7'],
      [61, 'fails'],
      [61, '1 1 1'],
      [62, 'opens'],
    ],
    [
      'lost: at 0',
      'again after 1 s; nothing was',
      '8 calls so far',
      'lost: at 61',
      'again after 1 s; 2 calls, 1 samples and 3 entries were',
    ],
  ],
  [
    'an attempt fails again after the minute',
    [
      [0, 'fails'],
      [1, 'opens'],
      [2, 'fails'],
      [59, 'cannot'],
      [60, 'cannot'],
      [61, 'opens'],
    ],
    ['lost: at 0', 'again after 1 s; nothing was', 'lost: at 60', 'again after 59 s; nothing was'],
  ],
  [
    'outages within a minute are logged together when the minute is over',
    [
      [0, 'fails'],
      [1, 'opens'],
      [30, 'fails'],
      [30, '1 0 2'],
      [31, 'opens'],
      [32, '7 7 7'],
      [40, 'fails'],
      [41, '1 1 0'],
      [42, 'opens'],
      [59, 'looks'],
      [60, 'looks'],
      [61, 'looks'],
      [119, 'fails'],
      [119, 'opens'],
      [119, 'looks'],
      [120, 'looks'],
      [200, 'looks'],
      [200, 'ends'],
    ],
    [
      'lost: at 0',
      'again after 1 s; nothing was',
      '9 calls so far',
      'past 2 times; 2 calls, 1 samples and 2 entries were',
      'past once; nothing was', // at 120 s, a minute after the previous line about an outage
    ],
  ],
  [
    'an outage ends after the minute, and no attempt fails after the minute',
    [
      [0, 'cannot'],
      [1, 'opens'],
      [58, 'fails'],
      [59, '3 0 0'],
      [61, 'opens'],
      [62, 'looks'],
    ],
    ['cannot: at 0', 'connected after 1 s; nothing was', 'past once; 3 calls, 0 samples and 0 entries were'],
  ],
  [
    'ended outages are logged at the end of the program',
    [
      [0, 'fails'],
      [1, 'opens'],
      [2, 'fails'],
      [3, 'opens'],
      [4, 'ends'],
      [5, 'ends'],
    ],
    ['lost: at 0', 'again after 1 s; nothing was', 'past once; nothing was'],
  ],
  [
    'ended outages are not logged during another outage',
    [
      [0, 'fails'],
      [1, 'opens'],
      [2, 'fails'],
      [3, '0 0 4'],
      [4, 'opens'],
      [59, 'fails'],
      [60, 'looks'],
      [60, 'ends'],
      [61, 'fails'],
      [63, 'opens'],
      [122, 'looks'],
    ],
    ['lost: at 0', 'again after 1 s; nothing was', 'lost: at 61', 'again after 4 s; 0 calls, 0 samples and 4 entries were'],
  ],
];
for (const [name, steps, expected] of OUTAGES) {
  test(`at most one outage per minute is logged with its end, and one line counts the other ended outages: ${name}`, () => {
    const { totals, log } = parts();
    const outage = new Outage('s:1', totals, log);
    for (const [seconds, what] of steps) {
      if (what === 'opens') outage.over(seconds * 1_000);
      else if (what === 'looks') outage.look(seconds * 1_000);
      else if (what === 'ends') outage.tellPast(seconds * 1_000);
      else if (what === 'fails' || what === 'cannot') outage.failed(seconds * 1_000, what === 'fails', `at ${seconds}`);
      else {
        const [calls, samples, entries] = what.split(' ').map(Number);
        totals.callsDropped += calls;
        totals.samplesDropped += samples;
        totals.entriesDropped += entries;
      }
    }
    const short = (line) =>
      line
        .replace(/ calls were dropped so far, .*/, ' calls so far')
        .replace(/^(lost|cannot)[a-z ]+ s:1: (.*); the program goes on, the agent keeps trying$/, '$1: $2')
        .replace(/^connected again to s:1(.*) dropped in the meantime$/, 'again$1')
        .replace(
          /^connected to s:1 again; the connection failed (.*) since the last message about it;(.*) dropped in the meantime$/,
          'past $1;$2',
        )
        .replace(/^connected to s:1(.*?)( dropped in the meantime)?$/, 'connected$1');
    assert.deepEqual(log.lines.map(short), expected);
  });
}

test('dropped calls are logged once per minute and at the end, except those that a line about an outage contains', () => {
  const { totals, log } = parts();
  const outage = new Outage('s:1', totals, log);
  const drop = () => (totals.callsDropped += 3);
  drop();
  for (const seconds of [0, 1, 59]) outage.look(seconds * 1_000);
  drop();
  outage.look(59_000);
  outage.look(60_000);
  outage.failed(61_000, true, 'gone');
  drop();
  outage.look(140_000);
  outage.over(141_000);
  outage.look(142_000);
  drop();
  outage.drops.look(143_000, true);
  outage.drops.look(144_000, true);
  const lines = log.lines.filter((line) => line.includes('calls were')).map((line) => line.replace(/ functions.*/, ''));
  assert.equal(log.lines[0].split(', or ')[1], 'raise pending or queue');
  const why = 'calls were dropped so far, usually because a buffer was full: wrap fewer';
  assert.deepEqual(lines, [`3 ${why}`, `6 ${why}`, `12 ${why}`]);
  assert.match(log.lines[3], /3 calls, 0 samples and 0 entries were dropped in the meantime/);
});

test('refused records count as dropped in the outage', async () => {
  const { protocol, outbox, totals, log, call } = conversation();
  let isFirst = true;
  const server = createServer((socket) => {
    const answer = isFirst ? Buffer.concat([welcome(0), error(4)]) : welcome(0);
    socket.once('data', () => socket.write(answer));
    socket.on('error', () => {});
    isFirst = false;
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  call('a');
  const link = new Link({ address: { host: '127.0.0.1', port: server.address().port }, protocol, totals, log });
  try {
    link.start();
    await until('the second connection', () => totals.connects === 2);
    assert.equal(outbox.isAcknowledged(), true);
    assert.match(log.lines.at(-1), /^connected again to .*; 1 calls, 0 samples and 0 entries were dropped in the meantime$/);
  } finally {
    link.end();
    server.close();
  }
});

test('past outages are logged when the minute is over, and at the end', async () => {
  const { protocol, totals, log } = conversation();
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.write(welcome(0)));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const link = new Link({ address: { host: '127.0.0.1', port: server.address().port }, protocol, totals, log });
  const { outage } = link;
  const past = (often) =>
    `connected to ${outage.server} again; the connection failed ${often} since the last message about it; ` +
    `nothing was dropped in the meantime`;
  const away = async (connects) => {
    link.socket.destroy(new Error('gone'));
    await until(`connection ${connects}`, () => totals.connects === connects && protocol.state === 'open');
  };
  try {
    link.start();
    await until('a connection', () => totals.connects === 1 && protocol.state === 'open');
    for (const connects of [2, 3, 4]) await away(connects);
    assert.equal(log.lines.length, 3, log.lines.join('\n'));
    outage.toldAt -= 60_000;
    await until('the line', () => log.lines.length === 4);
    await away(5);
    link.end();
    assert.deepEqual(log.lines.slice(3), [past('2 times'), past('once')]);
  } finally {
    link.end();
    server.close();
  }
});
