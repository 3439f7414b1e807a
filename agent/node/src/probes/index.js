// The list of probes. A probe has a file, its import and a line of `PROBES` here, and its name in `../config.js`. Before:
// `../agent.js`.

import { isProbeWanted } from '../config.js';
import * as httpClient from './http-client.js';
import * as httpServer from './http-server.js';
import { onLoad } from './load.js';
import * as pg from './pg.js';
import * as undici from './undici.js';

/**
 * @typedef {object} Surroundings
 * @property {import('../record/recorder.js').Recorder} recorder
 * @property {import('../config.js').Config} config
 * @property {import('../log.js').Log} log
 * @property {<F extends (this: any, ...args: any[]) => any>(fn: F) => F} guard returns a function that never throws into the
 *     program
 */

/** @typedef {(surroundings: Surroundings) => void} Probe */

/** Names as in `../config.js`. @type {Record<import('../config.js').ProbeName, Probe>} */
const PROBES = {
  'http-server': httpServer.install,
  'http-client': httpClient.install,
  undici: undici.install,
  pg: (surroundings) => onLoad(surroundings.guard, pg.isPg, (exports) => pg.change(exports, surroundings)),
};

/** @param {Omit<Surroundings, 'guard'>} given */
export function install(given) {
  const guard = makeGuard(given.log);
  for (const [name, probe] of Object.entries(PROBES)) {
    if (isProbeWanted(given.config.probes, name)) {
      guard(probe)({ ...given, guard });
    }
  }
}

/**
 * Returns `guard`. A function that `guard` returns logs internal errors, each at most once a minute, and never throws.
 * @param {import('../log.js').Log} log
 * @returns {Surroundings['guard']}
 */
export function makeGuard(log) {
  return (fn) =>
    /** @type {any} */ (
      /** @this {any} */ function (/** @type {any[]} */ ...args) {
        try {
          return fn.apply(this, args);
        } catch (error) {
          const where = error instanceof Error ? error.stack : error;
          log.sayOnce(`fault ${error}`, `code of the agent failed, the program continues: ${where}`);
          return undefined;
        }
      }
    );
}
