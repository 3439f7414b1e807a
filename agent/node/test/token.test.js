// A server with tokens takes the records of programs with a token that may write. Other programs are not disturbed, and their log
// has the cause.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Authority } from './support/certificates.js';
import { Tacho, run, start, until } from './support/tacho.js';

const place = mkdtempSync(join(tmpdir(), 'tachograph-token-'));
const file = join(place, 'writer');
const ours = new Authority(place, 'ours');
let server, writer, secured, secureWriter;
before(async () => {
  const { cert, key } = ours.sign('server');
  const tls = { ca: readFileSync(ours.file), servername: 'localhost' };
  secured = new Tacho(['--tls-cert', cert, '--tls-key', key], tls);
  secured.token = await secured.addToken('admin', 'admin');
  secureWriter = await secured.addToken('writer', 'write');
  await secured.start();
  server = new Tacho();
  server.token = await server.addToken('admin', 'admin');
  writer = await server.addToken('writer', 'write');
  await server.start();
});
after(async () => {
  await server.close();
  await secured.close();
  rmSync(place, { recursive: true, force: true });
});

/** Replaces the file atomically, as administrators should. */
function put(path, token) {
  writeFileSync(`${path}.new`, `${token}\n`);
  renameSync(`${path}.new`, path);
}

/** Waits for a line of the log. The log never has a token. */
const says = (program, pattern) =>
  until(pattern, () => {
    assert.ok(!program.said.err.includes('tacho_'), program.said.err);
    return pattern.exec(program.said.err);
  });

async function ends(program) {
  program.child.stdin.end();
  const { code, err } = await program.ended;
  assert.equal(code, 0, err);
  return err;
}

for (const how of ['natural', 'exit', 'signal']) {
  for (const setting of ['TACHO_TOKEN', 'TACHO_TOKEN_FILE']) {
    test(`records arrive with ${setting} when the program ends at once: ${how}`, async () => {
      const service = `${setting} ${how}`;
      put(file, writer);
      const env = { [setting]: setting === 'TACHO_TOKEN' ? writer : file };
      const { err } = await run(server, 'endings.js', { args: [how, '0'], service, env });
      assert.equal((await server.operations(service)).get('inner')?.count, 100, err);
      assert.ok(!err.includes('tacho_'), err);
    });
  }
}

for (const how of ['natural', 'exit', 'signal']) {
  for (const pause of ['0', '400']) {
    test(`records arrive over TLS when the program ends after ${pause} ms: ${how}`, async () => {
      const env = { TACHO_TOKEN_FILE: file, TACHO_TLS_CA: ours.file };
      const service = `tls ${how} ${pause}`;
      put(file, secureWriter);
      const { err } = await run(secured, 'endings.js', { args: [how, pause], service, env });
      assert.equal((await secured.operations(service)).get('inner')?.count, 100, err);
    });
  }
}

test('records of other threads arrive', async () => {
  const { code, err } = await run(server, 'threads.js', { service: 'threads', env: { TACHO_TOKEN: writer } });
  assert.equal(code, 0, err);
  assert.ok((await server.operations('threads')).has('in worker'), err);
});

test('a program without a valid token is not disturbed', async () => {
  const reader = await server.addToken('reader', 'read');
  for (const [env, expected] of [
    [{}, /the server requires a token: set token_file or token \(error 12\)/],
    [{ TACHO_TOKEN: 'tacho_unknown' }, /the server refuses the token: .* \(error 12\); put a valid one into token;/],
    [{ TACHO_TOKEN: reader }, /the token does not permit this: .*reader.*write.* \(error 13\); change its role or selector, or/],
  ]) {
    const program = start(server, 'waits.js', { service: 'refused', env: { ...env, TACHO_FLUSH_MAX: '100ms' } });
    await says(program, expected);
    const err = await ends(program);
    assert.equal(err.match(/cannot reach the server/g).length, 1, err);
  }
  assert.equal((await server.operations('refused')).size, 0);
});

test('after its token was revoked, the agent uses the new token in the file', async () => {
  const file = join(place, 'replaced');
  const program = start(server, 'waits.js', { service: 'replaced', env: { TACHO_TOKEN_FILE: file } });
  await says(program, /token_file=.*: no such file or directory; the program goes on/);
  put(file, await server.addToken('first', 'write'));
  await says(program, /connected to .* after .* nothing was dropped in the meantime/);
  await server.revokeToken('first');
  await says(program, /lost the server .*: the server refuses the token: .*; put a valid one into token_file=/);
  program.child.stdin.write('inner\n');
  put(file, await server.addToken('second', 'write'));
  await says(program, /connected again to .* nothing was dropped in the meantime/);
  await ends(program);
  const names = [...(await server.operations('replaced')).keys()].sort();
  assert.deepEqual(names, ['inner', 'outer']);
});

test('a token that is confined to another service is refused', async () => {
  const token = await server.addToken('confined', 'write', '--match', '{service="other"}');
  const env = { TACHO_TOKEN: token, TACHO_FLUSH_MAX: '100ms' };
  const refused = start(server, 'waits.js', { service: 'mine', env });
  await says(refused, /the token does not permit this: .*confined to .* set its service \(error 13\)/);
  await ends(refused);
  const { err } = await run(server, 'endings.js', { args: ['natural', '0'], service: 'other', env: { TACHO_TOKEN: token } });
  assert.equal((await server.operations('other')).get('inner')?.count, 100, err);
});
