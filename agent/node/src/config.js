// Reads the settings from the environment, with the names of the Java agent where the meaning is the same. A wrong value is
// reported with the valid form, and the default applies: a program never fails because of a setting of its agent. Before: the
// environment. After: `agent.js`.

import { isIPv6 } from 'node:net';

/** @typedef {'text' | 'flag' | 'duration' | 'size' | 'list' | 'probes' | 'address'} Type */

/**
 * All settings: type, default, and the bounds of a number, inclusive.
 * @type {Record<string, [type: Type, fallback: string, least?: string, most?: string]>}
 */
const SETTINGS = {
  enabled: ['flag', 'true'],
  server: ['address', '127.0.0.1:7071'],
  service: ['text', ''],
  host: ['text', ''],
  instance: ['text', ''],
  probes: ['probes', '*'],
  request_id_headers: ['list', 'X-Request-Id,X-Correlation-ID'],
  database_messages: ['flag', 'false'],
  pending: ['size', '16MiB', '64KiB', '1024GiB'],
  queue: ['size', '16MiB', '64KiB', '1024GiB'],
  flush_max: ['duration', '1500ms', '0', '1440m'],
  signals: ['flag', 'true'],
  samplers: ['flag', 'true'],
  sample_interval: ['duration', '5s', '100ms', '1440m'],
  log: ['text', ''],
  log_detail: ['flag', 'false'],
};

/** Settings of other agents: not an error in a shared environment, but reported, since a user may rely on them. */
const OTHERS = new Set(
  (
    'include exclude aggregate aggregate_above overhead_max traces_max patterns_checked_after when_full block_max buffer ' +
    'threads_max strands_max virtual_buffer virtual_threads_max children'
  ).split(' '),
);

/** Names in the setting `probes`; their code: `probes/index.js`. */
export const PROBES = /** @type {const} */ (['http-server', 'http-client', 'undici', 'pg']);
/** @typedef {(typeof PROBES)[number]} ProbeName */

const DURATIONS = { ms: 1, s: 1_000, m: 60_000, '': 1 };
const SIZES = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, '': 1 };
const PORT = 7071;
/** Names within this edit distance are treated as typing errors. */
const DISTANCE_MAX = 2;

/**
 * Durations are in ms, sizes in bytes.
 * @typedef {object} Config
 * @property {boolean} enabled
 * @property {{ host: string, port: number }} server
 * @property {string} service
 * @property {string} host
 * @property {string} instance
 * @property {string[]} probes
 * @property {string[]} request_id_headers
 * @property {boolean} database_messages
 * @property {number} pending
 * @property {number} queue
 * @property {number} flush_max
 * @property {boolean} signals
 * @property {boolean} samplers
 * @property {number} sample_interval
 * @property {string} log
 * @property {boolean} log_detail
 * @property {string[]} warnings messages about wrong settings
 */

/**
 * @param {Record<string, string | undefined>} environment
 * @returns {Config}
 */
export function load(environment) {
  /** @type {any} */
  const config = { warnings: [] };
  for (const [name, [type, fallback]] of Object.entries(SETTINGS)) {
    config[name] = read(type, fallback).value;
  }
  for (const [variable, text] of Object.entries(environment)) {
    if (!variable.startsWith('TACHO_') || text === undefined) {
      continue;
    }
    const name = variable.slice('TACHO_'.length).toLowerCase();
    if (Object.hasOwn(SETTINGS, name)) {
      const [type, fallback, ...bounds] = SETTINGS[name];
      const { value, fault, used } = read(type, text.trim(), fallback, ...bounds);
      config[name] = value;
      if (fault !== '') {
        config.warnings.push(wrong(variable, text, fault, used));
      }
    } else if (OTHERS.has(name)) {
      config.warnings.push(`${variable}: not a setting of the Node.js agent`);
    } else {
      // Other programs with this prefix have settings too, so only likely typing errors are reported.
      const [near] = Object.keys(SETTINGS).sort((a, b) => distance(a, name) - distance(b, name));
      if (distance(near, name) <= DISTANCE_MAX) {
        config.warnings.push(`${variable}: there is no such setting, did you mean TACHO_${near.toUpperCase()}?`);
      }
    }
  }
  return config;
}

/**
 * The message about an ignored value: the same form in all agents.
 * @param {string} setting
 * @param {string} value
 * @param {string} allowed
 * @param {string} used
 */
export function wrong(setting, value, allowed, used) {
  return `${setting}=${value}: ${allowed}; using ${used}`;
}

/**
 * Parses a text: the value to use; the valid form, if the text is wrong; and then the used value in the notation of a setting.
 * @param {Type} type
 * @param {string} text
 * @param {string} fallback
 * @param {string} least
 * @param {string} most
 * @returns {{ value: unknown, fault: string, used: string }}
 */
function read(type, text, fallback = '', least = '', most = '') {
  const instead = (/** @type {string} */ fault) => ({ ...read(type, fallback), fault, used: fallback });
  const right = (/** @type {unknown} */ value) => ({ value, fault: '', used: text });
  switch (type) {
    case 'flag':
      return /^(true|false)$/i.test(text) ? right(text.toLowerCase() === 'true') : instead('expected true or false');
    case 'duration':
    case 'size': {
      const units = type === 'size' ? SIZES : DURATIONS;
      const value = scaled(text, units);
      if (value === null) {
        return instead(type === 'size' ? 'expected a size such as 16MiB' : 'expected a duration such as 100ms or 5s');
      }
      if (value < (scaled(least, units) ?? 0)) {
        return instead(`at least ${least} is needed`);
      }
      return value > (scaled(most, units) ?? Infinity) ? instead(`at most ${most} is allowed`) : right(value);
    }
    case 'list':
      return right(list(text));
    case 'probes': {
      const given = list(text);
      const known = given.filter((name) => name === '*' || PROBES.some((probe) => name === probe || name === `-${probe}`));
      if (given.length === known.length) {
        return right(given);
      }
      const value = known.length > 0 ? known : list(fallback);
      return { value, fault: `expected names out of ${PROBES.join(', ')}, or -name, or *`, used: value.join(',') };
    }
    case 'address': {
      const value = address(text);
      return value === null ? instead('expected host:port') : right(value);
    }
    default:
      return right(text);
  }
}

/** @param {string} text */
function list(text) {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** @param {string} text @param {Record<string, number>} units */
function scaled(text, units) {
  const match = /^([0-9]{1,15})\s*([A-Za-z]*)$/.exec(text);
  return match !== null && Object.hasOwn(units, match[2]) ? Number(match[1]) * units[match[2]] : null;
}

/** @param {string} text `host`, `host:port`, `[::1]:port`, `::1` */
function address(text) {
  if (isIPv6(text)) {
    return { host: text, port: PORT };
  }
  const match = /^(?:\[([^\]\s]+)\]|([^:[\]\s/]+))(?::([0-9]{1,5}))?$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = match?.[3] === undefined ? PORT : Number(match[3]);
  return host === undefined || port < 1 || port > 65_535 ? null : { host, port };
}

/**
 * Whether a probe is to be installed: `*`, a name, or `-name` to exclude one.
 * @param {string[]} wanted
 * @param {string} name
 */
export function isProbeWanted(wanted, name) {
  if (wanted.includes(`-${name}`)) {
    return false;
  }
  return wanted.includes(name) || wanted.includes('*') || (wanted.length > 0 && wanted.every((probe) => probe.startsWith('-')));
}

/**
 * Levenshtein (1966).
 * @param {string} a
 * @param {string} b
 */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1), row[j] + 1, next[j - 1] + 1));
    }
    row = next;
  }
  return row[b.length];
}
