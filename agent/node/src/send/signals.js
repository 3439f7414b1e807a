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
// Before: `../agent.js`. After: `farewell.js`, then the signal again.

import { createHook } from 'node:async_hooks';
import { constants } from 'node:os';

/** Those whose default is to end the process, and which leave time to say goodbye. */
const CAUGHT = /** @type {NodeJS.Signals[]} */ (['SIGTERM', 'SIGINT', 'SIGHUP']);
/** So often between two calls of `look` signals get their default action back, which takes 9 us; past that they stay caught. */
const RELEASES_MAX = 20;

/**
 * What Node's signal listeners are made of.
 * @typedef {object} Handle
 * @property {() => void} onsignal
 * @property {(number: number) => number} start
 * @property {() => void} stop
 * @property {() => void} unref
 * @property {(closed: () => void) => void} close
 */
/** @typedef {{ name: NodeJS.Signals, number: number, handle: Handle, isStarted: boolean }} Caught */

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
    this.releases = 0;
    /** @type {(new () => Handle) | null} */
    this.Handle = null;
    /** @type {Caught[]} */
    this.caught = [];
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
    const one = this.caught.find(({ name }) => name === event);
    if (one?.isStarted) {
      one.isStarted = false;
      one.handle.stop();
    }
  }

  /** The process is about to end: from now on signals act as they would without us. */
  end() {
    this.isOver = true;
    this.#stop();
  }

  /** @param {NodeJS.Signals} name @param {number} number @returns {Caught} */
  #catch(name, number) {
    const handle = new /** @type {new () => Handle} */ (this.Handle)();
    handle.unref();
    const one = { name, number, handle, isStarted: false };
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
    for (const one of this.caught) {
      if (!one.isStarted && process.listenerCount(one.name) === 0) {
        one.isStarted = one.handle.start(one.number) === 0;
      }
    }
    this.isArmed = true;
  }

  #stop() {
    for (const one of this.caught) {
      if (one.isStarted) {
        one.isStarted = false;
        one.handle.stop();
      }
    }
    this.isArmed = false;
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
