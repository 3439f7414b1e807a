// Query results: lines over time, and a table of the values at the end of the range.
import { useMemo, useState } from 'preact/hooks';
import type { Point } from '../lib/api';
import { colorClass, colorToken } from '../lib/palette';
import type { TimeWindow } from '../lib/time';
import { format, grouped, number, type Unit } from '../lib/units';
import type { Answer } from '../pages/explore';
import { legendNames, matrixOf, onGrid, seriesName, unitOf, vectorOf, type SeriesOf } from '../promql/result';
import { Chart, type Area, type Line } from './chart';
import { Legend, type Hidden } from './legend';
import { Panel } from './page';
import { Empty } from './states';
import { Table, type Column } from './table';

/** Limit on lines: more lines cannot be distinguished and are slow to draw. */
const LINES_MAX = 200;
const LABEL_COLUMNS_MAX = 7;

interface ChartProps {
  answers: Answer[];
  window: TimeWindow;
  step: number;
  onArea?: (area: Area) => void;
}

export function QueryChart({ answers, window: range, step, onArea }: ChartProps) {
  const [hidden, setHidden] = useState<Hidden>(new Set());
  const { lines, total, times, unit } = useMemo(
    () => linesOf(answers, range, step),
    [answers, range.start, range.end, step],
  );
  const shown = lines.map((line) => ({ ...line, hidden: hidden.has(line.label) }));
  if (answers.every((answer) => answer.error !== null)) return null;
  return (
    <Panel title="Over time" aside={<span class="faint">{grouped(total)} series</span>}>
      <Chart
        label="Values over time"
        times={times}
        lines={shown}
        unit={unit}
        window={range}
        height={320}
        empty="No data for this query in this time range"
        {...(onArea === undefined ? {} : { onArea })}
      />
      <div class="panel-body">
        {total > lines.length && (
          <p class="notice warn">
            Only the first {lines.length} of {grouped(total)} series are drawn. To get fewer series, use sum or topk.
          </p>
        )}
        <Legend lines={shown} hidden={hidden} onChange={setHidden} />
      </div>
    </Panel>
  );
}

function linesOf(answers: Answer[], range: TimeWindow, step: number) {
  const count = Math.floor((range.end - range.start) / step) + 1;
  const times = Array.from({ length: count }, (_, index) => range.start + index * step);
  const asked = answers.filter((answer) => answer.range !== null);
  const all = asked.flatMap((answer) => named(answer, asked.length > 1));
  const lines = all.slice(0, LINES_MAX).map(({ label, series }, index): Line => ({
    label,
    token: colorToken(index),
    color: colorClass(index),
    values: onGrid(series.values, range.start, step, count),
  }));
  const units = new Set(asked.map((answer) => unitOf(answer.query)));
  const unit: Unit = units.size === 1 ? ([...units][0] ?? 'number') : 'number';
  return { lines, total: all.length, times, unit };
}

function named(answer: Answer, several: boolean): { label: string; series: SeriesOf<Point[]> }[] {
  const series = answer.range === null ? [] : matrixOf(answer.range);
  const names = legendNames(series.map((one) => one.metric));
  return series.map((one, index) => {
    const name = names[index] === '{}' ? answer.query : (names[index] ?? '');
    return { label: several ? `${answer.name}: ${name}` : name, series: one };
  });
}

interface Row {
  query: string;
  unit: Unit;
  series: SeriesOf<Point>;
}

export function QueryTable({ answers }: { answers: Answer[] }) {
  const rows = answers.flatMap((answer) =>
    answer.instant === null
      ? []
      : vectorOf(answer.instant).map((series): Row => ({ query: answer.name, unit: unitOf(answer.query), series })),
  );
  if (answers.every((answer) => answer.error !== null)) return null;
  return (
    <Panel title="At the end of the range" aside={<span class="faint">{grouped(rows.length)} series</span>}>
      {rows.length === 0 ? (
        <Empty title="No series">
          <p>No series has a value at the end of the range. Check the names, or choose a range with data.</p>
        </Empty>
      ) : (
        <Table
          label="Values"
          columns={columnsOf(rows, answers.length > 1)}
          rows={rows}
          rowKey={(row) => `${row.query} ${seriesName(row.series.metric)}`}
          sort="value"
        />
      )}
    </Panel>
  );
}

function columnsOf(rows: Row[], several: boolean): Column<Row>[] {
  const labels = [...new Set(rows.flatMap((row) => Object.keys(row.series.metric)))].sort((a, b) => a.localeCompare(b));
  const query: Column<Row> = { id: 'query', title: 'Query', value: (row) => row.query, cell: (row) => row.query };
  const value: Column<Row> = {
    id: 'value',
    title: 'Value',
    numeric: true,
    value: (row) => Number(row.series.values[1]),
    cell: (row) => (
      <span title={row.series.values[1]}>
        {row.unit === 'number' ? number(Number(row.series.values[1])) : format(row.unit, Number(row.series.values[1]))}
      </span>
    ),
  };
  const each = labels.map((name): Column<Row> => ({
    id: `label-${name}`,
    title: name === '__name__' ? 'Metric' : name,
    value: (row) => row.series.metric[name] ?? '',
    cell: (row) => <span class={name === '__name__' ? 'mono' : undefined}>{row.series.metric[name] ?? ''}</span>,
  }));
  const whole: Column<Row> = {
    id: 'series',
    title: 'Series',
    wide: true,
    value: (row) => seriesName(row.series.metric),
    cell: (row) => (
      <span class="mono" title={seriesName(row.series.metric)}>
        {seriesName(row.series.metric)}
      </span>
    ),
  };
  return [
    ...(several ? [query] : []),
    ...(each.length > LABEL_COLUMNS_MAX || each.length === 0 ? [whole] : each),
    value,
  ];
}
