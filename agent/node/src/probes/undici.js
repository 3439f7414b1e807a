// Records requests sent by `fetch` or undici. Uses the channels of undici, also those of the copy of undici inside Node.
// Otherwise it works like `http-client.js`. After: `../record/recorder.js`.

import diagnostics from 'node:diagnostics_channel';
import { current } from '../record/context.js';
import { KIND, STATE } from '../wire/constants.js';
import { Names, knownMethod, pathOf } from './names.js';

const HOSTS_MAX = 512;
const FAILED_FROM = 500;

/** @type {import('./index.js').Probe} */
export function install({ recorder, guard }) {
  const names = new Names(recorder.dictionary, KIND.HTTP_CLIENT, HOSTS_MAX);
  /** @type {WeakMap<object, { call: import('../record/strand.js').Call, status: number }>} */
  const calls = new WeakMap();

  const created = guard((/** @type {any} */ { request }) => {
    const host = String(request.origin).replace(/^https?:\/\//, '');
    const operation = names.operation(knownMethod(request.method), host);
    const isOff = recorder.states[operation] === STATE.OFF;
    const call = isOff ? current() : recorder.enter(current(), operation);
    const header = recorder.traceparent(call);
    if (header !== null && !hasHeader(request.headers, 'traceparent')) {
      request.addHeader('traceparent', header);
    }
    if (isOff || call === undefined) {
      return; // The operation is switched off, so the header names the enclosing call.
    }
    recorder.attribute(call, 'http.path', pathOf(request.path));
    calls.set(request, { call, status: 0 });
  });

  const headers = guard((/** @type {any} */ { request, response }) => {
    const entry = calls.get(request);
    if (entry !== undefined) {
      entry.status = response.statusCode;
    }
  });

  const ended = guard((/** @type {any} */ { request, error }) => {
    const entry = calls.get(request);
    if (entry === undefined) {
      return;
    }
    const { call, status } = entry;
    recorder.attribute(call, 'http.status', status > 0 ? status : undefined);
    if (error !== undefined || status >= FAILED_FROM) {
      recorder.fail(call, error);
    } else {
      recorder.exit(call);
    }
  });

  diagnostics.subscribe('undici:request:create', created);
  diagnostics.subscribe('undici:request:headers', headers);
  diagnostics.subscribe('undici:request:trailers', ended);
  diagnostics.subscribe('undici:request:error', ended);
}

/**
 * @param {string | unknown[] | undefined} headers lines of text, or names and values alternately
 * @param {string} name in lower case
 */
function hasHeader(headers, name) {
  if (typeof headers === 'string') {
    return `\r\n${headers}`.toLowerCase().includes(`\r\n${name}:`);
  }
  return Array.isArray(headers) && headers.some((part, at) => at % 2 === 0 && String(part).toLowerCase() === name);
}
