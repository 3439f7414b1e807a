// Records arrive over TLS. If one side has no TLS, or a setting cannot be used, no record is sent, and the log has the
// cause.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createServer } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { Authority } from './support/certificates.js';
import { PACKAGE, Tacho, outline, run, start, until } from './support/tacho.js';
import { wiretap } from './support/wiretap.js';

const place = mkdtempSync(join(tmpdir(), 'tachograph-tls-'));
const [ours, other] = ['ours', 'other'].map((name) => new Authority(place, name));
const [client, locked] = [ours.sign('client'), ours.sign('locked', undefined, 'secret')];
const foreign = other.sign('foreign');
const missing = join(place, 'missing');
const shown = { TACHO_TLS_CLIENT_CERT: client.cert, TACHO_TLS_CLIENT_KEY: client.key };
const trusting = { TACHO_TLS_CA: ours.file };

/** All but `plain` use TLS. `strict` also requires client certificates. The certificate of `named` has no IP address. */
let plain, secured, strict, named;
const servers = [];
before(async () => {
  plain = await serve();
  secured = await serve(ours.sign('server'));
  strict = await serve(ours.sign('strict'), '--tls-client-ca', ours.file);
  named = await serve(ours.sign('named', 'DNS:localhost'));
});
after(async () => {
  for (const server of servers) await server.close();
  rmSync(place, { recursive: true, force: true });
});

async function serve(pair, ...flags) {
  const read = (path) => readFileSync(path);
  const tls = { ca: read(ours.file), cert: read(client.cert), key: read(client.key), servername: 'localhost' };
  const server = await (pair ? Tacho.start(['--tls-cert', pair.cert, '--tls-key', pair.key, ...flags], tls) : Tacho.start());
  servers.push(server);
  return server;
}

function file(name, text) {
  const path = join(place, name);
  writeFileSync(path, text);
  return path;
}

const port = (server) => server.records.split(':')[1];

/** The log has an outage with this cause, and the server has no record. */
async function fails(service, server, env, expected) {
  const program = start({ records: server.records, ...env.at }, 'waits.js', { service, env: env.with });
  const line = /.*(?:cannot reach|lost) the server .*/;
  const [said] = await until('a line', () => line.exec(program.said.err));
  assert.ok(said.includes(expected), said);
  assert.match(said, /the program goes on, the agent keeps trying$/);
  program.child.stdin.end();
  const { code, err } = await program.ended;
  assert.equal(code, 0, err);
  assert.deepEqual((await server.get('/api/traces', { service })).traces, []);
}

const ENDINGS = [
  ['natural', 0, null],
  ['exit', 4, null],
  ['throw', 1, null],
  ['signal', null, 'SIGTERM'],
  ['own handler', 3, null],
];
for (const [how, code, signal] of ENDINGS) {
  for (const pause of [0, 400]) {
    test(`records arrive over TLS when the program ends after ${pause} ms: ${how}`, async () => {
      const service = `ending ${how} ${pause}`;
      const program = await run(secured, 'endings.js', { args: [how, String(pause)], service, env: trusting });
      assert.deepEqual([program.code, program.signal], [code, signal], program.err);
      assert.equal((await secured.operations(service)).get('inner')?.count, 100, program.err);
      const ended = how === 'natural' || how === 'own handler' ? 101 : 100;
      const told = (name) => secured.value(`tacho_agent_${name}_total{service="${service}",kind="execution"}`);
      assert.deepEqual([await told('sent'), await told('dropped')], [ended, 0]);
    });
  }
}

test('records of a program that ends at once arrive over TLS although the first two connections are closed', async () => {
  const proxy = await wiretap(secured, 'closes', 2);
  try {
    const service = 'closed twice';
    const { code, err } = await run(proxy, 'endings.js', { args: ['exit', '0'], service, env: trusting });
    assert.equal(code, 4, err);
    assert.equal((await secured.operations(service)).get('inner')?.count, 100, err);
  } finally {
    proxy.close();
  }
});

test('records arrive with a client certificate', async () => {
  const { code, err } = await run(strict, 'endings.js', { args: ['natural', '0'], service: 's', env: { ...trusting, ...shown } });
  assert.equal(code, 0, err);
  assert.equal((await strict.operations('s')).get('inner')?.count, 100, err);
});

test('records arrive while the program runs, also many megabytes', async () => {
  const program = start(secured, 'waits.js', { service: 'many', env: trusting });
  program.child.stdin.write('big\n'.repeat(12));
  await until('records', async () => (await secured.operations('many')).get('big')?.count === 12);
  program.child.stdin.end();
  const { code, err } = await program.ended;
  assert.equal(code, 0, err);
  assert.equal(await secured.value('tacho_agent_sent_total{service="many",kind="entry"}'), 12);
});

test('records of other threads arrive', async () => {
  const program = await run(secured, 'threads.js', { service: 'threads', env: trusting });
  assert.equal(program.code, 0, program.err);
  assert.deepEqual(outline(await secured.trace('threads', 'in worker')), ['in worker', '  below']);
  assert.equal((await secured.trace('threads', 'in main')).length, 1);
});

test('the authorities of the runtime are used', async () => {
  const env = { TACHO_TLS_CA: 'system', NODE_EXTRA_CA_CERTS: ours.file };
  const { code, err } = await run(secured, 'endings.js', { args: ['natural', '0'], service: 'system', env });
  assert.equal(code, 0, err);
  assert.equal((await secured.operations('system')).get('inner')?.count, 100, err);
});

for (const [what, program] of [
  ['a renewed client certificate is used at the next connection', 'waits.js'],
  ['the agent uses neither the functions nor the TLS defaults that the program has replaced', 'patched.js'],
]) {
  test(what, async () => {
    const pair = { cert: join(place, `renewed-${program}.cert.pem`), key: join(place, `renewed-${program}.key.pem`) };
    const put = (from) => {
      for (const part of ['cert', 'key']) {
        copyFileSync(from[part], `${pair[part]}.new`);
        renameSync(`${pair[part]}.new`, pair[part]);
      }
    };
    put(foreign);
    const env = { ...trusting, TACHO_TLS_CLIENT_CERT: pair.cert, TACHO_TLS_CLIENT_KEY: pair.key };
    const { child, said, ended } = start(strict, program, { service: program, env });
    await until('a refusal', () => said.err.includes('the server refuses the certificate in tls_client_cert'));
    put(client);
    await until('a connection', () => said.err.includes('connected to'));
    child.stdin.end();
    assert.equal((await ended).out, '');
    assert.equal((await strict.operations(program)).get('outer')?.count, 1);
  });
}

test('nothing is sent to a server with another name, even if the program trusts every server', async () => {
  const pair = ours.sign('elsewhere', 'DNS:localhost');
  let attempts = 0;
  let received = 0;
  const server = createServer({ cert: readFileSync(pair.cert), key: readFileSync(pair.key) }, (socket) => {
    socket.on('data', (bytes) => (received += bytes.length));
    socket.on('error', () => {});
  });
  server.on('connection', () => attempts++);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const program = start({ records: `127.0.0.1:${server.address().port}` }, 'patched.js', { service: 'trusts', env: trusting });
  await until('attempts', () => attempts > 3);
  program.child.stdin.end();
  await program.ended;
  server.close();
  assert.equal(received, 0);
  assert.match(program.said.err, /the server's certificate is not for 127\.0\.0\.1/);
});

test('the files are not read while the server cannot be reached', async () => {
  await fails('closed', plain, { at: { records: '127.0.0.1:1' }, with: { TACHO_TLS_CA: missing } }, 'ECONNREFUSED');
});

test('a relay cannot be created if the file of its thread is missing', async () => {
  const copy = join(place, 'copy');
  cpSync(join(PACKAGE, 'src'), copy, { recursive: true });
  rmSync(join(copy, 'send/relay-thread.js'), { force: true });
  writeFileSync(join(copy, 'package.json'), '{ "type": "module" }');
  const { Relay } = await import(pathToFileURL(join(copy, 'send/relay.js')));
  const files = { ca: ours.file, cert: '', key: '' };
  assert.throws(() => new Relay({ files }, { host: '127.0.0.1', port: 1 }), /there is no file .*relay-thread\.js/);
});

test('the modules of the connection do not load node:tls', () => {
  const loaded = `process.moduleLoadList.includes('NativeModule tls')`;
  const code = `import './src/send/farewell.js'; import './src/send/link.js'; console.log(${loaded});`;
  const command = ['--input-type=module', '--eval', code];
  assert.equal(execFileSync(process.execPath, command, { cwd: PACKAGE, encoding: 'utf8' }), 'false\n');
});

for (const [what, env] of [
  ['another authority', { TACHO_TLS_CA: other.file }],
  ['another authority, although the program trusts all', { TACHO_TLS_CA: other.file, NODE_TLS_REJECT_UNAUTHORIZED: '0' }],
  ['the authorities of the runtime', { TACHO_TLS_CA: 'system' }],
]) {
  test(`the server is not trusted if tls_ca names ${what}`, async () => {
    await fails(what, secured, { with: env }, "no authority of tls_ca has signed the server's certificate");
  });
}

test('the name in the certificate must be the name in the setting', async () => {
  await fails('address', named, { with: trusting }, "the server's certificate is not for 127.0.0.1");
  const at = { records: `localhost:${port(named)}` };
  const { code, err } = await run(at, 'endings.js', { args: ['natural', '400'], service: 'name', env: trusting });
  assert.equal(code, 0, err);
  assert.equal((await named.operations('name')).get('inner')?.count, 100, err);
});

for (const [env, expected] of [
  [{}, 'the server requires a client certificate: set tls_client_cert and tls_client_key'],
  [
    { TACHO_TLS_CLIENT_CERT: foreign.cert, TACHO_TLS_CLIENT_KEY: foreign.key },
    'the server refuses the certificate in tls_client_cert',
  ],
]) {
  test(`the log has the cause if the client certificate is missing or not trusted: ${expected}`, async () => {
    await fails(expected, strict, { with: { ...trusting, ...env } }, expected);
  });
}

test('an agent with tls_ca logs that the server does not use TLS', async () => {
  await fails('tls here', plain, { with: trusting }, 'the server does not use TLS, but tls_ca is set');
});

test('an agent without TLS logs that the server requires TLS', async () => {
  await fails('no tls here', secured, { with: {} }, 'the server requires TLS: set tls_ca (error 11)');
});

const text = file('text', 'no PEM');
const fifo = join(place, 'fifo');
execFileSync('mkfifo', [fifo]);
const damaged = file('damaged', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
for (const [setting, why, files] of [
  ['tls_ca', 'no such file', { ca: missing }],
  ['tls_ca', 'it holds no certificate in PEM', { ca: text }],
  ['tls_ca', '', { ca: damaged }],
  ['tls_ca', 'illegal operation on a directory', { ca: place }],
  ['tls_ca', 'it is not a regular file', { ca: fifo }],
  ['tls_client_cert', 'no such file', { client_cert: missing }],
  ['tls_client_cert', 'it holds no certificate in PEM', { client_cert: text }],
  ['tls_client_cert', '', { client_cert: damaged }],
  ['tls_client_key', 'it is not a regular file', { client_key: fifo }],
  ['tls_client_key', 'no such file', { client_key: missing }],
  ['tls_client_key', 'it holds no private key in PEM', { client_key: text }],
  ['tls_client_key', 'the key is encrypted with a password', { client_cert: locked.cert, client_key: locked.key }],
  ['tls_client_key', 'it is not the key of the certificate in tls_client_cert', { client_key: foreign.key }],
]) {
  // The server has no TLS, so an unencrypted connection would succeed.
  test(`a file cannot be used: ${setting}, ${why}`, async () => {
    const all = { ca: ours.file, client_cert: client.cert, client_key: client.key, ...files };
    const env = Object.fromEntries(Object.entries(all).map(([name, path]) => [`TACHO_TLS_${name.toUpperCase()}`, path]));
    const expected = `${setting}=${env[`TACHO_${setting.toUpperCase()}`]}: ${why}`;
    await fails(expected, plain, { with: env }, expected);
  });
}

test('tls_client_cert and tls_client_key need each other and tls_ca', async () => {
  const { TACHO_TLS_CLIENT_CERT: cert, TACHO_TLS_CLIENT_KEY: key } = shown;
  const half = { ...trusting, TACHO_TLS_CLIENT_CERT: cert };
  await fails('a', plain, { with: half }, 'tls_client_cert is set without tls_client_key');
  const otherHalf = { ...trusting, TACHO_TLS_CLIENT_KEY: key };
  await fails('b', plain, { with: otherHalf }, 'tls_client_key is set without tls_client_cert');
  const { err } = await run(plain, 'endings.js', { args: ['natural', '0'], service: 'c', env: { TACHO_TLS_CLIENT_CERT: cert } });
  assert.match(err, /tls_client_cert has no effect without tls_ca: the connection is not encrypted\n/);
});
