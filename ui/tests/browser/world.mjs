// Starts what the tests of the page need: a server on a fresh directory, the bulletin board with the agent, and some load.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const AGENT = process.env.TACHO_AGENT_JAR ?? join(ROOT, 'agent/java/target/tachograph-agent.jar');
const BOARD = join(ROOT, 'examples/bulletin-board/java/target/bulletin-board.jar');
const MIX = fileURLToPath(new URL('demo.mix', import.meta.url));
const START_MS_MAX = 60_000;
const STOP_MS_MAX = 15_000;

/** Path of tacho: TACHO_BIN, or the newer of the release build and the debug build. */
export function binary() {
  if (process.env.TACHO_BIN) return process.env.TACHO_BIN;
  const built = ['release', 'debug']
    .map((profile) => join(ROOT, 'target', profile, 'tacho'))
    .filter((path) => existsSync(path));
  built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  return built[0] ?? join(ROOT, 'target/release/tacho');
}

function demand(path, how) {
  if (!existsSync(path)) throw new Error(`${path} does not exist; build it with: ${how}`);
  return path;
}

/** A child process. Its stdout is kept in `text`; its stderr goes to a log file. */
class Child {
  constructor(name, command, args, { directory, env = {} }) {
    this.name = name;
    this.log = join(directory, `${name}.log`);
    const log = openSync(this.log, 'a');
    this.process = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', log] });
    this.text = '';
    this.process.stdout.on('data', (data) => {
      this.text += data;
    });
    this.ended = new Promise((resolve) => {
      this.process.once('exit', (code) => resolve(code));
      this.process.once('error', (error) => {
        this.text += error.message;
        resolve(-1);
      });
    });
  }

  /** Resolves with the groups of the first match on stdout. Throws an exception if the process ends without a match, or after
   * START_MS_MAX. */
  async says(pattern) {
    const deadline = Date.now() + START_MS_MAX;
    let ended = false;
    this.ended.then(() => {
      ended = true;
    });
    while (Date.now() < deadline) {
      const found = pattern.exec(this.text);
      if (found !== null) return found.slice(1);
      if (ended) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(
      `${this.name} did not say ${pattern}:\n${this.text}\n${readFileSync(this.log, 'utf8').slice(-2000)}`,
    );
  }

  async succeeds() {
    const code = await this.ended;
    if (code !== 0)
      throw new Error(`${this.name} ended with ${code}:\n${this.text}\n${readFileSync(this.log, 'utf8').slice(-2000)}`);
  }

  async stop() {
    if (this.process.exitCode === null && this.process.pid !== undefined) this.process.kill('SIGTERM');
    const timer = setTimeout(() => this.process.kill('SIGKILL'), STOP_MS_MAX);
    await this.ended;
    clearTimeout(timer);
  }
}

/** Waits until the server has stored requests of the bulletin board. */
async function reported(url) {
  const deadline = Date.now() + START_MS_MAX;
  let last = '';
  while (Date.now() < deadline) {
    last = await (await fetch(`${url}/api/services`)).text();
    if (JSON.parse(last).services?.some((one) => one.service === 'bulletin-board' && one.requests > 0)) return;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`the bulletin board has not reported; /api/services answers ${last.slice(0, 500)}`);
}

/** One burst of load, without a pause after it. */
export const BURST = { requests: 4000, pauseSeconds: 0 };

/** Starts the server and the board, then runs `bursts` of load. Returns both addresses, and a function that stops both. */
export async function startWorld(bursts) {
  const tacho = demand(binary(), 'cargo build --release -p tacho-cli');
  demand(AGENT, 'mvn -f agent/java package');
  demand(BOARD, 'mvn -f examples/bulletin-board/java package');
  const directory = mkdtempSync(join(tmpdir(), 'tachograph-page-'));
  const children = [];
  const start = (...args) => {
    const child = new Child(...args);
    children.push(child);
    return child;
  };
  const stop = async () => {
    for (const child of children.reverse()) await child.stop();
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    const serve = start(
      'server',
      tacho,
      [
        'serve',
        '--data',
        join(directory, 'data'),
        '--http',
        '127.0.0.1:0',
        '--records',
        '127.0.0.1:0',
        '--selfwatch-seconds',
        '1',
      ],
      { directory },
    );
    const [http, records] = await serve.says(/listening http=(\S+) records=(\S+)/);
    const board = start('board', 'java', [`-javaagent:${AGENT}`, '-jar', BOARD, '--port', '0'], {
      directory,
      env: {
        TACHO_SERVER: records,
        TACHO_SERVICE: 'bulletin-board',
        TACHO_INCLUDE: 'bulletinboard..*',
        TACHO_EXCLUDE: 'bulletinboard.model..*',
      },
    });
    const [address] = await board.says(/listening on http:\/\/([^\s,]+)/);
    for (const { requests, pauseSeconds } of bursts) {
      const args = ['load', address, '--mix', MIX, '--connections', '4', '--requests', String(requests)];
      await start('load', tacho, args, { directory }).succeeds();
      await new Promise((resolve) => setTimeout(resolve, pauseSeconds * 1000));
    }
    await reported(`http://${http}`);
    return { url: `http://${http}`, board: `http://${address}`, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
