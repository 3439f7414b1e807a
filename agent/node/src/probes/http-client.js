// Records requests sent by `http` and `https` as calls of kind http-client. The calls that the receiving server records are their
// children. In Node 18 and 20 the diagnostics channel reports a request only after its header is written, so `request` and
// `get` are replaced. After: `../record/recorder.js`.

import { errorMonitor } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import { current } from '../record/context.js';
import { KIND, STATE } from '../wire/constants.js';
import { Names, knownMethod, pathOf } from './names.js';

const HOSTS_MAX = 512;
const FAILED_FROM = 500;

/** @typedef {import('node:http').ClientRequest} ClientRequest */

/** @type {import('./index.js').Probe} */
export function install({ recorder, guard }) {
  const names = new Names(recorder.dictionary, KIND.HTTP_CLIENT, HOSTS_MAX);

  /** Called for a new request. Usually its header is not sent yet. */
  const made = guard((/** @type {ClientRequest} */ request, /** @type {boolean} */ isSecure) => {
    const operation = names.operation(knownMethod(request.method), authority(request, isSecure));
    const isOff = recorder.states[operation] === STATE.OFF;
    const call = isOff ? current() : recorder.enter(current(), operation);
    const header = recorder.traceparent(call);
    if (header !== null && !request.headersSent && !request.hasHeader('traceparent')) {
      request.setHeader('traceparent', header);
    }
    if (isOff || call === undefined) {
      return; // The operation is switched off, so the header names the enclosing call.
    }
    recorder.attribute(call, 'http.path', pathOf(request.path));
    /** @type {unknown} */
    let error;
    request.once(errorMonitor, (thrown) => {
      error = thrown;
    });
    const closed = guard(() => {
      const response = /** @type {any} */ (request).res;
      const status = response?.statusCode;
      recorder.attribute(call, 'http.status', status);
      if (error !== undefined || status === undefined || status >= FAILED_FROM) {
        recorder.fail(call, error);
      } else {
        recorder.exit(call);
      }
    });
    request.once('close', closed);
  });

  for (const [module, isSecure] of /** @type {[any, boolean][]} */ ([
    [http, false],
    [https, true],
  ])) {
    const original = module.request;
    const request = function request(/** @type {any[]} */ ...args) {
      const made_ = original.apply(module, args);
      made(made_, isSecure);
      return made_;
    };
    module.request = request;
    module.get = function get(/** @type {any[]} */ ...args) {
      const sent = request(...args);
      sent.end();
      return sent;
    };
  }
  syncBuiltinESMExports();
}

/** @param {ClientRequest} request @param {boolean} isSecure */
function authority(request, isSecure) {
  const host = request.getHeader('host');
  return typeof host === 'string' ? host : `${request.host}${isSecure ? ':443' : ''}`;
}
