// The settings. `agent/settings.toml` defines them for the agents of all languages. Before: the environment. After: `config.js`,
// which reads values.

/** @typedef {'text' | 'secret' | 'flag' | 'duration' | 'size' | 'list' | 'probes' | 'address'} Type */

/**
 * Type, default, and the bounds of a size or duration. The bounds themselves are allowed values.
 * @typedef {[type: Type, fallback: string, least?: string, most?: string]} Row
 */

// generated: settings (cargo xtask generate, from agent/settings.toml)
/** @type {Record<string, Row>} */
export const SETTINGS = {
  enabled: ['flag', 'true'],
  server: ['address', '127.0.0.1:7071'],
  tls_ca: ['text', ''],
  tls_client_cert: ['text', ''],
  tls_client_key: ['text', ''],
  token: ['secret', ''],
  token_file: ['text', ''],
  insecure_token: ['flag', 'false'],
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

/**
 * Durations are in ms, sizes in bytes.
 * @typedef {object} Settings
 * @property {boolean} enabled
 * @property {{ host: string, port: number }} server
 * @property {string} tls_ca
 * @property {string} tls_client_cert
 * @property {string} tls_client_key
 * @property {import('./secret.js').Secret} token
 * @property {string} token_file
 * @property {boolean} insecure_token
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
 */
// generated: end

/** Settings that only other agents have. They are not errors, because several agents may share an environment. */
// generated: others (cargo xtask generate, from agent/settings.toml)
export const OTHERS = new Set([
  'include',
  'aggregate',
  'aggregate_above',
  'overhead_max',
  'traces_max',
  'exclude',
  'patterns_checked_after',
  'when_full',
  'block_max',
  'buffer',
  'threads_max',
  'strands_max',
  'virtual_buffer',
  'virtual_threads_max',
  'children',
]);
// generated: end
