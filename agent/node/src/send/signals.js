// Is there time for the last records when a signal ends the process? The program must not find a listener that it does not know,
// and a signal must act as if we were not there, so Node's own listeners are not used: a signal that nobody listens to is caught
// by a handle below them, and only while something is left to be sent. In a callback that a recorded call has begun in, and
// whenever nothing is left, the signal has its default action: a request that never comes to its end can be interrupted.
//
//   released --(recorded; the callback is over)--> armed --(a call begins)--> released, armed again after the callback
//                                                    |----(nothing is left, or the program listens)--> released
//
// libuv writes a signal that it catches into a pipe and forgets it if the handle has stopped by the time the loop reads the pipe.
// So a handle stops for good only right after the loop has read it, in the check phase, and by closing: libuv keeps a closed
// handle for another turn of the loop while a signal for it is in the pipe, which tells that one came in the moment between.
//
// Where the program begins to listen, in the middle of a callback, a signal that came earlier in it lies in the pipe for our
// handle only, and one that comes later for Node's, too. So ours stays until the loop has surely read the pipe, and what it has
// got more often than the program's listeners were told is sent again: it comes late, but is neither lost nor delivered twice.
//
// A busy server has more callbacks with recorded calls in a second than may be released for the price (`RELEASES_MAX`). In the
// others a signal waits for the loop: if one of them never ends, SIGTERM, SIGINT and SIGHUP do nothing, and only SIGKILL or
// SIGQUIT ends the process, unless TACHO_SIGNALS is false. No JavaScript runs that could tell that the loop stands still.
//
// Before: `../agent.js`. After: `farewell.js`, then the signal again.

import { createHook } from 'node:async_hooks';
import { constants } from 'node:os';

/** Those whose default is to end the process, and which leave time to say goodbye. */
const CAUGHT = /** @type {NodeJS.Signals[]} */ (['SIGTERM', 'SIGINT', 'SIGHUP']);
/**
 * So often between two calls of `look`, a second, signals get their default action back. Three handles are stopped and started
 * again for it, some 40 system calls that take 9 us: 0.2 % of a processor at most. Past that they stay caught.
 */
const RELEASES_MAX = 200;
/** Turns of the loop after which it has read every signal that came before: the first may have looked before that. */
const TURNS = 2;

/**
 * What Node's signal listeners are made of.
 * @typedef {object} Handle
 * @property {() => void} onsignal
 * @property {(number: number) => number} start
 * @property {() => void} stop
 * @property {() => void} unref
 * @property {(closed: () => void) => void} close
 */
/**
 * One signal that is caught.
 * @typedef {object} Caught
 * @property {NodeJS.Signals} name
 * @property {number} number
 * @property {Handle} handle
 * @property {boolean} isStarted
 * @property {number} untold once the program listens: how many more our handle has got than the program's listeners
 */

export class Signals {
  /**
   * @param {object} parts
   * @param {() => boolean} parts.hasNews whether something is left to be sent, and somewhere to send it to
   * @param {() => void} parts.last sends it
   */
  constructor({ hasNews, last }) {
    this.hasNews = hasNews;
    this.last = last;
    this.isArmed = false;
    this.isComing = false;
    this.isOver = false;
    this.isSettling = false;
    /** Whether signals have their default action until this callback is over. */
    this.isReleased = false;
    this.releases = 0;
    /** @type {(new () => Handle) | null} */
    this.Handle = null;
    /** @type {Caught[]} */
    this.caught = [];
    /** Those that the program has begun to listen to a moment ago. @type {Caught[]} */
    this.leaving = [];
  }

  /** Begins to catch signals. */
  start() {
    this.Handle = handleClass();
    if (this.Handle !== null) {
      this.caught = CAUGHT.map((name) => this.#catch(name, constants.signals[name]));
    }
  }

  /** Something was recorded: arms when the callback that runs now is over, with all that it awaits and can go on at once. */
  soon() {
    if (!this.isComing && !this.isArmed && this.caught.length > 0) {
      this.#armAfterCallback(() => this.hasNews() && this.#arm());
    }
  }

  /** A call begins. A signal that came before is not lost: the handle is started again before the loop asks. */
  release() {
    if (this.releases < RELEASES_MAX) {
      this.releases++;
      this.#stop();
      this.isReleased = true;
      this.#armAfterCallback(() => this.#arm());
    }
  }

  /** An answer is about to leave: whoever gets it may send a signal before this callback is over. */
  hold() {
    if (!this.isArmed && this.isComing) {
      this.#arm();
    }
  }

  /** Now and then: whether there still is something to wait for. */
  look() {
    this.releases = 0;
    this.settle();
    if (!this.isArmed && this.hasNews()) {
      this.soon();
    }
  }

  /** The server may have everything now: then signals are not caught any more. */
  settle() {
    if (this.isArmed && !this.hasNews() && !this.isSettling) {
      this.isSettling = true;
      setImmediate(() => {
        this.isSettling = false;
        if (this.isArmed && !this.hasNews()) {
          this.#retire();
        }
      });
    }
  }

  /** @param {unknown} event the program is about to listen to */
  listens(event) {
    const at = this.caught.findIndex(({ name }) => name === event);
    const one = this.caught[at];
    if (one?.isStarted || (this.isReleased && one !== undefined)) {
      this.caught[at] = this.#catch(one.name, one.number);
      this.#leave(one);
    }
  }

  /** @param {unknown} event that the program's listeners are told of now */
  told(event) {
    for (const one of this.leaving) {
      if (one.name === event) {
        one.untold--;
      }
    }
  }

  /** The process is about to end: from now on signals act as they would without us. */
  end() {
    this.isOver = true;
    this.#stop();
    this.leaving.forEach(stopOne);
  }

  /** @param {NodeJS.Signals} name @param {number} number @returns {Caught} */
  #catch(name, number) {
    const handle = new /** @type {new () => Handle} */ (this.Handle)();
    handle.unref();
    const one = { name, number, handle, isStarted: false, untold: 0 };
    handle.onsignal = () => this.#came(one);
    return one;
  }

  /** In the check phase: gives signals their default action back, and takes what came since the loop looked as caught. */
  #retire() {
    this.isArmed = false;
    this.caught = this.caught.map((one) => {
      if (!one.isStarted) {
        return one;
      }
      let isClosed = false;
      one.handle.close(() => (isClosed = true)); // before the loop goes on, unless a signal is in the pipe
      setImmediate(() => isClosed || this.#act(one));
      return this.#catch(one.name, one.number);
    });
  }

  /** The program is about to listen to it. @param {Caught} one */
  #leave(one) {
    this.leaving.push(one);
    one.handle.onsignal = () => one.untold++;
    startOne(one); // where it was released: then what is in the pipe for it counts again
    afterTurns(TURNS, () => {
      stopOne(one); // waits for another thread that handles a signal now
      setImmediate(() => {
        one.handle.close(() => {});
        this.leaving = this.leaving.filter((other) => other !== one);
        if (one.untold > 0 && !this.isOver) {
          this.#act(one);
        }
      });
    });
  }

  /** @param {() => void} arm */
  #armAfterCallback(arm) {
    this.isComing = true;
    // The first tick comes before what the callback has promised, the second one after it, and both before the loop goes on.
    process.nextTick(() =>
      queueMicrotask(() =>
        process.nextTick(() => {
          this.isComing = false;
          arm();
        }),
      ),
    );
  }

  #arm() {
    if (this.isOver) {
      return;
    }
    this.isReleased = false;
    for (const one of this.caught) {
      if (process.listenerCount(one.name) === 0) {
        startOne(one);
      }
    }
    this.isArmed = true;
  }

  #stop() {
    this.caught.forEach(stopOne);
    this.isArmed = false;
    this.isReleased = false;
  }

  /** @param {Caught} one */
  #came(one) {
    if (process.listenerCount(one.name) === 0) {
      this.#act(one); // otherwise the program has got it, too
    }
  }

  /** A signal that nobody but us has got. @param {Caught} one */
  #act({ name, number }) {
    if (process.listenerCount(name) === 0) {
      this.last();
      this.end();
    }
    kill.call(process, process.pid, number);
  }
}

/** Node aborts where a handle is started twice. @param {Caught} one */
function startOne(one) {
  one.isStarted ||= one.handle.start(one.number) === 0;
}

/** @param {Caught} one */
function stopOne(one) {
  if (one.isStarted) {
    one.isStarted = false;
    one.handle.stop();
  }
}

/** @param {number} turns of the loop, at least @param {() => void} then in the check phase */
function afterTurns(turns, then) {
  setImmediate(() => (turns > 1 ? afterTurns(turns - 1, then) : then()));
}

const { kill } = process;

/**
 * The class of the handles below Node's listeners: seen where one is made, since there is no other way to it that says nothing.
 * @returns {(new () => Handle) | null}
 */
function handleClass() {
  /** @type {any} */
  let found = null;
  const hook = createHook({
    init(_id, type, _trigger, resource) {
      if (type === 'SIGNALWRAP') {
        found = resource.constructor;
      }
    },
  });
  const listener = () => {};
  hook.enable();
  try {
    process.on('SIGWINCH', listener);
  } finally {
    process.removeListener('SIGWINCH', listener);
    hook.disable();
  }
  const isHandle = typeof found?.prototype?.start === 'function' && typeof found.prototype.stop === 'function';
  return isHandle ? found : null;
}
