// A real `tacho serve` for the tests, and real programs with the agent.

import { execFile, spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));
const BINARY = process.env.TACHO ?? resolve(PACKAGE, '../../target/release/tacho');
/** Limit for programs that hang. */
const PATIENCE_MS = 60_000;

function binary() {
  try {
    accessSync(BINARY, constants.X_OK);
    return BINARY;
  } catch {
    throw new Error(`there is no server at ${BINARY}: run \`make build\`, or set TACHO to the binary`);
  }
}

/** The environment without settings of the agent. */
function clean(extra = {}) {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('TACHO') && name !== 'NODE_OPTIONS');
  // Variables of the test runner are not passed to programs.
  return { ...Object.fromEntries(kept.filter(([name]) => name !== 'NODE_TEST_CONTEXT')), ...extra };
}

/** Calls `ask`, even after exceptions, until its result is truthy, and returns this result. Fails after `PATIENCE_MS`. */
export async function until(what, ask) {
  let last;
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(50)) {
    try {
      const answer = await ask();
      if (answer) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
  }
  throw new Error(`${what} did not come: ${last}`);
}

export class Tacho {
  /**
   * @param {string[]} [flags] further flags of `tacho serve`
   * @param {import('node:https').RequestOptions | null} [tls] for the queries, if the server uses TLS
   */
  constructor(flags = [], tls = null) {
    this.flags = flags;
    this.tls = tls;
    this.directory = mkdtempSync(join(tmpdir(), 'tachograph-node-'));
    this.http = '127.0.0.1:0';
    this.records = '127.0.0.1:0';
    /** The token of the queries. */
    this.token = '';
  }

  /** Creates and starts a server. Takes the arguments of the constructor. */
  static async start(...how) {
    const tacho = new Tacho(...how);
    try {
      await tacho.start();
    } catch (error) {
      rmSync(tacho.directory, { recursive: true, force: true });
      throw error;
    }
    return tacho;
  }

  /** Starts the server, or restarts it on the same data and ports. */
  async start() {
    const args = ['serve', '--data', this.directory, '--http', this.http, '--records', this.records, '--selfwatch-seconds', '0'];
    const child = spawn(binary(), [...args, ...this.flags], { env: clean(), stdio: ['ignore', 'pipe', 'pipe'] });
    this.child = child;
    this.ended = new Promise((done) => child.once('exit', done));
    let said = '';
    child.stderr.on('data', (text) => (said += text));
    const ready = new Promise((done, fail) => {
      child.stdout.on('data', (text) => {
        const match = /http=(\S+) records=(\S+)/.exec(String(text));
        if (match !== null) done([match[1], match[2]]);
      });
      child.once('exit', (code) => fail(new Error(`tacho ended with ${code}: ${said}`)));
      child.once('error', fail);
    });
    [this.http, this.records] = await ready;
  }

  /** Simulates a crash. */
  async kill() {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  async close() {
    this.child.kill('SIGTERM');
    await this.ended;
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** The text of a new token. From the first one on, the server requires tokens. */
  async addToken(name, role, ...flags) {
    return (await this.#changeTokens('add', name, '--role', role, ...flags)).trim();
  }

  revokeToken(name) {
    return this.#changeTokens('revoke', name);
  }

  async #changeTokens(...args) {
    const { stdout } = await promisify(execFile)(binary(), ['token', ...args, '--data', this.directory], { env: clean() });
    return stdout;
  }

  async get(path, parameters = {}) {
    if (this.tls !== null) return this.#getEncrypted(`${path}?${new URLSearchParams(parameters)}`);
    const url = `http://${this.http}${path}?${new URLSearchParams(parameters)}`;
    const answer = await fetch(url, { headers: this.#headers() });
    const body = await answer.json();
    if (!answer.ok) throw new Error(`${url}: ${JSON.stringify(body)}`);
    return body;
  }

  #headers() {
    return this.token === '' ? {} : { authorization: `Bearer ${this.token}` };
  }

  #getEncrypted(path) {
    return new Promise((done, fail) => {
      const asked = get(`https://${this.http}${path}`, { ...this.tls, headers: this.#headers() }, async (answer) => {
        const body = Buffer.concat(await answer.toArray()).toString();
        if (answer.statusCode === 200) done(JSON.parse(body));
        else fail(new Error(`${path}: ${body}`));
      });
      asked.on('error', fail);
    });
  }

  /** Runs `tacho` with these arguments against this server. */
  command(...args) {
    const child = spawn(binary(), [...args, '--server', `http://${this.http}`], {
      env: clean(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = { out: '', err: '' };
    child.stdout.on('data', (text) => (said.out += text));
    child.stderr.on('data', (text) => (said.err += text));
    return new Promise((done, fail) => {
      child.once('error', fail);
      child.once('close', (code) => done({ code, ...said }));
    });
  }

  /** Operations of a service, by name. */
  async operations(service, wanted = {}) {
    const { operations } = await this.get('/api/operations', { service, ...wanted });
    return new Map(operations.map((operation) => [operation.operation, operation]));
  }

  /** Spans of the only trace that begins with this operation. */
  async trace(service, operation) {
    const { traces } = await this.get('/api/traces', { service });
    const found = traces.filter((trace) => trace.operation === operation);
    if (found.length !== 1)
      throw new Error(`${found.length} traces of ${operation}, there are ${traces.map((t) => t.operation)}`);
    return (await this.get(`/api/traces/${found[0].trace_id}`)).spans;
  }

  /** The labels of each series of a service. */
  async series(service) {
    const { data } = await this.get('/api/v1/series', { 'match[]': `{service="${service}"}` });
    return data;
  }

  /** The last value of a series. */
  async value(selector) {
    const { data } = await this.get('/api/v1/query', { query: selector });
    return data.result.length === 0 ? undefined : Number(data.result[0].value[1]);
  }
}

/** One line per span, in the order of the tree: the operation, indented by the depth. */
export function outline(spans) {
  return spans.map((span) => `${'  '.repeat(span.depth)}${span.operation}`);
}

/**
 * Starts a program of test/programs under the agent.
 * @param {Tacho | { records: string }} tacho
 * @param {string} program
 * @param {{ flags?: string[], args?: string[], env?: Record<string, string>, service?: string }} [how]
 */
export function start(
  tacho,
  program,
  { flags = ['--import', 'tachograph/register'], args = [], env = {}, service = program } = {},
) {
  // When the program ends, it may wait for a server that is slow on a busy machine.
  const patience = { TACHO_FLUSH_MAX: '30s' };
  const settings = { TACHO_SERVER: tacho.records, TACHO_SERVICE: service, TACHO_HOST: 'test', ...patience, ...env };
  const command = [...flags, join(PACKAGE, 'test/programs', program), ...args];
  const child = spawn(process.execPath, command, { cwd: PACKAGE, env: clean(settings), stdio: ['pipe', 'pipe', 'pipe'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  const said = { out: '', err: '' };
  child.stdout.on('data', (text) => (said.out += text));
  child.stderr.on('data', (text) => (said.err += text));
  const ended = new Promise((done, fail) => {
    child.once('error', fail);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      done({ code, signal, ...said });
    });
  });
  return {
    child,
    said,
    ended,
    /** Waits for a line that matches. */
    line: (pattern) =>
      until(`${pattern} of ${program}`, () => {
        const found = pattern.exec(said.out);
        if (found === null && child.exitCode !== null) throw new Error(`${program} ended: ${said.out}${said.err}`);
        return found;
      }),
    stop: async () => {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

export const run = (...how) => start(...how).ended;
