// What is a request called? A raw path in, a route with few values out: `/ads/17/pictures/3` is `/ads/{id}/pictures/{id}`.
// Bounded: past so many names of a kind the rest is `(other)`. Before: the HTTP probes. After: `../wire/dictionary.js`.

import { OTHER } from '../wire/dictionary.js';

const METHODS = new Set(['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH', 'OPTIONS', 'TRACE', 'CONNECT']);
const ROUTE_PARTS_MAX = 8;
const PART_CHARS_MAX = 40;
const HEX_CHARS_MIN = 16;
/** Paths whose route is remembered. */
const PATHS_MAX = 1_024;
const PATH_CHARS_MAX = 256;

/** @type {Map<string, string>} */
const routes = new Map();

/**
 * The methods that may be part of a name; a client can send any word.
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
 * A number, a UUID, a long hexadecimal string, or anything too long to be a word, becomes `{id}`.
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

/** Operations whose names are put together from parts at run time, such as `GET /ads/{id}`. */
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

  /** @param {string} prefix what is kept when there is no room for more names @param {string} rest */
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
}
