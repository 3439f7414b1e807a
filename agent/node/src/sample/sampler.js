// Samples of the process at a fixed interval: event loop, processor time, memory, garbage collection, and the agent itself. Most
// names are those of the Prometheus client for Node. Before: `../agent.js`, only in the main thread. After: `samples.js`.

import { readdirSync } from 'node:fs';
import { loadavg, availableParallelism, cpus } from 'node:os';
import { PerformanceObserver, constants, monitorEventLoopDelay, performance } from 'node:perf_hooks';

const NS = 1e9;
const US = 1e6;
const MS = 1e3;
/** Interval of the event loop's monitor. The monitor counts this interval as delay, so the interval is subtracted. */
const RESOLUTION_MS = 20;
/** Longest delay before the first samples. */
const FIRST_MS = 1_000;

/** @type {Record<number, string>} */
const GC_KINDS = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

export class Sampler {
  /**
   * @param {import('./samples.js').Samples} samples
   * @param {import('../send/totals.js').Totals} totals
   * @param {import('../send/outbox.js').Outbox} outbox
   */
  constructor(samples, totals, outbox) {
    this.samples = samples;
    this.totals = totals;
    this.outbox = outbox;
    this.delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    this.utilization = performance.eventLoopUtilization();
    this.cpu = process.cpuUsage();
    this.sampledAt = performance.now();
    /** Count and duration (ms) of the collections of each kind. @type {Map<string, { count: number, ms: number }>} */
    this.collections = new Map(Object.values(GC_KINDS).map((kind) => [kind, { count: 0, ms: 0 }]));
    this.observer = new PerformanceObserver((list) => this.#collected(list));
  }

  /** @param {number} intervalMs */
  start(intervalMs) {
    this.delay.enable();
    this.observer.observe({ entryTypes: ['gc'] });
    const first = () => {
      this.take();
      setInterval(() => this.take(), intervalMs).unref();
    };
    setTimeout(first, Math.min(FIRST_MS, intervalMs)).unref();
  }

  /** @param {import('node:perf_hooks').PerformanceObserverEntryList} list */
  #collected(list) {
    for (const entry of list.getEntries()) {
      const { detail } = /** @type {{ detail?: { kind?: number } }} */ (/** @type {unknown} */ (entry));
      const total = this.collections.get(GC_KINDS[detail?.kind ?? 0]);
      if (total !== undefined) {
        total.count++;
        total.ms += entry.duration;
      }
    }
  }

  take() {
    this.#loop();
    this.#processor();
    this.#memory();
    for (const [kind, { count, ms }] of this.collections) {
      this.samples.count({ __name__: 'nodejs_gc_duration_seconds_count', kind }, count);
      this.samples.sample({ __name__: 'nodejs_gc_duration_seconds_sum', kind }, ms / MS);
    }
    this.samples.sample('process_uptime_seconds', process.uptime());
    this.samples.sample('process_start_time_seconds', performance.timeOrigin / MS);
    this.takeAgent();
  }

  #loop() {
    const { delay, samples } = this;
    const delaySeconds = (/** @type {number} */ ns) => Math.max(0, ns - RESOLUTION_MS * US) / NS;
    if (delay.count > 0) {
      samples.sample('nodejs_eventloop_lag_mean_seconds', delaySeconds(delay.mean));
      samples.sample('nodejs_eventloop_lag_p99_seconds', delaySeconds(delay.percentile(99)));
      samples.sample('nodejs_eventloop_lag_max_seconds', delaySeconds(delay.max));
    }
    delay.reset();
    const before = this.utilization;
    this.utilization = performance.eventLoopUtilization();
    samples.sample('nodejs_eventloop_utilization_ratio', performance.eventLoopUtilization(this.utilization, before).utilization);
  }

  #processor() {
    const { samples } = this;
    const before = this.cpu;
    const elapsedMs = performance.now() - this.sampledAt;
    this.sampledAt += elapsedMs;
    this.cpu = process.cpuUsage();
    const used = this.cpu.user + this.cpu.system;
    samples.sample('process_cpu_user_seconds_total', this.cpu.user / US);
    samples.sample('process_cpu_system_seconds_total', this.cpu.system / US);
    samples.sample('process_cpu_seconds_total', used / US);
    const processors = availableParallelism?.() ?? cpus().length;
    const ratio = (used - before.user - before.system) / (elapsedMs * MS * processors);
    samples.sample('process_cpu_usage_ratio', Math.min(1, Math.max(0, ratio)));
    samples.sample('system_load_average_1m', loadavg()[0]);
    try {
      samples.count('process_open_fds', readdirSync('/proc/self/fd').length - 1); // without the descriptor used for reading
    } catch {
      // Not available on this platform.
    }
  }

  #memory() {
    const { samples } = this;
    const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
    samples.count('process_resident_memory_bytes', rss);
    samples.count('nodejs_heap_size_used_bytes', heapUsed);
    samples.count('nodejs_heap_size_total_bytes', heapTotal);
    samples.count('nodejs_external_memory_bytes', external);
    samples.count('nodejs_array_buffers_bytes', arrayBuffers);
  }

  /** Counts of the agent itself; taken again at the end of the process. */
  takeAgent() {
    const { samples, totals } = this;
    /** @type {[string, number, number][]} */
    const kinds = [
      ['execution', totals.callsSent, totals.callsDropped],
      ['sample', totals.samplesSent, totals.samplesDropped],
      ['entry', totals.entriesSent, totals.entriesDropped],
    ];
    for (const [kind, sent, dropped] of kinds) {
      samples.count({ __name__: 'tacho_agent_sent_total', kind }, sent);
      samples.count({ __name__: 'tacho_agent_dropped_total', kind }, dropped);
    }
    samples.count('tacho_agent_attributes_dropped_total', totals.attributesDropped);
    samples.count('tacho_agent_rejected_total', totals.rejected);
    samples.count('tacho_agent_connects_total', totals.connects);
    samples.count('tacho_agent_sent_bytes_total', totals.bytesSent);
    samples.count('tacho_agent_queued_bytes', this.outbox.bytes);
  }
}
