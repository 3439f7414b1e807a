// Detects the end of the process or the thread after the program's last listener has run: when the listeners of `exit` have
// returned, when `process.exit` then ends the process or thread, or when the process sends itself a deadly signal. No listener is
// added, because a program may count or remove listeners, and its own listeners may record something.
//
// Before: `../agent.js`. After: `farewell.js`.

import { constants } from 'node:os';
import { replace } from './replace.js';

/** Numbers of the signals that end a process without a listener for them. */
const DEADLY = new Set(
  /** @type {NodeJS.Signals[]} */ ([
    'SIGTERM',
    'SIGINT',
    'SIGHUP',
    'SIGQUIT',
    'SIGKILL',
    'SIGABRT',
    'SIGALRM',
    'SIGUSR2',
    'SIGVTALRM',
    'SIGXCPU',
    'SIGTRAP',
    'SIGBUS',
    'SIGFPE',
    'SIGILL',
    'SIGIO',
    'SIGPWR',
    'SIGSEGV',
    'SIGSTKFLT',
    'SIGSYS',
  ]).map((name) => constants.signals[name]),
);
/** A signal may have several names: `SIGABRT` is `SIGIOT`. */
const NAMES = /** @type {[NodeJS.Signals, number][]} */ (Object.entries(constants.signals));

/**
 * @param {object} told
 * @param {() => void} told.exits called after the listeners of `exit`; more code may run, and `ends` may follow
 * @param {() => void} told.ends called at the very end: no more code of the program runs
 * @param {(event: unknown) => void} told.listens called when the program is about to add a listener for this event
 * @param {(event: unknown) => void} told.told called when the program's listeners are called for this event
 * @param {boolean} isMain only the main thread receives signals
 */
export function watchEnd({ exits, ends, listens, told }, isMain) {
  replace(process, 'emit', (emit) => {
    // If `process` inherits `emit`, the inherited function is looked up each time, because `domain` replaces it.
    const own = Object.hasOwn(process, 'emit');
    return function (/** @type {any[]} */ ...args) {
      const [event] = args;
      if (event === 'newListener') {
        listens(args[1]);
      }
      told(event);
      const call = own ? emit : Object.getPrototypeOf(process).emit;
      // A program may emit `exit`, too. Node sets its exiting flag before it emits `exit` itself.
      if (event !== 'exit' || /** @type {any} */ (process)._exiting !== true) {
        return Reflect.apply(call, this, args);
      }
      try {
        return Reflect.apply(call, this, args);
      } finally {
        exits();
      }
    };
  });
  replace(process, 'reallyExit', (reallyExit) => {
    return function (/** @type {any[]} */ ...args) {
      ends();
      return Reflect.apply(reallyExit, this, args);
    };
  });
  if (isMain) {
    replace(process, 'kill', (kill) => {
      return function (/** @type {any[]} */ ...args) {
        if (isEnd(args[0], args[1])) {
          ends();
        }
        return Reflect.apply(kill, this, args);
      };
    });
  }
}

/**
 * True if this signal, sent to this process or its group, ends the process.
 * @param {unknown} pid
 * @param {unknown} signal
 */
function isEnd(pid, signal = 'SIGTERM') {
  const isOurs = (typeof pid === 'number' || typeof pid === 'string') && (Number(pid) === process.pid || Number(pid) === 0);
  const number = typeof signal === 'string' ? constants.signals[/** @type {NodeJS.Signals} */ (signal)] : Number(signal);
  const isHeard = () => NAMES.some(([name, its]) => its === number && process.listenerCount(name) > 0);
  return isOurs && DEADLY.has(number) && !isHeard();
}
