// Logs an outage of the server in one line, and its end in another line with the number of dropped records. If an outage begins
// less than a minute after the latest logged one, it is logged when that minute is over; all outages that have ended by then
// share one line. A new reason for which the server refuses the token is logged immediately. Before: `link.js`. After:
// `drops.js`, `../log.js`.

import * as messages from '../messages.js';
import { Drops } from './drops.js';

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
    this.drops = new Drops(totals, log);
    this.isOn = false;
    this.isTold = false;
    this.beganAt = 0;
    /** True if a connection was lost, in this outage or an earlier one. */
    this.wasConnected = false;
    this.toldAt = -Infinity;
    /** The last refusal of the token. */
    this.refusal = '';
    /**
     * Counts of calls, samples and entries. `before`: dropped before this outage. `lost`: dropped in outages whose end was
     * not logged.
     */
    this.before = [0, 0, 0];
    this.lost = [0, 0, 0];
    /** Number of ended outages that were not logged. */
    this.untold = 0;
  }

  /** Calls, samples and entries dropped so far. */
  dropped() {
    const { callsDropped, samplesDropped, entriesDropped } = this.totals;
    return [callsDropped, samplesDropped, entriesDropped];
  }

  /**
   * A connection, or an attempt to connect, has failed.
   * @param {number} now ms of any monotonic clock
   * @param {boolean} wasOpen
   * @param {string} why
   * @param {number[]} [before] dropped before the failure
   * @param {boolean} [isOfToken] the server refuses the token. Such a reason is logged immediately if it is new, because it needs
   * an action of the user.
   */
  failed(now, wasOpen, why, before = this.dropped(), isOfToken = false) {
    if (!this.isOn) {
      this.isOn = true;
      this.isTold = false;
      this.beganAt = now;
      this.before = before;
    }
    this.wasConnected ||= wasOpen;
    const isNews = isOfToken && why !== this.refusal;
    if (isNews) {
      this.refusal = why;
    } else if (this.isTold || now - this.toldAt < REPEAT_MS) {
      return;
    }
    this.isTold = true;
    this.toldAt = now;
    const message = this.wasConnected ? messages.serverLost : messages.serverUnreachable;
    this.log.say(message(this.server, why));
  }

  /**
   * A connection is open.
   * @param {number} now as for `failed`
   */
  over(now) {
    if (!this.isOn) {
      this.log.say(messages.connected(this.server));
      return;
    }
    this.isOn = false;
    const dropped = this.dropped();
    this.drops.told += dropped[0] - this.before[0];
    this.lost = this.lost.map((count, at) => count + dropped[at] - this.before[at]);
    if (!this.isTold) {
      this.untold++;
      this.look(now);
      return;
    }
    const message = this.wasConnected ? messages.reconnectedAfter : messages.connectedAfter;
    this.log.say(message(this.server, Math.floor((now - this.beganAt) / 1_000), this.#takeLost()));
  }

  /**
   * Called periodically: logs ended outages and dropped calls when the next line is allowed.
   * @param {number} now as for `failed`
   */
  look(now) {
    if (!this.isOn) {
      this.drops.look(now);
    }
    if (now - this.toldAt >= REPEAT_MS) {
      this.tellPast(now);
    }
  }

  /**
   * Logs ended outages immediately, unless another one is in progress.
   * @param {number} now as for `failed`
   */
  tellPast(now) {
    if (this.isOn || this.untold === 0) {
      return;
    }
    this.toldAt = now;
    const often = this.untold === 1 ? messages.ONCE : messages.times(this.untold);
    this.log.say(messages.reconnected(this.server, often, this.#takeLost()));
  }

  /** The text with the numbers of dropped records, for one line. Marks all ended outages as logged. */
  #takeLost() {
    const [calls, samples, entries] = this.lost;
    this.lost = [0, 0, 0];
    this.untold = 0;
    return calls + samples + entries > 0 ? messages.droppedSome(calls, samples, entries) : messages.DROPPED_NOTHING;
  }
}
