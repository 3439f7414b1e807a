// Which requests come in? Each is a call of kind http-server, the root of its trace here, child of who called it (`traceparent`).
// Node says on a channel that a request has come, before the program sees it. After: `../record/recorder.js`.

import diagnostics from 'node:diagnostics_channel';
import { become } from '../record/context.js';
import { parse } from '../record/traceparent.js';
import { KIND } from '../wire/constants.js';
import { Names, knownMethod, pathOf, routeOf } from './names.js';

/** Routes of one process; more than this many are an attack or a naming fault. */
const ROUTES_MAX = 1_024;
const FAILED_FROM = 500;

/** @type {WeakMap<object, { call: import('../record/strand.js').Call, request: any }>} */
const calls = new WeakMap();

/** @type {import('./index.js').Probe} */
export function install({ recorder, config, guard }) {
  const names = new Names(recorder.dictionary, KIND.HTTP_SERVER, ROUTES_MAX);
  const idHeaders = config.request_id_headers.map((name) => name.toLowerCase());

  const closed = guard(
    /** @this {import('node:http').ServerResponse} */ function () {
      const { call, request } = /** @type {any} */ (calls.get(this));
      const route = request.route?.path; // Express, and routers like it
      if (typeof route === 'string') {
        recorder.attribute(call, 'http.route', typeof request.baseUrl === 'string' ? request.baseUrl + route : route);
      }
      if (this.headersSent) {
        recorder.attribute(call, 'http.status', this.statusCode);
      }
      // One that was not answered whole: the client went away, or the program dropped it.
      if (this.statusCode >= FAILED_FROM || !this.writableFinished) {
        recorder.fail(call);
      } else {
        recorder.exit(call);
      }
    },
  );

  const started = guard((/** @type {any} */ message) => {
    const { request, response } = message;
    const path = pathOf(request.url);
    const operation = names.operation(knownMethod(request.method), routeOf(path));
    const call = recorder.enterFrom(parse(request.headers.traceparent), operation);
    recorder.attribute(call, 'http.path', path);
    const idHeader = idHeaders.find((name) => typeof request.headers[name] === 'string');
    if (idHeader !== undefined) {
      recorder.attribute(call, 'request.id', request.headers[idHeader]);
    }
    become(call);
    calls.set(response, { call, request });
    response.once('close', closed);
  });
  diagnostics.subscribe('http.server.request.start', started);
}
