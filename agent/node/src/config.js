// Which settings count? The environment's, by the names of the Java agent where the meaning is the same. A wrong value is
// named and the default counts: a program never fails because of a setting of its agent. Before: the environment. After:
// `agent.js`.

import { isIPv6 } from 'node:net';

/** @typedef {'text' | 'flag' | 'duration' | 'size' | 'list' | 'address'} Type */

/** Every setting, once: its type, and what counts where nothing is set. @type {Record<string, [Type, string]>} */
const SETTINGS = {
  enabled: ['flag', 'true'],
  server: ['address', '127.0.0.1:7071'],
  service: ['text', ''],
  host: ['text', ''],
  instance: ['text', ''],
  probes: ['list', '*'],
  request_id_headers: ['list', 'X-Request-Id,X-Correlation-ID'],
  pending: ['size', '16MiB'],
  queue: ['size', '16MiB'],
  flush_max: ['duration', '1500ms'],
  signals: ['flag', 'true'],
  samplers: ['flag', 'true'],
  sample_interval: ['duration', '5s'],
  log: ['text', ''],
  log_detail: ['flag', 'false'],
};

const EXPECTED = {
  text: 'a text',
  flag: 'true or false',
  duration: 'a duration such as 100ms or 5s',
  size: 'a size such as 16MiB',
  list: 'a list',
  address: 'host:port',
};

const DURATIONS = { ms: 1, s: 1_000, m: 60_000, '': 1 };
const SIZES = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, '': 1 };
const PORT = 7071;
/** Names with so many letters apart are taken for a slip. */
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
 * @property {number} pending
 * @property {number} queue
 * @property {number} flush_max
 * @property {boolean} signals
 * @property {boolean} samplers
 * @property {number} sample_interval
 * @property {string} log
 * @property {boolean} log_detail
 * @property {string[]} warnings what is wrong, one sentence each
 */

/**
 * @param {Record<string, string | undefined>} environment
 * @returns {Config}
 */
export function load(environment) {
  /** @type {any} */
  const config = { warnings: [] };
  for (const [name, [type, fallback]] of Object.entries(SETTINGS)) {
    config[name] = read(type, fallback);
  }
  for (const [variable, text] of Object.entries(environment)) {
    if (!variable.startsWith('TACHO_') || text === undefined) {
      continue;
    }
    const name = variable.slice('TACHO_'.length).toLowerCase();
    const setting = Object.hasOwn(SETTINGS, name) ? SETTINGS[name] : undefined;
    const value = setting === undefined ? null : read(setting[0], text.trim());
    if (setting !== undefined && value !== null) {
      config[name] = value;
    } else if (setting !== undefined) {
      const instead = setting[1] === '' ? 'the default' : setting[1];
      config.warnings.push(`${variable}: ${EXPECTED[setting[0]]} was expected, not "${text}"; using ${instead}`);
    } else {
      // Other programs of this name have settings too, so only what looks like a slip is named.
      const [near] = Object.keys(SETTINGS).sort((a, b) => distance(a, name) - distance(b, name));
      if (distance(near, name) <= DISTANCE_MAX) {
        config.warnings.push(`${variable}: there is no such setting, did you mean TACHO_${near.toUpperCase()}?`);
      }
    }
  }
  return config;
}

/**
 * @param {Type} type
 * @param {string} text
 * @returns {unknown} null if the text is not of the type
 */
function read(type, text) {
  switch (type) {
    case 'flag':
      return /^(true|false)$/i.test(text) ? text.toLowerCase() === 'true' : null;
    case 'duration':
      return scaled(text, DURATIONS);
    case 'size':
      return scaled(text, SIZES);
    case 'list':
      return text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '');
    case 'address':
      return address(text);
    default:
      return text;
  }
}

/** @param {string} text @param {Record<string, number>} units */
function scaled(text, units) {
  const match = /^([0-9]{1,9})\s*([A-Za-z]*)$/.exec(text);
  return match !== null && Object.hasOwn(units, match[2]) ? Number(match[1]) * units[match[2]] : null;
}

/** @param {string} text `host`, `host:port`, `[::1]:port`, `::1` */
function address(text) {
  if (isIPv6(text)) {
    return { host: text, port: PORT };
  }
  const match = /^(?:\[([^\]]+)\]|([^:[\]\s]+))(?::([0-9]{1,5}))?$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = match?.[3] === undefined ? PORT : Number(match[3]);
  return host === undefined || port < 1 || port > 65_535 ? null : { host, port };
}

/**
 * Whether a probe is to be installed: `*`, a name, or `-name` for all but that.
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
