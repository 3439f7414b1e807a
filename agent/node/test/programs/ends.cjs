// Ends in the way that the first argument names. With the agent, most ways record a hundred calls `work`. Prints `ready` when a
// signal may be sent. Most ways print `ready` 20 ms after the last recorded call, because the agent needs a turn of the loop.
'use strict';

const cluster = require('cluster');
const http = require('http');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

const agent = globalThis[Symbol.for('tachograph.agent')];
const record = (name, fn) => (agent ? agent.record(name, fn) : fn());
const work = () => {
  for (let at = 0; at < 100; at++) record('work', () => at);
};
const say = (text) => require('fs').writeSync(1, `${text}\n`);
const ready = () => {
  if (parentPort !== null) return parentPort.postMessage('ready');
  say('ready');
  if (process.env.pm_id !== undefined) process.send('ready');
};
const soon = () => later(ready);
const stay = () => setInterval(() => {}, 1_000);
const forever = () => {
  for (;;);
};
const later = (fn, ms = 20) => setTimeout(fn, ms);
/** Blocks the loop for a second; a signal arrives in this time. */
const block = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'];
/** Handles the next signal of each kind: sends it again, so that the process ends as without a handler. */
const sendAgain = () => SIGNALS.forEach((signal) => process.once(signal, () => process.kill(process.pid, signal)));

/** A thread that runs the given way; `then` is called at its first message. */
const thread = (how, then = ready) => new Worker(__filename, { workerData: how }).once('message', then);

function terminated(how) {
  const one = thread(how, () => one.terminate().then((code) => say(`terminated ${code}`)));
  one.on('exit', (code) => say(`thread ${code}`));
}

/** Sends a request to this program, and runs `fn` in the request while it is open. */
function served(fn) {
  const server = http.createServer(fn).listen(0, '127.0.0.1', () => {
    http.get({ port: server.address().port, host: '127.0.0.1' }).on('error', () => {});
  });
}

/** Starts the two workers of a cluster, calls `each` when both have sent a message, and prints how they end. */
function primary(how, each) {
  cluster.setupPrimary({ args: [how] });
  const workers = [cluster.fork(), cluster.fork()];
  let online = 0;
  for (const one of workers) {
    one.on('exit', (code, signal) => say(`worker ${code} ${signal}`));
    one.on('message', () => ++online === 2 && each(workers));
  }
}

const WAYS = {
  'no handler': () => (work(), soon(), stay()),
  'no handler, later': () => (stay(), later(() => (work(), soon()), 300)),
  'a loop without end': () => (work(), ready(), forever()),
  'a loop without end, later': () => later(() => (work(), ready(), forever()), 100),
  'a loop without end after recorded calls': () => later(() => (work(), later(() => (work(), ready(), forever()), 5))),
  'a loop without end in a request': () => served(() => (ready(), forever())),
  'a loop without end in a request that waited': () =>
    served(async () => {
      await null;
      work();
      await null;
      ready();
      forever();
    }),
  // Signal and acknowledgement are both pending when the loop continues. The loop reads the acknowledgement first.
  'a signal together with the last acknowledgement': () => {
    const sent = setInterval(() => {
      if (agent && (agent.outbox.isOpen || agent.outbox.isAcknowledged())) return agent.outbox.isOpen || work();
      clearInterval(sent);
      ready();
      block();
    }, 1);
    stay();
  },
  // The loop has checked for signals, and the agent is about to stop catching them.
  'a signal after the last acknowledgement': () => {
    const settling = () => {
      if (agent && !agent.signals.isSettling) return setImmediate(settling);
      ready();
      block();
    };
    later(() => (work(), settling()));
    stay();
  },
  // The agent has caught a signal; the loop has not reported it yet.
  'a handler after the signal': () => (later(() => (work(), setImmediate(() => (ready(), block(), sendAgain())))), stay()),
  'a handler after the signal, from a timer': () => (
    later(() => (work(), later(() => (ready(), block(), sendAgain()), 1))),
    stay()
  ),
  'a handler after the signal and a call': () => {
    later(() => (work(), setImmediate(() => (ready(), block(), work(), sendAgain()))));
    stay();
  },
  // The loop gets the result of `stat` and the signal in the same turn, in this order.
  'a handler while the loop reads the signal': () => {
    later(() => (work(), setImmediate(() => (require('fs').stat('.', sendAgain), ready(), block()))));
    stay();
  },
  'a handler that comes and goes after the signal': () => {
    later(() => (work(), setImmediate(() => (ready(), block(), sendAgain(), process.removeAllListeners('SIGTERM')))));
    stay();
  },
  'own handler': () => (process.on('SIGTERM', () => (work(), say('got it'), process.exit(3))), ready(), stay()),
  'own handler that exits later': () => {
    process.once('SIGTERM', () => (say('got it'), later(() => process.exit(5), 200)));
    later(() => (work(), soon()), 50);
    stay();
  },
  'own handler that does not exit': () => (process.once('SIGTERM', () => say('not yet')), work(), soon(), stay()),
  'own handler, later': () => (later(() => (process.on('SIGINT', () => process.exit(6)), ready()), 150), work(), stay()),
  'own handler that was removed': () => {
    const handler = () => say('never');
    process.on('SIGTERM', handler);
    later(() => (process.removeListener('SIGTERM', handler), work(), soon()), 150);
    stay();
  },
  'own handler that sends the signal again': () => {
    process.once('SIGTERM', () => (work(), say('once'), process.kill(process.pid, 'SIGTERM'), say('not reached')));
    ready();
    stay();
  },
  'own handler that sends the signal again later': () => {
    process.once('SIGTERM', () => later(() => (work(), process.kill(process.pid, 'SIGTERM'), say('not reached'))));
    ready();
    stay();
  },
  ...Object.fromEntries(
    ['signal-exit3', 'signal-exit4'].flatMap((name) => {
      const load = () => {
        const found = require(name);
        const onExit = found.onExit ?? found;
        onExit((code, signal) => say(`signal-exit ${code} ${signal}`));
        onExit((code, signal) => say(`last ${code} ${signal}`), { alwaysLast: true });
        return onExit;
      };
      return [
        [name, () => (load(), work(), soon(), stay())],
        [`${name}, later`, () => (stay(), later(() => (load(), work(), soon()), 150))],
        [`${name}, and own handler`, () => (load(), process.on('SIGTERM', () => process.exit(3)), work(), soon(), stay())],
        [`${name} and exit`, () => (load(), work(), process.exit(7))],
        [`${name} and nothing to do`, () => (load(), work())],
        [`${name} and an exception`, () => (load(), work(), later(() => assertNever()))],
        [`${name}, taken back`, () => (load()(() => {})(), work(), soon(), stay())],
      ];
    }),
  ),
  'signal-exit4 that prevents the exit': () => {
    require('signal-exit4').onExit(() => (say('no'), true));
    later(() => (work(), soon()));
    stay();
  },
  'async-exit-hook': () => (exitHook(), work(), soon(), stay()),
  'async-exit-hook and exit': () => (exitHook(), work(), process.exit(2)),
  'async-exit-hook and nothing to do': () => (exitHook(), work()),
  'async-exit-hook and an exception': () => (exitHook(), later(() => (work(), assertNever()))),
  death: () => (require('death')((signal) => (say(`death ${signal}`), process.exit(9))), work(), soon(), stay()),
  'death of an exception': () => {
    require('death')({ uncaughtException: true })((signal, error) => (say(`${signal} ${error.message}`), process.exit(8)));
    later(() => (work(), assertNever()));
  },
  natural: () => (process.on('beforeExit', () => say('beforeExit')), process.on('exit', (code) => say(`exit ${code}`)), work()),
  'natural with a code': () => (process.on('exit', () => (process.exitCode = 21)), later(work)),
  'work in exit': () => process.on('exit', work),
  'exit in exit': () => (process.on('exit', () => (say('exit'), process.exit(11))), work()),
  'exit in a signal in exit': () => (process.on('exit', () => process.kill(process.pid, 'SIGTERM')), work()),
  'an exception in exit': () => (process.on('exit', () => assertNever()), work()),
  'no listeners of exit': () => (process.removeAllListeners('exit'), work()),
  'no listeners at all': () => (process.removeAllListeners(), work(), process.exit(4)),
  'an exception': () => (work(), assertNever()),
  'an exception, later': () => (work(), later(() => assertNever(), 150)),
  'an exception that is caught': () => (
    process.on('uncaughtException', (e) => say(e.message)),
    later(() => (work(), assertNever()))
  ),
  'an exception, and one in its handler': () => (
    process.on('uncaughtException', () => assertNever()),
    later(() => (work(), assertNever()))
  ),
  'a rejection': () => (work(), Promise.reject(new Error('rejected'))),
  'a rejection in a call': () => record('work', () => Promise.reject(new Error('rejected'))),
  'a rejection that is caught': () => (
    process.on('unhandledRejection', (e) => say(e.message)),
    work(),
    Promise.reject(new Error('r'))
  ),
  abort: () => (work(), later(() => process.abort())),
  ...Object.fromEntries(
    ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGKILL', 'SIGUSR2'].map((signal) => [
      `own ${signal}`,
      () => (work(), process.kill(process.pid, signal), say('not reached')),
    ]),
  ),
  'own signals that do nothing': () => {
    work();
    say(process.kill(process.pid, 0));
    say(process.kill(process.pid, 'SIGWINCH'));
    for (const wrong of ['SIGNONE', 1_000, {}]) {
      try {
        process.kill(process.pid, wrong);
      } catch (error) {
        say(error.code);
      }
    }
  },
  'the state that the program sees': () => {
    work();
    later(() => {
      say(process.eventNames().map(String).sort());
      say([...SIGNALS, 'exit', 'beforeExit', 'newListener'].map((name) => `${name} ${process.listenerCount(name)}`));
      say([Object.keys(process).includes('emit'), process.kill.name, process.kill.length, process.reallyExit.length]);
      say(process.getActiveResourcesInfo().filter((name) => !/^(PipeWrap|TTYWrap|Timeout)$/.test(name)));
    }, 200);
  },
  'a cluster': () => {
    if (cluster.isPrimary) return primary('a cluster', () => ready());
    work();
    later(() => process.send('up'));
  },
  'a cluster that is disconnected': () => {
    if (cluster.isPrimary) return primary('a cluster that is disconnected', () => cluster.disconnect());
    work();
    later(() => process.send('up'));
    http.createServer(() => {}).listen(0, '127.0.0.1');
  },
  'a cluster that is killed': () => {
    if (cluster.isPrimary) {
      return primary('a cluster that is killed', (workers) => workers.forEach((one, at) => one.process.kill(SIGNALS[at])));
    }
    process.on('SIGINT', () => process.exit(12));
    work();
    later(() => process.send('up'));
  },
  'a thread that is terminated': () => terminated('no handler'),
  'a thread that is busy and is terminated': () => terminated('a loop without end'),
  'a thread that exits': () => thread('signal-exit4 and exit').on('exit', (code) => say(`thread ${code}`)),
  'a thread with an exception': () => thread('an exception').on('error', (e) => say(e.message)),
  'a thread, and exit': () => thread('no handler', () => process.exit(13)),
  'a thread, and nothing to do': () =>
    thread('no handler', work).once('message', function () {
      this.unref();
    }),
  'works, and ends later': () => (work(), later(() => {}, 500)),
  // A thread that runs this way always has unsent data, because it records a call every 10 ms until the message arrives.
  'works, and works again after a message': () => {
    const ticks = parentPort && setInterval(() => record('tick', () => 1), 10);
    parentPort?.once('message', () => (clearInterval(ticks), work()));
    work();
    later(ready);
  },
  'two threads, one of them ends first': () => {
    const other = thread('works, and works again after a message', () => {
      const first = new Worker(__filename, { workerData: 'works, and ends later' });
      first.on('exit', (code) => (say(`first ${code}`), later(() => other.postMessage('go'), 50)));
    });
    other.on('exit', (code) => say(`other ${code}`)).on('error', (error) => say(error.message));
  },
  'starts a thread, and ends': () => thread('no handler', () => process.exit(3)),
  'a thread that ends together with its own thread': () => {
    const other = thread('works, and works again after a message', () => {
      const first = new Worker(__filename, { workerData: 'starts a thread, and ends' });
      first.on('exit', (code) => (say(`first ${code}`), later(() => other.postMessage('go'), 50)));
    });
    other.on('exit', (code) => say(`other ${code}`)).on('error', (error) => say(error.message));
  },
  'exit is emitted by the program': () => (process.emit('exit', 0), work(), soon(), stay()),
  'a busy thread, and exit': () => thread('a loop without end', () => process.exit(13)),
  'a thread, and a signal': () => (thread('no handler'), stay()),
};

function exitHook() {
  const hook = require('async-exit-hook');
  hook(() => say('hook'));
  hook((done) => later(() => (say('done'), done()), 30));
  hook.uncaughtExceptionHandler((error) => say(error.message));
}

function assertNever() {
  throw new Error('not caught');
}

module.exports = Object.keys(WAYS);
// No way is selected when the tests only read the list of ways.
WAYS[isMainThread ? process.argv[2] : workerData]?.();
