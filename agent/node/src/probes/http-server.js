// Records incoming requests as calls of kind http-server. Such a call is the root of its trace in this process, and a child of
// the caller that `traceparent` names. A channel of Node reports a request before the program sees it. After:
// `../record/recorder.js`.

import diagnostics from 'node:diagnostics_channel';
import { ServerResponse } from 'node:http';
import { become } from '../record/context.js';
import { parse } from '../record/traceparent.js';
import { STATE } from '../wire/constants.js';
import { ServerNames, knownMethod, pathOf } from './names.js';
import { routes } from './routes.js';

const FAILED_FROM = 500;

/** @typedef {import('node:http').IncomingMessage} Request */
/** @typedef {import('node:http').ServerResponse} Response */

/** @type {import('./index.js').Probe} */
export function install({ recorder, config, guard }) {
  const names = new ServerNames(recorder.dictionary);
  const routeOfRequest = guard(routes({ guard }));
  const idHeaders = config.request_id_headers.map((name) => name.toLowerCase());

  const closed = guard(
    (
      /** @type {import('../record/strand.js').Call} */ call,
      /** @type {string} */ method,
      /** @type {string} */ path,
      /** @type {any} */ request,
      /** @type {Response} */ response,
    ) => {
      const route = routeOfRequest(request);
      const status = response.headersSent ? response.statusCode : 0;
      recorder.rename(call, names.final(method, path, status, route));
      recorder.attribute(call, 'http.route', route);
      if (status !== 0) {
        recorder.attribute(call, 'http.status', status);
      }
      // An answer is incomplete if the client has disconnected, or if the program has dropped the request.
      if (response.statusCode >= FAILED_FROM || !response.writableFinished) {
        recorder.fail(call);
      } else {
        recorder.exit(call);
      }
    },
  );

  const started = guard((/** @type {any} */ message) => {
    const { request, response } = message;
    const path = pathOf(request.url);
    const method = knownMethod(request.method);
    const operation = names.early(method, path);
    if (recorder.states[operation] === STATE.OFF) {
      return;
    }
    const call = recorder.enterFrom(parse(header(request, 'traceparent')), operation);
    recorder.attribute(call, 'http.path', path);
    for (const name of idHeaders) {
      const id = header(request, name);
      if (id !== undefined) {
        recorder.attribute(call, 'request.id', id);
        break;
      }
    }
    become(call);
    response.on('close', () => closed(call, method, path, request, response));
  });
  diagnostics.subscribe('http.server.request.start', started);
  const { prototype } = ServerResponse;
  const { writeHead } = prototype;
  /** @this {any} */
  prototype.writeHead = function (/** @type {any[]} */ ...args) {
    recorder.signals.hold();
    return Reflect.apply(writeHead, this, args);
  };
  for (const key of ['name', 'length']) {
    Object.defineProperty(prototype.writeHead, key, { value: /** @type {any} */ (writeHead)[key], configurable: true });
  }
}

/**
 * The first header of this name. Does not create the object of all headers, because the program may never read it.
 * @param {Request} request
 * @param {string} name in lower case
 * @returns {string | undefined}
 */
function header({ rawHeaders }, name) {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const found = rawHeaders[at];
    if (found.length === name.length && (found === name || found.toLowerCase() === name)) {
      return rawHeaders[at + 1];
    }
  }
  return undefined;
}
