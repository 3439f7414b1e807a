// Which files in the TLS settings the agent can use, and which ones it refuses. `tls.test.js` has the tests with a server.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { FILE_BYTES_MAX, Tls } from '../src/send/tls.js';
import { Authority } from './support/certificates.js';

const place = mkdtempSync(join(tmpdir(), 'tachograph-tls-files-'));
after(() => rmSync(place, { recursive: true, force: true }));
const ours = new Authority(place, 'ours');
const client = ours.sign('client');

function file(name, content) {
  const path = join(place, name);
  writeFileSync(path, content);
  return path;
}

const contextOf = (files) => new Tls({ ca: ours.file, ...client, ...files }).context();

for (const comment of ['# not ENCRYPTED\n', 'Bag Attributes: ENCRYPTED\r\n']) {
  test(`the comment ${JSON.stringify(comment)} does not mean an encrypted key`, async () => {
    assert.ok(await contextOf({ key: file('comment', comment + readFileSync(client.key, 'utf8')) }));
  });
}

const OLD =
  '-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n';
for (const [what, key] of [
  ['PKCS #8', ours.sign('locked', undefined, 'secret').key],
  ['the older form of OpenSSL', file('old', OLD)],
]) {
  test(`an encrypted key in ${what} is refused`, async () => {
    const expected = `tls_client_key=${key}: the key is encrypted with a password`;
    await assert.rejects(contextOf({ key }), { message: expected });
  });
}

test('a file of the maximum size is read, and one byte more is refused', async () => {
  const pem = readFileSync(client.cert);
  const padded = (size) => Buffer.concat([pem, Buffer.alloc(size - pem.length, '\n')]);
  const cert = file('padded', padded(FILE_BYTES_MAX));
  assert.ok(await contextOf({ cert }));
  file('padded', padded(FILE_BYTES_MAX + 1));
  await assert.rejects(contextOf({ cert }), { message: `tls_client_cert=${cert}: it has more than ${FILE_BYTES_MAX} bytes` });
});
