// Entries in the time range of the chart: a lane of marks on the chart's time axis, and a table.
import { useState } from 'preact/hooks';
import { api, type RecordForm } from '../lib/api';
import { isTraceId, memberOrder, memberText, membersOf, rowsOf, unitOf, type EntryRow } from '../lib/entries';
import { useResource } from '../lib/resource';
import { change, linkTo, usePlace } from '../lib/router';
import { moment, type TimeWindow } from '../lib/time';
import { grouped } from '../lib/units';
import { seriesName } from '../promql/result';
import type { Area } from './chart';
import { EntryLane } from './entry-lane';
import { Panel } from './page';
import { Empty } from './states';
import { Table, type Column } from './table';

/** Selects all entries. */
const EVERYTHING = '{__name__=~".+"}';
const ROWS_MAX = 200;

interface Props {
  window: TimeWindow;
  area: Area;
}

/** Renders nothing before the first response. Unless the user searched for entries, it also renders nothing if the last
 *  successful response has no entries, or if no request has succeeded yet. */
export function EntriesPanel({ window: range, area }: Props) {
  const { params } = usePlace();
  const selector = params.get('entries') ?? '';
  const contains = params.get('has') ?? '';
  const [chosen, setChosen] = useState<string | null>(null);
  const key = JSON.stringify([selector, contains, range]);
  const answer = useResource(key, (signal) =>
    api.entries(selector || EVERYTHING, contains, range, { limit: ROWS_MAX, parts: 120 }, signal),
  );
  const isTable = answer.data?.entries.some((entry) => entry.text?.startsWith('{')) ?? false;
  const forms = useResource(isTable ? 'records' : null, api.records);
  const asked = selector !== '' || contains !== '';
  if (answer.data === null && answer.error === null) return null;
  if (!asked && (answer.data?.matched ?? 0) === 0) return null;
  const list = answer.data;
  const rows = list === null ? [] : rowsOf(list);
  const said = rows.find((row) => row.key === chosen);
  const matched = list?.matched ?? 0;
  const count = matched > rows.length ? `the newest ${rows.length} of ${grouped(matched)}` : grouped(matched);
  return (
    <Panel title="Entries" class="entries" aside={<span class="faint">{count}</span>}>
      <EntryLane
        rows={rows}
        counts={list?.histogram.counts ?? []}
        window={range}
        area={area}
        chosen={chosen}
        onChoose={setChosen}
      />
      <p class="lane-said mono" aria-live="polite">
        {said === undefined ? '' : `${moment(said.at, true)}  ${said.text.slice(0, 300)}`}
      </p>
      <Filter selector={selector} contains={contains} />
      {answer.error !== null && (
        <p class="notice" role="alert">
          {answer.error.message}
        </p>
      )}
      {answer.error === null && rows.length === 0 && (
        <Empty title="No entries">
          <p>No entry in this range matches these labels and this text.</p>
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          label="Entries"
          columns={columnsOf(rows, chosen, forms.data ?? [])}
          rows={rows}
          rowKey={(row) => row.key}
          sort="time"
          param="entry-sort"
        />
      )}
    </Panel>
  );
}

function Filter({ selector, contains }: { selector: string; contains: string }) {
  const apply = (event: Event): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    change({ entries: String(form.get('entries') ?? ''), has: String(form.get('has') ?? '') }, 'keep');
  };
  return (
    <form class="row entries-filter panel-body" onSubmit={apply} key={`${selector}\n${contains}`}>
      <input
        class="field mono"
        name="entries"
        aria-label="Labels of entries"
        placeholder='log{host="a"}'
        defaultValue={selector}
      />
      <input
        class="field"
        name="has"
        type="search"
        aria-label="Text of entries"
        placeholder="Text"
        defaultValue={contains}
      />
      <button type="submit" class="button">
        Find
      </button>
    </form>
  );
}

/** A column per member if every entry is an object and there are not too many members, otherwise a column with the text. */
function columnsOf(rows: readonly EntryRow[], chosen: string | null, forms: readonly RecordForm[]): Column<EntryRow>[] {
  const time: Column<EntryRow> = {
    id: 'time',
    title: 'Time',
    numeric: true,
    left: true,
    value: (row) => row.at,
    cell: (row) => <span class={row.key === chosen ? 'mono chosen' : 'mono'}>{moment(row.at, true)}</span>,
  };
  const series: Column<EntryRow> = {
    id: 'series',
    title: 'Series',
    value: (row) => seriesName(row.metric),
    cell: (row) => <span class="mono">{seriesName(row.metric)}</span>,
  };
  const text: Column<EntryRow> = {
    id: 'text',
    title: 'Text',
    wide: true,
    value: (row) => row.text,
    cell: (row) => <pre class="entry-text">{row.text.trimEnd()}</pre>,
  };
  const members = membersOf(rows).map((name) => memberColumn(rows, name, unitOf(forms, rows, name)));
  return members.length > 0 ? [time, series, ...members] : [time, series, text];
}

function memberColumn(rows: readonly EntryRow[], name: string, unit: string): Column<EntryRow> {
  const numeric = memberOrder(rows, name) === 'number';
  return {
    id: `member-${name}`,
    title: unit === '' ? name : `${name} (${unit})`,
    numeric,
    value: ({ members }) => (numeric ? numberOf(members?.[name]) : memberText(members?.[name])),
    cell: (row) => memberCell(name, row.members?.[name]),
  };
}

const numberOf = (value: unknown): number | null => (value === undefined || value === null ? null : Number(value));

function memberCell(name: string, value: unknown) {
  if (name !== 'trace_id' || !isTraceId(value)) return memberText(value);
  return (
    <a class="mono" href={linkTo(['traces', value])} title={`Trace ${value}`}>
      {value.slice(0, 8)}…
    </a>
  );
}
