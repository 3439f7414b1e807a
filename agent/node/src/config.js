// Reads the values of the settings in `settings.js` from the environment. A wrong value is reported with the valid form and the
// value used instead, usually the default, so that the program starts. Before: the environment. After: `agent.js`.

import { isIPv6 } from 'node:net';
import * as messages from './messages.js';
import { Secret } from './secret.js';
import { OTHERS, SETTINGS } from './settings.js';

/**
 * The settings, and a warning for each that is wrong or has no effect.
 * @typedef {import('./settings.js').Settings & { warnings: string[] }} Config
 */

/** Names that the setting `probes` accepts. The code of the probes is listed in `probes/index.js`. */
export const PROBES = /** @type {const} */ (['http-server', 'http-client', 'undici', 'pg']);
/** @typedef {(typeof PROBES)[number]} ProbeName */

const DURATIONS = { ms: 1, s: 1_000, m: 60_000, '': 1 };
const SIZES = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, '': 1 };
const PORT = 7071;
/** Replaces a blank path: no file has this name, so the agent does not connect. An empty path means no encryption or no token. */
const UNUSABLE = { value: '<blank>', fault: messages.expected('the path of a file'), used: '<blank>' };
/** Settings to which `UNUSABLE` applies. */
const FILES = ['tls_ca', 'token_file'];
/** Names within this edit distance are treated as typing errors. */
const DISTANCE_MAX = 2;

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
      // The blanks of a secret are kept, so that they are reported as a fault.
      const given = type === 'secret' ? text : text.trim();
      const isUnusable = FILES.includes(name) && isBlank(text);
      const { value, fault, used } = isUnusable ? UNUSABLE : read(type, given, fallback, ...bounds);
      config[name] = value;
      if (fault !== '') {
        config.warnings.push(messages.settingWrong(variable, text, fault, used));
      }
    } else if (OTHERS.has(name)) {
      config.warnings.push(messages.settingElsewhere(variable, 'Node.js'));
    } else {
      // Variables of other programs may have this prefix, so only likely typing errors are reported.
      const [near] = Object.keys(SETTINGS).sort((a, b) => distance(a, name) - distance(b, name));
      if (distance(near, name) <= DISTANCE_MAX) {
        config.warnings.push(messages.settingNear(variable, `TACHO_${near.toUpperCase()}`));
      }
    }
  }
  if (config.tls_ca === '') {
    const useless = ['tls_client_cert', 'tls_client_key'].filter((name) => config[name] !== '');
    config.warnings.push(...useless.map((name) => messages.tlsUseless(name)));
  }
  return config;
}

/**
 * Parses the text of a setting. `value` is the value to use, and `used` is the same value as text. If the text is wrong, `fault`
 * is a message with the valid form, otherwise it is empty.
 * @param {import('./settings.js').Type} type
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
      return /^(true|false)$/i.test(text) ? right(text.toLowerCase() === 'true') : instead(messages.expected(messages.FORM_FLAG));
    case 'duration':
    case 'size': {
      const units = type === 'size' ? SIZES : DURATIONS;
      const value = scaled(text, units);
      if (value === null) {
        return instead(messages.expected(type === 'size' ? messages.FORM_SIZE : messages.FORM_DURATION));
      }
      if (value < (scaled(least, units) ?? 0)) {
        return instead(messages.neededAtLeast(least));
      }
      return value > (scaled(most, units) ?? Infinity) ? instead(messages.allowedAtMost(most)) : right(value);
    }
    case 'secret':
      return right(new Secret(text));
    case 'list':
      return right(list(text));
    case 'probes': {
      const given = list(text);
      const known = given.filter((name) => name === '*' || PROBES.some((probe) => name === probe || name === `-${probe}`));
      if (given.length === known.length) {
        return right(given);
      }
      const value = known.length > 0 ? known : list(fallback);
      return { value, fault: messages.probesExpected(PROBES.join(', ')), used: value.join(',') };
    }
    case 'address': {
      const value = address(text);
      return value === null ? instead(messages.expected(messages.FORM_ADDRESS)) : right(value);
    }
    default:
      return right(text);
  }
}

/** True for a text that is not empty, but has only blanks. @param {string} text */
const isBlank = (text) => text !== '' && text.trim() === '';

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
 * True if a probe is to be installed. The list has `*`, names, and `-name` for excluded probes.
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
 * The Levenshtein distance of two texts.
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
