// Identity of this process: the labels of its series and the pairs of HELLO. Before: `config.js`. After: `send/protocol.js`.

import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';

const VERSION = '0.1.0';
/** Generic names of files and directories, which do not identify a program. */
const COMMON = new Set(['index', 'main', 'server', 'app', 'start', 'www', 'cli', 'bin', 'src', 'dist', 'lib', 'build']);
const FOLDERS_MAX = 8;

/**
 * @param {import('./config.js').Config} config
 * @returns {{ service: string, host: string, instance: string }}
 */
export function labels(config) {
  const host = config.host || process.env.HOSTNAME || hostname() || 'unknown';
  return { service: config.service || serviceOf(process.argv[1]), host, instance: config.instance || `${host}:${process.pid}` };
}

/**
 * The labels, and attributes of the runtime.
 * @param {Record<string, string>} of
 * @returns {[string, string][]}
 */
export function pairs(of) {
  return [
    ...Object.entries(of),
    ['runtime', `Node.js ${process.versions.node}`],
    ['vm', `V8 ${process.versions.v8}`],
    ['os', `${process.platform} ${process.arch}`],
    ['pid', String(process.pid)],
    ['agent', `tachograph-node ${VERSION}`],
    ['control', '1'], // supports rules of the server
  ];
}

/**
 * The name in the nearest package.json with a name. The search begins in the directory of the script and ends at most seven
 * directories above it. If it finds no name: the name of the file or, if this name is generic and that of its directory is not,
 * the name of the directory. Without a script: `node`.
 * @param {string | undefined} script
 */
export function serviceOf(script) {
  if (script === undefined || script === '') {
    return 'node';
  }
  let folder = dirname(script);
  for (let up = 0; up < FOLDERS_MAX; up++, folder = dirname(folder)) {
    try {
      const { name } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      if (typeof name === 'string' && name !== '') {
        return name;
      }
    } catch {
      // This directory has no readable package.json.
    }
    if (folder === dirname(folder)) {
      break;
    }
  }
  const name = basename(script, extname(script));
  const parent = basename(dirname(script));
  return COMMON.has(name) && parent !== '' && !COMMON.has(parent) ? parent : name;
}
