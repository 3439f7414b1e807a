// Explore: PromQL queries over time and at the end of the range.
import { useState } from 'preact/hooks';
import type { Area } from '../components/chart';
import { EntriesPanel } from '../components/entries-panel';
import { PromqlEditor } from '../components/promql-editor';
import { Cross } from '../components/icons';
import { PageHead, Panel, Progress } from '../components/page';
import { Empty, Loading, NoData } from '../components/states';
import { QueryChart, QueryTable } from '../components/query-result';
import { api, type QueryData } from '../lib/api';
import { useResource } from '../lib/resource';
import { change, linkTo, usePlace } from '../lib/router';
import { autoStep, parseDuration, type TimeWindow } from '../lib/time';
import type { WindowState } from '../lib/window';
import { faultAt, suggestedQuery } from '../promql/result';

const STEPS = ['1s', '5s', '15s', '1m', '5m', '1h'];
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const letter = (index: number): string => LETTERS.charAt(index % LETTERS.length);

export interface Answer {
  query: string;
  name: string;
  range: QueryData | null;
  instant: QueryData | null;
  error: Error | null;
}

export function ExplorePage({ window: state }: { window: WindowState }) {
  const { params } = usePlace();
  const queries = params.getAll('q').filter((query) => query.trim() !== '');
  const step = parseDuration(params.get('step') ?? '') ?? autoStep(state, 1200);
  const range: TimeWindow = { start: Math.floor(state.start / step) * step, end: state.end };
  const key = queries.length === 0 ? null : JSON.stringify([queries, range, step]);
  const answers = useResource(key, (signal) =>
    Promise.all(queries.map((query, index) => ask(query, letter(index), range, step, signal))),
  );
  const [area, setArea] = useState<Area>({ left: 0, width: 0 });
  const moved = (now: Area): void =>
    setArea((before) => (before.left === now.left && before.width === now.width ? before : now));
  return (
    <>
      <PageHead title="Explore" />
      <Progress on={answers.loading && answers.data !== null} />
      <Queries key={queries.join('\n\n')} applied={queries} answers={answers.data ?? []} window={state} step={step} />
      {queries.length === 0 && <Metrics window={state} />}
      {queries.length > 0 && answers.data === null && answers.loading && <Loading what="Running the queries" />}
      {queries.length > 0 && answers.data !== null && (
        <>
          <QueryChart answers={answers.data} window={range} step={step} onArea={moved} />
          <EntriesPanel window={range} area={area} />
          <QueryTable answers={answers.data} />
        </>
      )}
    </>
  );
}

async function ask(query: string, name: string, range: TimeWindow, step: number, signal: AbortSignal): Promise<Answer> {
  try {
    const [overTime, instant] = await Promise.all([
      api.queryRange(query, range, step, signal),
      api.query(query, range.end, signal),
    ]);
    return { query, name, range: overTime, instant, error: null };
  } catch (error) {
    if (signal.aborted) throw error;
    return { query, name, range: null, instant: null, error: error as Error };
  }
}

interface QueriesProps {
  applied: string[];
  answers: Answer[];
  window: TimeWindow;
  step: number;
}

/** Drafts of queries; running them stores them in the address. */
function Queries({ applied, answers, window: range, step }: QueriesProps) {
  const [drafts, setDrafts] = useState(applied.length === 0 ? [''] : applied);
  const set = (index: number, text: string): void =>
    setDrafts(drafts.map((draft, at) => (at === index ? text : draft)));
  const run = (list: string[] = drafts): void => change({ q: list.filter((draft) => draft.trim() !== '') }, 'keep');
  const remove = (index: number): void => {
    const rest = drafts.filter((_, at) => at !== index);
    setDrafts(rest);
    run(rest);
  };
  return (
    <Panel class="queries">
      <div class="panel-body query-list">
        {drafts.map((draft, index) => (
          <div class="query" key={index}>
            <span class="letter" aria-hidden="true">
              {letter(index)}
            </span>
            <div class="grow">
              <PromqlEditor
                id={`query-${index}`}
                label={`Query ${letter(index)}`}
                value={draft}
                window={range}
                search={index === 0}
                invalid={errorOf(answers, draft) !== null}
                onInput={(text) => set(index, text)}
                onRun={() => run()}
              />
              <Fault query={draft} error={errorOf(answers, draft)} />
            </div>
            {drafts.length > 1 && (
              <button
                type="button"
                class="button plain icon"
                aria-label={`Remove query ${letter(index)}`}
                onClick={() => remove(index)}
              >
                <Cross />
              </button>
            )}
          </div>
        ))}
        <div class="row">
          <button type="button" class="button primary" onClick={() => run()}>
            Run
          </button>
          <button type="button" class="button" onClick={() => setDrafts([...drafts, ''])}>
            Add query
          </button>
          <StepChoice step={step} />
          <span class="faint keys-hint">
            <kbd>Enter</kbd> runs <kbd>Shift Enter</kbd> starts a line <kbd>Ctrl Space</kbd> completes
          </span>
        </div>
      </div>
    </Panel>
  );
}

const errorOf = (answers: Answer[], query: string): Error | null =>
  answers.find((answer) => answer.query === query)?.error ?? null;

/** The server's message and, if it contains the position of the error, the query with a mark there. */
function Fault({ query, error }: { query: string; error: Error | null }) {
  if (error === null) return null;
  const at = faultAt(error.message, query);
  return (
    <div class="notice fault" role="alert">
      {at !== null && (
        <pre aria-hidden="true">
          {query.slice(0, at)}
          <mark>{query.slice(at, at + 1) || ' '}</mark>
          {query.slice(at + 1)}
        </pre>
      )}
      <span>{error.message}</span>
    </div>
  );
}

function StepChoice({ step }: { step: number }) {
  const value = usePlace().params.get('step') ?? '';
  return (
    <label class="row step muted">
      Step
      <select class="field" value={value} onChange={(event) => change({ step: event.currentTarget.value })}>
        <option value="">{`Auto (${step < 60 ? `${step} s` : `${step / 60} min`})`}</option>
        {STEPS.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}

function Metrics({ window: range }: { window: TimeWindow }) {
  const names = useResource(`metrics|${range.start}`, (signal) => api.labelValues('__name__', null, range, signal));
  const [needle, setNeedle] = useState('');
  if (names.data === null) return names.error === null ? <Loading what="Reading metric names" /> : null;
  if (names.data.length === 0) return <NoData elsewhere={false} />;
  const found = names.data.filter((name) => name.toLowerCase().includes(needle.toLowerCase()));
  return (
    <Panel
      title="Metrics"
      aside={
        <input
          class="field find"
          type="search"
          aria-label="Find a metric"
          placeholder="Find a metric"
          value={needle}
          onInput={(event) => setNeedle(event.currentTarget.value)}
        />
      }
    >
      {found.length === 0 ? (
        <Empty title="No matching metric" />
      ) : (
        <ul class="metrics panel-body">
          {found.map((name) => (
            <li key={name}>
              <a class="mono" href={linkTo(['explore'], { q: [suggestedQuery(name)] })}>
                {name}
              </a>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
