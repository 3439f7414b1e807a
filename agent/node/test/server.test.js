// Records of a real program arrive at a real server, also after failures of the program or the server.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Tacho, outline, run, start, until } from './support/tacho.js';
import { wiretap } from './support/wiretap.js';

/** @type {Tacho} */
let tacho;
before(async () => {
  tacho = await Tacho.start();
});
after(() => tacho.close());

const WAYS = [
  ['shop.js', ['--import', 'tachograph/register']],
  ['shop.cjs', ['--import', 'tachograph/register']],
  ['shop.cjs', ['--require', 'tachograph/register.cjs']],
  ['shop.js', ['--require', 'tachograph/register.cjs']],
];
for (const [program, flags] of WAYS) {
  test(`requests of ${program} with ${flags.join(' ')} are recorded`, async () => {
    const service = `${program} ${flags[0]}`;
    const { code, out, err } = await run(tacho, program, { flags, service });
    assert.deepEqual([code, out], [0, 'ok\n'], err);
    const host = /GET (127\.0\.0\.1:\d+)/.exec([...(await tacho.operations(service)).keys()].join('\n'))[1];
    const { traces } = await tacho.get('/api/traces', { service });
    assert.deepEqual(traces.map((trace) => [trace.operation, trace.outcome]).sort(), [
      [`GET ${host}`, 'failed'],
      [`GET ${host}`, 'ok'],
    ]);
    const ok = traces.find((trace) => trace.outcome === 'ok');
    const { spans } = await tacho.get(`/api/traces/${ok.trace_id}`);
    assert.deepEqual(outline(spans), [`GET ${host}`, '  GET /cart/{id}', `    GET ${host}`, '      GET /stock/{id}']);
    const [, cart, , stock] = spans;
    assert.deepEqual(cart.attributes, { 'http.path': '/cart/5', 'http.status': 200, 'request.id': 'cjs-1' });
    assert.deepEqual(stock.attributes, { 'http.path': '/stock/17', 'http.status': 200 });
    assert.deepEqual([cart.kind, spans[2].kind, cart.thread], ['http-server', 'http-client', 'main']);
    for (const [at, span] of spans.entries()) {
      assert.ok(at === 0 || span.duration_ns <= spans[at - 1].duration_ns, 'a call took longer than its caller');
    }
    const { traces: byId } = await tacho.get('/api/traces', { service, request_id: 'cjs-1' });
    assert.equal(byId.length, 1);
  });
}

const ENDINGS = [
  ['natural', 0, null, 'beforeExit 1\n'],
  ['exit', 4, null, ''],
  ['throw', 1, null, ''],
  ['signal', null, 'SIGTERM', ''],
  ['signal SIGINT', null, 'SIGINT', ''],
  ['signal 6', null, 'SIGABRT', ''],
  ['signal SIGIOT', null, 'SIGABRT', ''],
  ['signal SIGSEGV', null, 'SIGSEGV', ''],
  ['own handler', 3, null, ''],
];
for (const [how, code, signal, out] of ENDINGS) {
  for (const pause of [0, 400]) {
    test(`records arrive when the program ends after ${pause} ms: ${how}`, async () => {
      const service = `ending ${how} ${pause}`;
      const program = await run(tacho, 'endings.js', { args: [how, String(pause)], service });
      assert.deepEqual([program.code, program.signal, program.out], [code, signal, out], program.err);
      const operations = await tacho.operations(service);
      assert.equal(operations.get('inner')?.count, 100, program.err);
      if (how === 'own handler') assert.equal(operations.get('last').count, 1);
      // The agent's final counts. Such a short program sends no earlier counts.
      const ended = how === 'natural' || how === 'own handler' ? 101 : 100;
      const told = (name) => tacho.value(`tacho_agent_${name}_total{service="${service}",kind="execution"}`);
      assert.deepEqual([await told('sent'), await told('dropped')], [ended, 0]);
      const spans = await tacho.trace(service, 'outer');
      assert.equal(spans[0].outcome, how === 'natural' ? 'ok' : 'running');
    });
  }
}

test('without a server the program runs as usual and ends at once', async () => {
  const nowhere = { records: '127.0.0.1:1' };
  const ended = await run(nowhere, 'endings.js', { args: ['natural', '300'] });
  assert.deepEqual([ended.code, ended.out], [0, 'beforeExit 1\n']);
  const lines = ended.err.trim().split('\n');
  assert.match(lines[0], /cannot reach the server 127\.0\.0\.1:1: .*ECONNREFUSED.*; the program goes on/);
  assert.match(lines[1], /ends before the server has everything: \d+ bytes/);
  assert.equal(lines.length, 2, ended.err);
});

test('the program ends although the server never answers', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await new Promise((done) => silent.once('listening', done));
  const records = `127.0.0.1:${silent.address().port}`;
  const ended = await run({ records }, 'endings.js', { args: ['exit', '300'], env: { TACHO_FLUSH_MAX: '200ms' } });
  assert.equal(ended.code, 4);
  assert.match(ended.err, /ends before the server has everything/);
  silent.close();
});

for (const first of ['closes', 'resets', 'hangs']) {
  // After 0 ms the program ends during the first attempt.
  for (const pause of first === 'hangs' ? [0] : [0, 400]) {
    test(`records arrive if a server ${first} the first connection and the program ends after ${pause} ms`, async () => {
      const proxy = await wiretap(tacho, first, 1);
      try {
        const service = `${first} first, ${pause}`;
        const { code, err } = await run(proxy, 'endings.js', { args: ['exit', String(pause)], service });
        assert.equal(code, 4, err);
        assert.equal((await tacho.operations(service)).get('inner')?.count, 100, err);
        assert.equal(proxy.connections(), 2);
      } finally {
        proxy.close();
      }
    });
  }
}

test('another kind of server is logged', async () => {
  const other = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0, '127.0.0.1');
  await new Promise((done) => other.once('listening', done));
  const records = `127.0.0.1:${other.address().port}`;
  const ended = await run({ records }, 'endings.js', { args: ['natural', '300'] });
  assert.equal(ended.code, 0);
  assert.match(
    ended.err,
    /this is not the agent port of a tacho server: it answers with HTTP; agents connect to a different port/,
  );
  other.close();
});

test('a disabled agent does nothing', async () => {
  const service = 'off';
  const ended = await run(tacho, 'endings.js', { args: ['natural', '0'], service, env: { TACHO_ENABLED: 'false' } });
  assert.deepEqual([ended.code, ended.err], [0, '']);
  assert.equal((await tacho.operations(service)).size, 0);
});

test('wrong settings are logged, and the program starts', async () => {
  const env = { TACHO_QUEUE: 'much', TACHO_PROBES: '*,oracle', TACHO_SERVIC: 'x', TACHO_INCLUDE: 'shop..*' };
  const ended = await run(tacho, 'endings.js', { args: ['natural', '0'], env });
  assert.equal(ended.code, 0);
  const lines = ended.err.split('\n').map((line) => line.replace(/^\S+ /, ''));
  assert.deepEqual(lines.slice(0, 4), [
    'tachograph: TACHO_QUEUE=much: expected a size such as 16MiB; using 16MiB',
    'tachograph: TACHO_PROBES=*,oracle: expected * or names, each with or without a leading -; ' +
      'the names are http-server, http-client, undici, pg; using *',
    'tachograph: TACHO_SERVIC: there is no such setting, did you mean TACHO_SERVICE?',
    'tachograph: TACHO_INCLUDE: not a setting of the Node.js agent',
  ]);
});

test('an unwritable log is reported on standard error', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tachograph-node-log-'));
  try {
    const queue = /TACHO_QUEUE=5: at least 64KiB is needed; using 16MiB\n/;
    const absent = join(directory, 'no/such/log');
    const env = { TACHO_QUEUE: '5', TACHO_LOG: absent };
    const { err } = await run(tacho, 'endings.js', { args: ['natural', '0'], env });
    assert.match(err, queue);
    const why = `ENOENT: no such file or directory, open '${absent}'`;
    assert.ok(err.includes(`TACHO_LOG=${absent}: expected a writable file (${why}); using standard error\n`), err);
    const file = join(directory, 'agent.log');
    const written = await run(tacho, 'endings.js', { args: ['natural', '0'], env: { ...env, TACHO_LOG: file } });
    assert.equal(written.err, '');
    assert.match(readFileSync(file, 'utf8'), queue);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

test('the calls of a worker thread are recorded, and a wrong setting is logged only once', async () => {
  const ended = await run(tacho, 'threads.js', { service: 'threads', env: { TACHO_QUEUE: '5' } });
  assert.equal(ended.code, 0, ended.err);
  assert.equal(ended.err.split('TACHO_QUEUE=5').length, 2, `a wrong setting is logged once: ${ended.err}`);
  const spans = await tacho.trace('threads', 'in worker');
  assert.deepEqual(outline(spans), ['in worker', '  below']);
  assert.match(spans[0].thread, /^worker-\d+$/);
  assert.equal((await tacho.trace('threads', 'in main'))[0].thread, 'main');
});

test('nothing is lost or stored twice when the server is killed and restarted', async () => {
  const other = await Tacho.start();
  try {
    const env = { TACHO_QUEUE: '256MiB', TACHO_SAMPLERS: 'false' };
    const program = start(other, 'stream.js', { service: 'stream', env });
    await program.line(/under way/);
    const stored = async () => (await other.operations('stream')).get('trace')?.count ?? 0;
    for (let round = 0; round < 3; round++) {
      await other.kill();
      await sleep(100);
      await other.start();
      const before = await stored();
      await until('new traces after the restart', async () => (await stored()) > before);
    }
    program.child.stdin.write('stop\n');
    const { code, out, err } = await program.ended;
    assert.equal(code, 0, err);
    assert.match(err, /lost the server.*\n.*connected again/);
    assert.doesNotMatch(err, /not acknowledged/);
    const traces = Number(/traces (\d+)/.exec(out)[1]);
    const operations = await other.operations('stream');
    assert.equal(operations.get('trace').count, traces);
    assert.equal(operations.get('work').count, traces * 5);
    const { data } = await other.get('/api/v1/query', { query: 'count_over_time(turns[1h])' });
    assert.equal(Number(data.result[0].value[1]), traces / 200);
  } finally {
    await other.close();
  }
});

test('a full queue drops whole traces, and the log has the number of dropped calls', async () => {
  const other = await Tacho.start();
  try {
    await other.kill();
    const program = start(other, 'stream.js', { service: 'overflow', env: { TACHO_QUEUE: '100KiB' } });
    await program.line(/many more/);
    await other.start();
    const connected = /connected to .* after \d+ s; (\d+) calls, \d+ samples and 0 entries were dropped in the meantime/;
    const told = await until('the connection', () => connected.exec(program.said.err));
    program.child.stdin.write('stop\n');
    const { code, out, err } = await program.ended;
    assert.equal(code, 0, err);
    const operations = await other.operations('overflow');
    const [traces, calls] = [operations.get('trace').count, operations.get('work').count];
    assert.equal(calls, traces * 5, 'each stored trace must have its five calls of work');
    const lost = Number(/traces (\d+)/.exec(out)[1]) - traces;
    const dropped = Number(told[1]);
    assert.ok(dropped >= 10_000 * 6 && dropped <= lost * 6 && dropped % 6 === 0, `${dropped} calls of ${lost} traces`);
  } finally {
    await other.close();
  }
});

test('values that are too long, too many or invalid are cut or dropped', async () => {
  const service = 'hostile';
  const { code, out, err } = await run(tacho, 'hostile.js', { service, env: { TACHO_QUEUE: '256MiB' } });
  assert.deepEqual([code, out], [0, 'done\n'], err);
  assert.doesNotMatch(err, /refuse|fault|agent failed/);
  const count = async (operation) => (await tacho.operations(service, { operation })).get(operation)?.count;
  assert.ok((await count('(other)')) > 5_000);
  assert.ok((await count('GET (other)')) > 70);
  assert.equal(await count(`${'x'.repeat(8_189)}…`), 1);
  assert.equal(await count('größe 漢 \ufffd'), 1);
  const { data } = await tacho.get('/api/v1/entries', { 'match[]': `{service="${service}"}` });
  assert.deepEqual(data.entries.map((entry) => Buffer.byteLength(entry.text)).sort(), [1_048_576, 6]);
  const path = (await tacho.get('/api/traces', { service, operation: 'GET /{id}' })).traces[0];
  const { spans } = await tacho.get(`/api/traces/${path.trace_id}`);
  const { attributes } = spans.find((span) => span.kind === 'http-server');
  assert.ok(attributes['http.path'].endsWith('p…') && Buffer.byteLength(attributes['http.path']) <= 4_096);
  assert.ok(attributes['request.id'].endsWith('r…'));
});

for (const [flag, said, trace] of [
  ['01', 'records it', '4bf92f3577b34da6a3ce929d0e0e4736'],
  ['00', 'does not record it', '4bf92f3577b34da6a3ce929d0e0e4737'],
]) {
  test(`a trace spans two processes if the caller in the header ${said}`, async () => {
    const back = start(tacho, 'tier.js', { args: ['back'], service: 'back' });
    const [, backPort] = await back.line(/listening (\d+)/);
    const host = `127.0.0.1:${backPort}`;
    const front = start(tacho, 'tier.js', { args: ['front', `http://${host}`], service: 'front' });
    const [, frontPort] = await front.line(/listening (\d+)/);
    const caller = `00-${trace}-00f067aa0ba902b7-${flag}`;
    const answer = await fetch(`http://127.0.0.1:${frontPort}/`, { headers: { traceparent: caller } });
    assert.equal(await answer.text(), 'front');
    await Promise.all([front.stop(), back.stop()]);
    const { spans } = await tacho.get(`/api/traces/${trace}`);
    const found = outline(spans).map((line, at) => `${line} of ${spans[at].service}`);
    const [first, ...below] = found;
    assert.equal(first, 'GET / of front');
    assert.equal(spans[0].parent, '00f067aa0ba902b7');
    assert.deepEqual(below.slice(0, 4), [
      `  GET ${host} of front`,
      '    GET /by/fetch of back',
      `  POST ${host} of front`,
      '    POST /by/request of back',
    ]);
    assert.deepEqual(below.slice(4).sort(), [
      '    POST /left of back',
      '    POST /right of back',
      `  POST ${host} of front`,
      `  POST ${host} of front`,
    ]);
    const { edges } = await tacho.get('/api/graph', { level: 'service' });
    assert.ok(edges.some(({ from, to }) => /front/.test(from) && /back/.test(to)));
  });
}

test('failed and unusual requests are recorded', async () => {
  const service = 'clients';
  const watched = await run(tacho, 'clients.js', { service });
  const alone = await run(tacho, 'clients.js', { service: 'alone', env: { TACHO_ENABLED: 'false' } });
  assert.equal(watched.code, 0, watched.err);
  assert.equal(watched.out, alone.out, watched.err);
  const below = async (operation) => (await tacho.trace(service, operation)).slice(1);
  for (const operation of ['refused', 'refused by fetch']) {
    const [call] = await below(operation);
    assert.deepEqual([call.operation, call.kind, call.outcome], ['GET 127.0.0.1:2', 'http-client', 'failed']);
    assert.match(call.attributes.exception, /^Error: connect ECONNREFUSED/);
  }
  for (const operation of ['own header', 'own header of fetch', 'array of headers']) {
    const [call, ...rest] = await below(operation);
    assert.deepEqual([call.kind, call.attributes['http.status'], rest.length], ['http-client', 200, 0]);
  }
  const [aborted, served] = await below('aborted');
  assert.deepEqual([aborted.outcome, served.outcome, served.attributes['http.status']], ['failed', 'failed', undefined]);
  const [unread, answered] = await below('unread');
  assert.deepEqual([unread.outcome, unread.attributes['http.status'], answered.operation], ['ok', 200, 'GET /base/:what']);
  assert.equal(answered.attributes['http.route'], '/base/:what');
  const alive = await tacho.trace(service, 'kept alive');
  assert.equal(alive.filter((span) => span.kind === 'http-client').length, 3);
  for (const span of alive.filter((server) => server.kind === 'http-server')) {
    assert.equal(alive.find((client) => client.id === span.parent).attributes['http.path'], span.attributes['http.path']);
  }
});

const METRICS = [
  'nodejs_eventloop_lag_mean_seconds',
  'nodejs_eventloop_lag_p99_seconds',
  'nodejs_eventloop_lag_max_seconds',
  'nodejs_eventloop_utilization_ratio',
  'nodejs_gc_duration_seconds_count',
  'nodejs_gc_duration_seconds_sum',
  'nodejs_heap_size_used_bytes',
  'nodejs_heap_size_total_bytes',
  'nodejs_external_memory_bytes',
  'process_resident_memory_bytes',
  'process_cpu_user_seconds_total',
  'process_cpu_system_seconds_total',
  'process_cpu_seconds_total',
  'process_cpu_usage_ratio',
  'process_uptime_seconds',
  'process_start_time_seconds',
  'tacho_agent_sent_total',
  'tacho_agent_dropped_total',
  'tacho_agent_sent_bytes_total',
  'turns',
];
test('samples of the process arrive', async () => {
  const program = start(tacho, 'stream.js', {
    service: 'samples',
    env: { TACHO_SAMPLE_INTERVAL: '200ms', TACHO_INSTANCE: 'one' },
  });
  await program.line(/under way/);
  let series;
  const missing = async () => {
    series = await tacho.series('samples');
    const names = new Set(series.map((labels) => labels.__name__));
    return METRICS.filter((name) => !names.has(name));
  };
  await until('every series, and a collection', async () => {
    const absent = await missing();
    if (absent.length > 0) throw new Error(`${absent} are missing`);
    return (await tacho.value('nodejs_gc_duration_seconds_count{service="samples",kind="minor"}')) > 0;
  });
  program.child.stdin.write('stop\n');
  const { code, err } = await program.ended;
  assert.equal(code, 0, err);
  for (const { service, host, instance } of series)
    assert.deepEqual({ service, host, instance }, { service: 'samples', host: 'test', instance: 'one' });
  const value = (name) => tacho.value(`${name}{service="samples"}`);
  const rss = await value('process_resident_memory_bytes');
  assert.ok(rss > 2 ** 24 && rss < 2 ** 32, `${rss}`);
  const lag = await value('nodejs_eventloop_lag_mean_seconds');
  assert.ok(lag >= 0 && lag < 60, `${lag}`);
  const start_ = await value('process_start_time_seconds');
  assert.ok(Math.abs(start_ - Date.now() / 1_000) < 600);
});
