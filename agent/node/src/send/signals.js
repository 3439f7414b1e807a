// Sends the last records before a signal ends the process. The program must not see an additional listener, and a signal must act
// as without the agent, so Node's own listeners are not used. A signal without listeners is caught by a handle below Node's
// listeners, and only while there is unsent data. A signal has its default action while there is no unsent data, and in a
// callback in which a recorded call has begun. So a request that never ends can be interrupted.
//
//   released --(recorded; the callback is over)--> armed --(a call begins)--> released, armed again after the callback
//                                                    |----(nothing is left, or the program listens)--> released
//
// libuv writes a caught signal into a pipe and discards it if the handle has stopped by the time the loop reads the pipe. So
// the agent gives up a handle only in the check phase, right after the loop has read the pipe, and closes the handle. While a
// signal for a closed handle is in the pipe, libuv keeps the handle for another turn of the loop. This delay shows that a signal
// arrived after the read.
//
// If the program adds a listener in the middle of a callback, the pipe may have earlier signals that only the agent's handle
// gets, and later signals that Node's handle gets, too. So the agent's handle stays until the loop has certainly read the pipe.
// The agent then sends the signals again that only its own handle received. The program gets them late, but each exactly once.
//
// Signals are released in at most `RELEASES_MAX` callbacks per second because of the cost. A busy server has more callbacks with
// recorded calls. In those beyond the limit, a signal waits for the loop. If such a callback never ends, SIGTERM, SIGINT and
// SIGHUP have no effect: a blocked loop runs no other JavaScript, so the agent cannot detect this. Signals that the agent does
// not catch, such as SIGKILL and SIGQUIT, still end the process. If TACHO_SIGNALS is false, the agent catches no signal.
//
// Before: `../agent.js`. After: `farewell.js`, then the signal is sent again.

import { createHook } from 'node:async_hooks';
import { constants } from 'node:os';

/** The signals with which users and service managers normally end a program. */
const CAUGHT = /** @type {NodeJS.Signals[]} */ (['SIGTERM', 'SIGINT', 'SIGHUP']);
/**
 * Limit on releases per second (between two calls of `look`). A release gives signals their default action. It stops and starts
 * three handles, some 40 system calls that take 9 us in total, so releases take at most 0.2 % of a processor. Beyond the limit,
 * signals stay caught.
 */
const RELEASES_MAX = 200;
/**
 * Number of turns of the loop after which every earlier signal has been read. In the first turn the loop may have read the pipe
 * before the signal arrived.
 */
const TURNS = 2;

/**
 * The base of Node's signal listeners.
 * @typedef {object} Handle
 * @property {() => void} onsignal
 * @property {(number: number) => number} start
 * @property {() => void} stop
 * @property {() => void} unref
 * @property {(closed: () => void) => void} close
 */
/**
 * A caught signal.
 * @typedef {object} Caught
 * @property {NodeJS.Signals} name
 * @property {number} number
 * @property {Handle} handle
 * @property {boolean} isStarted
 * @property {number} untold number of signals that only the agent's handle received after the program began to listen
 */

export class Signals {
  /**
   * @param {object} parts
   * @param {() => boolean} parts.hasNews true if this thread has unsent data and is connected or connecting, or if another thread
   * has unsent data
   * @param {() => void} parts.last sends the data
   */
  constructor({ hasNews, last }) {
    this.hasNews = hasNews;
    this.last = last;
    this.isArmed = false;
    this.isComing = false;
    this.isOver = false;
    this.isSettling = false;
    /** True if signals have their default action until the current callback ends. */
    this.isReleased = false;
    this.releases = 0;
    /** @type {(new () => Handle) | null} */
    this.Handle = null;
    /** @type {Caught[]} */
    this.caught = [];
    /** Signals that the program has just begun to listen to. @type {Caught[]} */
    this.leaving = [];
  }

  start() {
    this.Handle = handleClass();
    if (this.Handle !== null) {
      this.caught = CAUGHT.map((name) => this.#catch(name, constants.signals[name]));
    }
  }

  /**
   * Called when something was recorded. Catches signals again when the current callback and its immediate continuations are over.
   */
  soon() {
    if (!this.isComing && !this.isArmed && this.caught.length > 0) {
      this.#armAfterCallback(() => this.hasNews() && this.#arm());
    }
  }

  /**
   * Called when a call begins. Releases signals. A signal that arrived before the release is not lost, because the handle is
   * started again before the loop reads the pipe.
   */
  release() {
    if (this.releases < RELEASES_MAX) {
      this.releases++;
      this.#stop();
      this.isReleased = true;
      this.#armAfterCallback(() => this.#arm());
    }
  }

  /** Catches signals before a response is sent, because its receiver may send a signal before this callback is over. */
  hold() {
    if (!this.isArmed && this.isComing) {
      this.#arm();
    }
  }

  /** Called periodically: checks whether there is unsent data, and permits new releases. */
  look() {
    this.releases = 0;
    this.settle();
    if (!this.isArmed && this.hasNews()) {
      this.soon();
    }
  }

  /** Called when the server may have all data. If it has, signals are released. */
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

  /** @param {unknown} event for which the program is about to add a listener */
  listens(event) {
    const at = this.caught.findIndex(({ name }) => name === event);
    const one = this.caught[at];
    if (one?.isStarted || (this.isReleased && one !== undefined)) {
      this.caught[at] = this.#catch(one.name, one.number);
      this.#leave(one);
    }
  }

  /** @param {unknown} event for which the program's listeners are called */
  told(event) {
    for (const one of this.leaving) {
      if (one.name === event) {
        one.untold--;
      }
    }
  }

  /** Called when the process is about to end. From then on signals act as without the agent. */
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

  /**
   * Runs in the check phase. Gives signals their default action, and treats signals that arrived since the last read as caught.
   */
  #retire() {
    this.isArmed = false;
    this.caught = this.caught.map((one) => {
      if (!one.isStarted) {
        return one;
      }
      let isClosed = false;
      one.handle.close(() => (isClosed = true)); // called before the loop continues, unless a signal is in the pipe
      setImmediate(() => isClosed || this.#act(one));
      return this.#catch(one.name, one.number);
    });
  }

  /** Called when the program is about to listen to the signal. @param {Caught} one */
  #leave(one) {
    this.leaving.push(one);
    one.handle.onsignal = () => one.untold++;
    startOne(one); // if a release has stopped the handle, libuv would discard the signals in the pipe
    afterTurns(TURNS, () => {
      stopOne(one); // waits until no other thread is handling a signal
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
    // The first tick runs before the callback's promises, the second tick after them; both run before the loop continues.
    process.nextTick(() =>
      queueMicrotask(() =>
        process.nextTick(() => {
          this.isComing = false;
          arm();
        }),
      ),
    );
    // Set last: if the stack overflows in `nextTick`, no tick resets the flag.
    this.isComing = true;
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
      this.#act(one); // the program's listeners did not receive the signal
    }
  }

  /** Handles a signal that only the agent received. @param {Caught} one */
  #act({ name, number }) {
    if (process.listenerCount(name) === 0) {
      this.last();
      this.end();
    }
    kill.call(process, process.pid, number);
  }
}

/** Node aborts if a handle is started twice. @param {Caught} one */
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

/** @param {number} turns minimum number of turns of the loop @param {() => void} then is called in the check phase */
function afterTurns(turns, then) {
  setImmediate(() => (turns > 1 ? afterTurns(turns - 1, then) : then()));
}

const { kill } = process;

/**
 * The class of the handles below Node's listeners. The class is not public, so this function captures it while Node creates a
 * handle.
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
