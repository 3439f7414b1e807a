// A real PostgreSQL for the tests, in a new directory that is deleted on close. If the tests run as root, PostgreSQL runs as the
// user `postgres`, because it refuses to run as root.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The directory of the server's programs. Debian has one per version, outside of PATH; the newest is used. Without such a
 * directory, PATH is searched. */
function programs() {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, 'bin')), ...(process.env.PATH ?? '').split(':')];
  const found = folders.find((folder) => existsSync(join(folder, 'initdb')));
  if (found === undefined) {
    throw new Error(`PostgreSQL is not installed: no initdb in ${folders} (Debian: apt-get install postgresql)`);
  }
  return found;
}

function freePort() {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => done(port));
    });
  });
}

export class Postgres {
  static async start() {
    const postgres = new Postgres();
    postgres.folder = programs();
    postgres.directory = mkdtempSync(join(tmpdir(), 'tachograph-node-postgres-'));
    try {
      postgres.port = await freePort();
      postgres.#start();
    } catch (error) {
      rmSync(postgres.directory, { recursive: true, force: true });
      throw error;
    }
    return postgres;
  }

  #start() {
    const data = join(this.directory, 'data');
    if (process.getuid?.() === 0) {
      execFileSync('chown', ['postgres', this.directory]);
    }
    this.run('initdb', '-D', data, '-U', 'board', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync');
    const options = `-p ${this.port} -c listen_addresses=127.0.0.1 -c fsync=off -k ${this.directory}`;
    this.run('pg_ctl', '-D', data, '-w', '-l', join(this.directory, 'log'), '-o', options, 'start');
  }

  get url() {
    return `postgres://board:secret@127.0.0.1:${this.port}/postgres`;
  }

  run(program, ...args) {
    const asServer = process.getuid?.() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups'] : [];
    const [command, ...rest] = [...asServer, join(this.folder, program), ...args];
    execFileSync(command, rest, { cwd: '/', stdio: ['ignore', 'ignore', 'inherit'] });
  }

  close() {
    this.run('pg_ctl', '-D', join(this.directory, 'data'), '-m', 'immediate', '-w', 'stop');
    rmSync(this.directory, { recursive: true, force: true });
  }
}
