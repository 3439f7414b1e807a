// The token is sent in HELLO, and nothing else contains it. The log reports an invalid or refused token without its text.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { inspect } from 'node:util';
import { load } from '../src/config.js';
import { Secret, Token, isLoopback } from '../src/secret.js';
import { Link } from '../src/send/link.js';
import { Protocol, Refused } from '../src/send/protocol.js';
import { Bytes } from '../src/wire/bytes.js';
import { FRAME } from '../src/wire/constants.js';
import { beginFrame, finishFrame } from '../src/wire/frame.js';
import { parts } from './support/parts.js';
import { until } from './support/tacho.js';

const TOKEN = `tacho_${'5eC-.~!'.repeat(9)}`;
const FORM = 'a token has 1 to 256 visible ASCII characters, no blanks and no line breaks';

const place = mkdtempSync(join(tmpdir(), 'tachograph-secret-'));
after(() => rmSync(place, { recursive: true, force: true }));

const given = (text, isInsecure = false) => new Token({ given: new Secret(text), file: '', isInsecure });
const inFile = (path) => new Token({ given: new Secret(''), file: path, isInsecure: false });

function written(content) {
  const path = join(place, 'token');
  writeFileSync(path, content, 'latin1');
  return path;
}

/** Reads the token with `readNow` and with `read`, which must give the same bytes. Returns the token as text. */
async function read(token) {
  token.readNow();
  const now = token.bytes;
  await token.read();
  assert.deepEqual(token.bytes, now);
  return now === null ? null : String(now);
}

async function fails(token, message) {
  assert.throws(() => token.readNow(), { message });
  await assert.rejects(token.read(), { message });
  assert.equal(token.bytes, null);
}

test('a token is a value, or the only line of a file', async () => {
  for (const text of ['t', TOKEN, 'x'.repeat(256)]) {
    assert.equal(await read(given(text)), text);
    for (const end of ['', '\n', '\r\n']) assert.equal(await read(inFile(written(text + end))), text);
  }
  assert.equal(await read(given('')), null);
});

test('an invalid token is refused and not shown', async () => {
  for (const text of [' ', '\n', ' 5eC', '5eC ', '5e C', '5eC\n', '5\nC', '5eC\0', '5eCä', '5'.repeat(257)]) {
    await fails(given(text), `token: ${FORM}`);
    const path = written(`${text}\n`);
    await fails(inFile(path), `token_file=${path}: ${FORM}`);
  }
  for (const content of ['', '\n', '5'.repeat(1_000_000)]) {
    const path = written(content);
    await fails(inFile(path), `token_file=${path}: ${FORM}`);
  }
});

test('files that cannot be used are named', async () => {
  const fifo = join(place, 'fifo');
  execFileSync('mkfifo', [fifo]);
  for (const path of [fifo, place, '/dev/zero']) {
    await fails(inFile(path), `token_file=${path}: it is not a regular file`);
  }
  const missing = join(place, 'missing');
  await fails(inFile(missing), `token_file=${missing}: no such file or directory`);
  const both = new Token({ given: new Secret('5eC'), file: missing, isInsecure: false });
  await fails(both, 'token and token_file are both set, set only one of them');
});

test('blanks of a token are kept, and a blank path is not ignored', async () => {
  const { token, warnings } = load({ TACHO_TOKEN: ' 5eC', TACHO_TOKEN_FILE: '' });
  assert.deepEqual([token.reveal(), warnings], [' 5eC', []]);
  const blank = load({ TACHO_TOKEN_FILE: ' ' });
  assert.equal(blank.token_file, '<blank>');
  assert.deepEqual(blank.warnings, ['TACHO_TOKEN_FILE= : expected the path of a file; using <blank>']);
});

test('an object with the token does not show it when it is printed', () => {
  const config = load({ TACHO_TOKEN: TOKEN });
  const token = new Token({ given: config.token, file: '', isInsecure: false });
  token.readNow();
  for (const one of [config, config.token, token]) {
    const texts = `${inspect(one, { depth: 9, showHidden: true })} ${JSON.stringify(one)} ${one}`;
    assert.ok(!texts.includes('5eC'), texts);
  }
});

test('only loopback addresses are addresses of this machine', () => {
  for (const address of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1']) assert.ok(isLoopback(address), address);
  for (const address of ['10.0.0.1', '::', '127.0.0.1.example', 'localhost', 'fe80::1%eth0', '::ffff:10.0.0.1']) {
    assert.ok(!isLoopback(address), address);
  }
});

function refusal(code, text) {
  return finishFrame(beginFrame(new Bytes(64)).varint(code).string(text), FRAME.ERROR).copy();
}

function conversation(token) {
  const { session, outbox, dictionary, totals, log } = parts();
  const protocol = new Protocol({ session: session.bytes, pairs: [], outbox, dictionary, totals, log, token });
  token.readNow();
  protocol.connected(0);
  return protocol;
}

test('a refusal says what to do, and the pauses grow to a minute', () => {
  const refused = (protocol, code) => {
    try {
      protocol.take(refusal(code, 'because'), 0);
    } catch (error) {
      assert.ok(error instanceof Refused && error.isOfToken);
      return error;
    }
    throw new Error('not refused');
  };
  const put = 'put a valid one into token';
  const change = 'change its role or selector, or the token in token';
  for (const [token, code, message] of [
    ['', 12, 'the server requires a token: set token_file or token (error 12)'],
    [TOKEN, 12, `the server refuses the token: because (error 12); ${put}`],
    [TOKEN, 13, `the token does not permit this: because (error 13); ${change}`],
  ]) {
    assert.equal(refused(conversation(given(token)), code).message, message);
  }
  const protocol = conversation(given(TOKEN));
  for (const step of [1, 2, 4, 8, 16, 32, 60, 60]) {
    const { pauseMs } = refused(protocol, 12);
    assert.ok(pauseMs >= step * 500 && pauseMs <= step * 1_000, `${pauseMs} of ${step}`);
  }
});

test('HELLO has the token, and the file is read before each connection', async () => {
  const path = written('first\n');
  const token = inFile(path);
  const hellos = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (bytes) => {
      hellos.push(String(bytes));
      writeFileSync(path, 'second\n');
      socket.end(refusal(12, 'because'));
    });
  }).listen(0, '127.0.0.1');
  await new Promise((ready) => server.once('listening', ready));
  const all = parts();
  const said = [];
  all.log.say = (line) => said.push(line);
  const { session, outbox, dictionary, totals, log } = all;
  const protocol = new Protocol({ session: session.bytes, pairs: [], outbox, dictionary, totals, log, token });
  const link = new Link({ address: { host: '127.0.0.1', port: server.address().port }, protocol, totals, log });
  try {
    link.start();
    await until('two attempts', () => hellos.length === 2);
    assert.match(hellos[0], /\x05first$/);
    assert.match(hellos[1], /\x06second$/);
    assert.equal(said.length, 1, said.join('\n'));
    assert.ok(said[0].includes(`the server refuses the token: because (error 12); put a valid one into token_file=${path}`));
  } finally {
    link.end();
    server.close();
  }
});

for (const isInsecure of [false, true]) {
  const what = isInsecure ? 'is sent to another machine if insecure_token is true' : 'is not sent to another machine';
  test(`without TLS the token ${what}`, async () => {
    const hellos = [];
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (bytes) => hellos.push(String(bytes)));
    }).listen(0, '127.0.0.1');
    await new Promise((ready) => server.once('listening', ready));
    const all = parts();
    const said = [];
    all.log.say = (line) => said.push(line);
    const { session, outbox, dictionary, totals, log } = all;
    const token = given(TOKEN, isInsecure);
    const protocol = new Protocol({ session: session.bytes, pairs: [], outbox, dictionary, totals, log, token });
    const link = new Link({ address: { host: '127.0.0.1', port: server.address().port }, protocol, totals, log });
    try {
      link.start();
      // The connected socket claims that its peer is another machine.
      Object.defineProperty(link.socket, 'remoteAddress', { value: '10.0.0.1' });
      await until('a line', () => said.length > 0);
      if (isInsecure) {
        await until('HELLO', () => hellos.join('').includes(TOKEN));
        assert.match(said[0], /^the token is sent to 127\.0\.0\.1:\d+ without TLS, because insecure_token is true/);
      } else {
        assert.match(said[0], /no token is sent to another machine without TLS: set tls_ca or insecure_token/);
        assert.deepEqual(hellos, []);
      }
      assert.ok(!said.join('').includes('5eC'));
    } finally {
      link.end();
      server.close();
    }
  });
}
