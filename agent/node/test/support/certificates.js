// Certificates for tests, made by the program `openssl`.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];

const openssl = (...args) => execFileSync('openssl', args, { stdio: 'pipe' });

/** A certificate authority in a directory; `file` has its certificate. */
export class Authority {
  constructor(directory, name) {
    this.directory = directory;
    this.file = join(directory, `${name}.pem`);
    this.key = join(directory, `${name}.key`);
    openssl('req', '-x509', ...KEY, '-nodes', '-subj', `/CN=${name}`, '-days', '2', '-keyout', this.key, '-out', this.file);
  }

  /** Creates a certificate for these names. Returns its path and that of its key. A `password` encrypts the key. */
  sign(name, names = 'IP:127.0.0.1,DNS:localhost', password = '') {
    const [cert, key, request, extensions] = ['cert.pem', 'key.pem', 'csr', 'ext'].map((end) =>
      join(this.directory, `${name}.${end}`),
    );
    const kept = password === '' ? ['-nodes'] : ['-passout', `pass:${password}`];
    openssl('req', ...KEY, ...kept, '-subj', `/CN=${name}`, '-keyout', key, '-out', request);
    writeFileSync(extensions, `subjectAltName=${names}\nauthorityKeyIdentifier=keyid\n`);
    const signer = ['-CA', this.file, '-CAkey', this.key, '-CAcreateserial', '-days', '2'];
    openssl('x509', '-req', '-in', request, ...signer, '-extfile', extensions, '-out', cert);
    return { cert, key };
  }
}
