// Parsing of texts: paths of requests, headers, settings, names of modules and scripts.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isProbeWanted, load } from '../src/config.js';
import { serviceOf } from '../src/identity.js';
import { isPg } from '../src/probes/pg.js';
import { Names, ServerNames, knownMethod, pathOf, routeOf } from '../src/probes/names.js';
import { format, parse } from '../src/record/traceparent.js';
import { Dictionary } from '../src/wire/dictionary.js';

// Nearly all of these cases are also in `RouteTest` of the Java agent.
const ROUTES = [
  ['/', '/'],
  ['', '/'],
  ['/ads', '/ads'],
  ['/ads/', '/ads/'],
  ['/ads/17', '/ads/{id}'],
  ['/ads/-17/edit', '/ads/{id}/edit'],
  ['/ads/2026-11-21', '/ads/{id}'],
  ['/users/550e8400-e29b-41d4-a716-446655440000', '/users/{id}'],
  ['/objects/5f2b8c9d1e3a4b6c8d7e9f01', '/objects/{id}'],
  ['/v2/beef', '/v2/beef'],
  ['/a1b2', '/a1b2'],
  ['/facade/decade', '/facade/decade'],
  ['/ads;jsessionid=17', '/ads'],
  ['/ads?id=17', '/ads'],
  ['/ads#17', '/ads'],
  [`/x/${'a'.repeat(48)}`, '/x/{id}'],
  ['/a/b/c/d/e/f/g/h/i/j', '/a/b/c/d/e/f/g/h/...'],
  ['/a/b/c/d/e/f/g/h', '/a/b/c/d/e/f/g/h'],
  ['ads/17', '/ads/{id}'],
];
for (const [url, route] of ROUTES) {
  test(`the route of ${url} is ${route}`, () => assert.equal(routeOf(pathOf(url)), route));
}

test('names of requests are bounded, and unknown methods are replaced', () => {
  const names = new Names(new Dictionary(), 2, 3);
  const ids = ['/a', '/b', '/c', '/d', '/e', '/a'].map((route) => names.operation('GET', route));
  assert.equal(new Set(ids).size, 4);
  assert.equal(ids[3], ids[4]);
  assert.equal(ids[0], ids[5]);
  assert.deepEqual(['GET', 'get', 'BREW', undefined].map(knownMethod), ['GET', 'OTHER', 'OTHER', 'OTHER']);
});

test('paths that end in 404 do not use up the names for paths that exist', () => {
  const dictionary = new Dictionary();
  const names = new ServerNames(dictionary);
  for (let at = 0; at < 1_000; at++) {
    names.early('GET', `/scanned-x${at}`);
    names.final('GET', `/scanned-x${at}`, 404, undefined);
  }
  assert.equal(names.early('GET', '/real'), names.early('GET', '/scanned-x999'), 'both must have the method alone as name');
  const ids = new Set();
  for (let at = 0; at < 1_000; at++) {
    const id = names.final('GET', `/real-x${at}`, 200, undefined);
    assert.equal(names.early('GET', `/real-x${at}`), id);
    ids.add(id);
  }
  assert.equal(ids.size, 1_000);
});

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const HEADERS = [
  [`00-${TRACE}-${SPAN}-01`, true],
  [`00-${TRACE}-${SPAN}-00`, true],
  [`cc-${TRACE}-${SPAN}-00-what the future brings`, true],
  [`ff-${TRACE}-${SPAN}-01`, false],
  [`00-${TRACE}-${SPAN}-01-more`, false],
  [`cc-${TRACE}-${SPAN}-01x`, false],
  [`00-${'0'.repeat(32)}-${SPAN}-01`, false],
  [`00-${TRACE}-${'0'.repeat(16)}-01`, false],
  [`00-${TRACE}-${SPAN}-0x`, false],
  [`00-${TRACE.toUpperCase()}-${SPAN}-01`, false],
  [`00_${TRACE}-${SPAN}-01`, false],
  [`0g-${TRACE}-${SPAN}-01`, false],
  ['', false],
  ['00', false],
  [undefined, false],
  [['a', 'b'], false],
];
for (const [header, isValid] of HEADERS) {
  test(`traceparent ${header} is ${isValid ? 'valid' : 'invalid'}`, () => {
    const remote = parse(header);
    assert.equal(remote !== null, isValid);
    if (remote !== null) {
      assert.equal(format(Buffer.from(remote.trace).toString('hex'), remote.span), `00-${TRACE}-${SPAN}-01`);
    }
  });
}

const SETTINGS = [
  ['TACHO_SERVER', 'tacho.example:9', 'server', { host: 'tacho.example', port: 9 }],
  ['TACHO_SERVER', 'tacho', 'server', { host: 'tacho', port: 7071 }],
  ['TACHO_SERVER', '[::1]:80', 'server', { host: '::1', port: 80 }],
  ['TACHO_SERVER', '::1', 'server', { host: '::1', port: 7071 }],
  ['TACHO_SERVICE', ' shop ', 'service', 'shop'],
  ['TACHO_ENABLED', 'FALSE', 'enabled', false],
  ['TACHO_QUEUE', '64KiB', 'queue', 65_536],
  ['TACHO_QUEUE', '100000', 'queue', 100_000],
  ['TACHO_QUEUE', '1024GiB', 'queue', 2 ** 40],
  ['TACHO_FLUSH_MAX', '2s', 'flush_max', 2_000],
  ['TACHO_FLUSH_MAX', '0', 'flush_max', 0],
  ['TACHO_SAMPLE_INTERVAL', '100', 'sample_interval', 100],
  ['TACHO_SAMPLE_INTERVAL', '1440m', 'sample_interval', 86_400_000],
  ['TACHO_SAMPLE_INTERVAL', '250ms', 'sample_interval', 250],
  ['TACHO_SAMPLE_INTERVAL', '1m', 'sample_interval', 60_000],
  ['TACHO_PROBES', 'pg, undici', 'probes', ['pg', 'undici']],
  ['TACHO_PROBES', '*,-pg', 'probes', ['*', '-pg']],
];
for (const [variable, text, name, value] of SETTINGS) {
  test(`${variable}=${text} is valid`, () => {
    const config = load({ [variable]: text, PATH: '/bin' });
    assert.deepEqual(config[name], value);
    assert.deepEqual(config.warnings, []);
  });
}

const NAMES = 'expected * or names, each with or without a leading -; the names are http-server, http-client, undici, pg';
const FAULTS = [
  ['TACHO_SERVER', 'a:b:c', 'expected host:port; using 127.0.0.1:7071'],
  ['TACHO_SERVER', 'a:0', 'expected host:port; using 127.0.0.1:7071'],
  ['TACHO_SERVER', 'a:65536', 'expected host:port; using 127.0.0.1:7071'],
  ['TACHO_SERVER', 'http://a:7071', 'expected host:port; using 127.0.0.1:7071'],
  ['TACHO_SERVER', 'a/b', 'expected host:port; using 127.0.0.1:7071'],
  ['TACHO_SERVER', '', 'expected host:port; using 127.0.0.1:7071'],
  ['TACHO_TLS_CA', ' ', 'expected the path of a file; using <blank>', { tls_ca: '<blank>' }],
  ['TACHO_ENABLED', 'yes', 'expected true or false; using true'],
  ['TACHO_LOG_DETAIL', '', 'expected true or false; using false'],
  ['TACHO_QUEUE', '16MB', 'expected a size such as 16MiB; using 16MiB'],
  ['TACHO_QUEUE', '5', 'at least 64KiB is needed; using 16MiB'],
  ['TACHO_QUEUE', '65535', 'at least 64KiB is needed; using 16MiB'],
  ['TACHO_QUEUE', '1025GiB', 'at most 1024GiB is allowed; using 16MiB'],
  ['TACHO_PENDING', '0', 'at least 64KiB is needed; using 16MiB'],
  ['TACHO_FLUSH_MAX', '-1s', 'expected a duration such as 100ms or 5s; using 1500ms'],
  ['TACHO_FLUSH_MAX', '1441m', 'at most 1440m is allowed; using 1500ms'],
  ['TACHO_SAMPLE_INTERVAL', '0', 'at least 100ms is needed; using 5s'],
  ['TACHO_SAMPLE_INTERVAL', '1.5s', 'expected a duration such as 100ms or 5s; using 5s'],
  ['TACHO_PROBES', 'nosuch', `${NAMES}; using *`],
  ['TACHO_PROBES', 'pg,-nosuch', `${NAMES}; using pg`, { probes: ['pg'] }],
];
for (const [variable, text, expected, changed] of FAULTS) {
  test(`${variable}=${text} is invalid`, () => {
    const config = load({ [variable]: text });
    assert.deepEqual(config, { ...load({}), ...changed, warnings: [`${variable}=${text}: ${expected}`] });
  });
}

test('a likely typing error is reported, and variables of other programs are ignored', () => {
  const { warnings } = load({ TACHO_SERVIC: 'x', TACHO_AGENT_JAR: '/a.jar', TACHO: '/bin/tacho', TACHO_DATA: '/var/lib/tacho' });
  assert.deepEqual(warnings, ['TACHO_SERVIC: there is no such setting, did you mean TACHO_SERVICE?']);
});

test('each setting of other agents is reported once and has no effect', () => {
  const names = (
    'INCLUDE EXCLUDE AGGREGATE AGGREGATE_ABOVE OVERHEAD_MAX TRACES_MAX PATTERNS_CHECKED_AFTER WHEN_FULL BLOCK_MAX BUFFER ' +
    'THREADS_MAX STRANDS_MAX VIRTUAL_BUFFER VIRTUAL_THREADS_MAX CHILDREN'
  ).split(' ');
  const config = load(Object.fromEntries(names.map((name) => [`TACHO_${name}`, 'shop..*'])));
  const warnings = names.map((name) => `TACHO_${name}: not a setting of the Node.js agent`);
  assert.deepEqual(config, { ...load({}), warnings });
});

const WANTED = [
  ['*', true, true],
  ['pg', true, false],
  ['-pg', false, true],
  ['*,-pg', false, true],
  ['undici', false, true],
  ['', false, false],
];
for (const [text, isPgWanted, isUndiciWanted] of WANTED) {
  test(`TACHO_PROBES=${text} selects the probes`, () => {
    const { probes } = load({ TACHO_PROBES: text });
    assert.deepEqual([isProbeWanted(probes, 'pg'), isProbeWanted(probes, 'undici')], [isPgWanted, isUndiciWanted]);
  });
}

const MODULES = [
  ['pg', true],
  ['/app/node_modules/pg/lib/index.js', true],
  ['C:\\app\\node_modules\\pg\\lib\\index.js', true],
  ['pg-pool', false],
  ['/app/node_modules/pgx/lib/index.js', false],
  ['./lib/index.js', false],
];
for (const [name, is] of MODULES) {
  test(`${name} is ${is ? '' : 'not '}pg`, () => assert.equal(isPg(name), is));
}

const SCRIPTS = [
  [undefined, 'node'],
  [new URL('.', import.meta.url).pathname + 'x.js', 'tachograph'],
  ['/nowhere/shop/index.js', 'shop'],
  ['/nowhere/shop/cart.mjs', 'cart'],
  ['/index.js', 'index'],
];
for (const [script, name] of SCRIPTS) {
  test(`the service of ${script?.split('/').slice(-2).join('/')} is ${name}`, () => assert.equal(serviceOf(script), name));
}
