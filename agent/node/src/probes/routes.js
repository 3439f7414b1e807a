// Finds the route of a request in the program's framework, at the end of the request. Before: `http-server.js`.
//
//   Express (also in Nest)    stores the route in the request
//   Fastify 5 (also in Nest)  publishes the route on a channel before the handler runs
//   Fastify 4 and 5           publishes each new server on a channel; a hook that the agent adds to the server gets the request
//                             with its route. Fastify 5 needs the hook only for requests that another hook answers, because
//                             these reach no handler
//   Koa                       has a context for each request, in which @koa/router stores the route

import diagnostics from 'node:diagnostics_channel';
import { onLoad } from './load.js';
import { routeOf } from './names.js';

/**
 * @param {Pick<import('./index.js').Surroundings, 'guard'>} surroundings
 * @returns {(request: any) => string | undefined}
 */
export function routes({ guard }) {
  /** Request of Node, and the route that Fastify 5 published. @type {WeakMap<object, string>} */
  const told = new WeakMap();
  /** Request of Node, and its context of Koa. @type {WeakMap<object, any>} */
  const contexts = new WeakMap();
  /** Request of Node, and its request of Fastify, which has the route. @type {WeakMap<object, any>} */
  const requests = new WeakMap();
  const handled = guard((/** @type {any} */ { request, route }) => {
    if (typeof route?.url === 'string' && request?.is404 !== true) {
      told.set(request.raw, route.url);
    }
  });
  diagnostics.subscribe('tracing:fastify.request.handler:start', handled);
  const came = guard((/** @type {any} */ request) => requests.set(request.raw, request));
  const made = guard((/** @type {any} */ { fastify }) => {
    fastify.addHook('onRequest', (/** @type {any} */ request, /** @type {unknown} */ _reply, /** @type {() => void} */ next) => {
      came(request);
      next();
    });
  });
  diagnostics.subscribe('fastify.initialization', made);
  onLoad(guard, isKoa, (Koa) => {
    const { prototype } = Koa.default ?? Koa;
    const { createContext } = prototype;
    prototype.createContext = function (/** @type {any[]} */ ...args) {
      const context = Reflect.apply(createContext, this, args);
      contexts.set(args[0], context);
      return context;
    };
  });
  return (request) => told.get(request) ?? ofFastify(requests.get(request)) ?? ofKoa(contexts.get(request)) ?? ofExpress(request);
}

/** @param {any} request */
function ofFastify(request) {
  if (request === undefined || request.is404) {
    return undefined;
  }
  const options = request.routeOptions;
  const url = options === undefined ? request.routerPath : options.url; // `routerPath` before Fastify 4.10
  return typeof url === 'string' ? url : undefined;
}

/** @param {any} context */
function ofKoa(context) {
  const route = context?._matchedRoute;
  return route === undefined || route === null ? undefined : String(route);
}

/**
 * The mount path of the router, followed by the pattern of the route. Express gives only the current value of the mount path, not
 * its pattern, so parts that look like ids are replaced in it.
 * @param {any} request
 */
function ofExpress({ route, baseUrl }) {
  const path = route?.path;
  if (path === undefined || path === null || typeof path === 'function') {
    return undefined;
  }
  return typeof baseUrl === 'string' && baseUrl !== '' ? `${routeOf(baseUrl)}${path}` : String(path);
}

/** @param {string} name of a module, or its file */
function isKoa(name) {
  return name === 'koa' || /[\\/]koa[\\/]lib[\\/]application\.js$/.test(name);
}
