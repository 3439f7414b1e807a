// Requests that take longer than a second: what, how long, how far, and a button that stops them.
import { slow, type Run } from '../lib/running';
import { useStore } from '../lib/store';
import { grouped } from '../lib/units';

/** Number of requests that are shown one by one. */
const SHOWN_MAX = 3;

const NAMES: Record<string, string> = {
  'api/services': 'Services',
  'api/operations': 'Operations',
  'api/traces': 'Search for traces',
  'api/calltree': 'Call tree',
  'api/graph': 'Graph',
  'api/v1/query': 'Query',
  'api/v1/query_range': 'Query over time',
  'api/v1/entries': 'Search for entries',
};

export function Running() {
  const runs = useStore(slow);
  if (runs.length === 0) return null;
  const more = runs.slice(SHOWN_MAX);
  return (
    <section class="running" aria-label="Running requests">
      {runs.slice(0, SHOWN_MAX).map((run) => (
        <Line key={run.id} run={run} />
      ))}
      {more.length > 0 && (
        <div class="run">
          <span>{`and ${grouped(more.length)} more`}</span>
          <button type="button" class="button" onClick={() => runs.forEach((run) => run.stop())}>
            Stop all
          </button>
        </div>
      )}
    </section>
  );
}

function Line({ run }: { run: Run }) {
  const name = NAMES[run.path] ?? run.path;
  const facts = [`${run.seconds.toFixed(0)} s`];
  if (run.progress !== null) {
    const pass = run.progress.pass > 1 ? ` of pass ${run.progress.pass}` : '';
    facts.push(`${(100 * run.progress.done).toFixed(0)} %${pass}`, `${grouped(run.progress.calls)} calls read`);
  }
  return (
    <div class="run">
      <span>
        <b>{name}</b> {facts.join(' · ')}
      </span>
      {run.progress !== null && <progress max={1} value={run.progress.done} aria-label={name} />}
      <button type="button" class="button" aria-label={`Stop: ${name}`} onClick={run.stop}>
        Stop
      </button>
    </div>
  );
}
