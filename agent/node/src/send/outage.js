// Does a person know that the server is away? Each outage is told, at most one a minute, and its end with what was lost. One that
// comes too soon after the last is told when the minute is over; those that are past by then are told in one line.
// Before: `link.js`. After: `../log.js`.

const REPEAT_MS = 60_000;

export class Outage {
  /**
   * @param {string} server
   * @param {import('./totals.js').Totals} totals
   * @param {import('../log.js').Log} log
   */
  constructor(server, totals, log) {
    this.server = server;
    this.totals = totals;
    this.log = log;
    this.isOn = false;
    this.isTold = false;
    this.beganAt = 0;
    /** A connection was lost, in this outage or an earlier one. */
    this.wasConnected = false;
    this.toldAt = -Infinity;
    /** Calls, samples and entries: dropped when it began, and dropped in those whose end was not told. */
    this.before = [0, 0, 0];
    this.lost = [0, 0, 0];
    /** Outages that are past and were not told. */
    this.untold = 0;
  }

  /** What was dropped so far: calls, samples and entries. */
  dropped() {
    const { callsDropped, samplesDropped, entriesDropped } = this.totals;
    return [callsDropped, samplesDropped, entriesDropped];
  }

  /**
   * A connection, or a try to make one.
   * @param {number} now ms of any clock that never goes back
   * @param {boolean} wasOpen
   * @param {string} why
   * @param {number[]} before what was dropped before it failed
   */
  failed(now, wasOpen, why, before = this.dropped()) {
    if (!this.isOn) {
      this.isOn = true;
      this.isTold = false;
      this.beganAt = now;
      this.before = before;
    }
    this.wasConnected ||= wasOpen;
    if (this.isTold || now - this.toldAt < REPEAT_MS) {
      return;
    }
    this.isTold = true;
    this.toldAt = now;
    const what = this.wasConnected ? 'lost the server' : 'cannot reach the server';
    this.log.say(`${what} ${this.server}: ${why}; the program goes on, the agent keeps trying`);
  }

  /**
   * There is a connection.
   * @param {number} now as for `failed`
   */
  over(now) {
    if (!this.isOn) {
      this.log.say(`connected to ${this.server}`);
      return;
    }
    this.isOn = false;
    const dropped = this.dropped();
    this.lost = this.lost.map((count, at) => count + dropped[at] - this.before[at]);
    if (!this.isTold) {
      this.untold++;
      this.look(now);
      return;
    }
    const what = this.wasConnected ? 'connected again to' : 'connected to';
    this.log.say(`${what} ${this.server} after ${Math.floor((now - this.beganAt) / 1_000)} s; ${this.#takeLost()}`);
  }

  /**
   * To be called now and then: is it time to tell of outages that are past?
   * @param {number} now as for `failed`
   */
  look(now) {
    if (now - this.toldAt >= REPEAT_MS) {
      this.tellPast(now);
    }
  }

  /**
   * Tells of them whatever the time, unless another one is on.
   * @param {number} now as for `failed`
   */
  tellPast(now) {
    if (this.isOn || this.untold === 0) {
      return;
    }
    this.toldAt = now;
    const often = this.untold === 1 ? 'once' : `${this.untold} times`;
    this.log.say(`connected to ${this.server} again; it was away ${often} since the last line; ${this.#takeLost()}`);
  }

  /** What was dropped and is told by this; from now on nothing is untold. */
  #takeLost() {
    const [calls, samples, entries] = this.lost;
    this.lost = [0, 0, 0];
    this.untold = 0;
    const counts = `${calls} calls, ${samples} samples and ${entries} entries were`;
    return `${calls + samples + entries > 0 ? counts : 'nothing was'} dropped meanwhile`;
  }
}
