// Names of requests. If the route is not known, it is guessed from the path: `/ads/17/pictures/3` becomes
// `/ads/{id}/pictures/{id}`. The number of names of each kind is bounded. A further name becomes `GET (other)`, or only `GET` at
// the start of a request. Before: the HTTP probes. After: `../wire/dictionary.js`.

import { KIND } from '../wire/constants.js';
import { OTHER } from '../wire/dictionary.js';

/** Limit on names with a route; more of them indicate wrong naming. */
const ROUTES_MAX = 2_048;
/** Limit on names with a guessed route; more of them indicate paths that contain data, such as names of users. */
const GUESSES_MAX = 1_024;
/** Limit on names with a route that is guessed at the start of a request; some of these paths end in 404. */
const EARLY_MAX = 512;
const NOT_FOUND = 404;
const METHODS = new Set(['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS', 'TRACE', 'CONNECT']);
const ROUTE_PARTS_MAX = 8;
const PART_CHARS_MAX = 40;
const HEX_CHARS_MIN = 16;
/** Limit on paths with a cached route. */
const PATHS_MAX = 1_024;
const PATH_CHARS_MAX = 256;

/** @type {Map<string, string>} */
const routes = new Map();

/**
 * The method if it is a known one, otherwise `OTHER`: a client can send any word.
 * @param {string | undefined} method
 */
export function knownMethod(method) {
  return method !== undefined && METHODS.has(method) ? method : 'OTHER';
}

/**
 * The path without query and fragment.
 * @param {string} url as in the request line
 */
export function pathOf(url) {
  const end = url.search(/[?#]/);
  return end < 0 ? url : url.slice(0, end);
}

/** @param {string} path */
export function routeOf(path) {
  const known = routes.get(path);
  if (known !== undefined) {
    return known;
  }
  const route = guess(path);
  if (path.length <= PATH_CHARS_MAX && routes.size < PATHS_MAX) {
    routes.set(path, route);
  }
  return route;
}

/** @param {string} path */
function guess(path) {
  const end = path.indexOf(';');
  const parts = (end < 0 ? path : path.slice(0, end)).split('/', ROUTE_PARTS_MAX + 2);
  if (parts[0] === '') {
    parts.shift();
  }
  const rest = parts.length > ROUTE_PARTS_MAX ? '/...' : '';
  return '/' + parts.slice(0, ROUTE_PARTS_MAX).map(shape).join('/') + rest;
}

/**
 * A part of a path becomes `{id}` if it has only digits and hyphens, such as a number or a date, if it is a UUID or another long
 * hexadecimal string with a digit, or if it is too long to be a word.
 * @param {string} part
 */
function shape(part) {
  if (part.length > PART_CHARS_MAX) {
    return '{id}';
  }
  const isHex = /^[0-9a-f-]+$/i.test(part) && /[0-9]/.test(part);
  const isId = isHex && (/^[0-9-]+$/.test(part) || part.replaceAll('-', '').length >= HEX_CHARS_MIN);
  return isId ? '{id}' : part;
}

/** Operations with names that are assembled at run time, such as `GET /ads/{id}`. */
export class Names {
  /**
   * @param {import('../wire/dictionary.js').Dictionary} dictionary
   * @param {number} kind
   * @param {number} countMax
   */
  constructor(dictionary, kind, countMax) {
    this.dictionary = dictionary;
    this.kind = kind;
    this.countMax = countMax;
    /** @type {Map<string, number>} */
    this.known = new Map();
  }

  /** @param {string} prefix kept beyond the limit on names @param {string} rest */
  operation(prefix, rest) {
    const name = `${prefix} ${rest}`;
    const known = this.known.get(name);
    if (known !== undefined) {
      return known;
    }
    if (this.known.size >= this.countMax) {
      return this.dictionary.operation(this.kind, `${prefix} ${OTHER}`);
    }
    const id = this.dictionary.operation(this.kind, name);
    this.known.set(name, id);
    return id;
  }

  /**
   * As `operation`, for a name that may change later.
   * @param {string} prefix
   * @param {string} rest
   * @returns {number | undefined} undefined for a new name beyond the limit
   */
  early(prefix, rest) {
    return this.known.get(`${prefix} ${rest}`) ?? (this.known.size < this.countMax ? this.operation(prefix, rest) : undefined);
  }
}

/**
 * Names of incoming requests. A name contains the route of the program's framework. Without a route it is a guess: the path
 * with ids replaced; after a 404 it is `(not found)`. Routes, guesses, and guesses at the start of a request have separate
 * bounds. So guesses do not displace routes, and paths that end in 404 do not displace paths that exist.
 */
export class ServerNames {
  /** @param {import('../wire/dictionary.js').Dictionary} dictionary */
  constructor(dictionary) {
    this.dictionary = dictionary;
    this.routes = new Names(dictionary, KIND.HTTP_SERVER, ROUTES_MAX);
    this.guesses = new Names(dictionary, KIND.HTTP_SERVER, GUESSES_MAX);
    this.beginnings = new Names(dictionary, KIND.HTTP_SERVER, EARLY_MAX);
  }

  /**
   * The operation before the route is known. Its name has a guess, or only the method if there are too many guesses.
   * @param {string} method
   * @param {string} path
   */
  early(method, path) {
    const guess = routeOf(path);
    return (
      this.guesses.known.get(`${method} ${guess}`) ??
      this.beginnings.early(method, guess) ??
      this.dictionary.operation(KIND.HTTP_SERVER, method)
    );
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {number} status 0 if unknown
   * @param {string | undefined} route of the framework
   */
  final(method, path, status, route) {
    if (route !== undefined) {
      return this.routes.operation(method, route);
    }
    if (status === NOT_FOUND) {
      return this.dictionary.operation(KIND.HTTP_SERVER, `${method} (not found)`);
    }
    return this.guesses.operation(method, routeOf(path));
  }
}
