// Operations with their counts, errors, percentiles and times; a click on an operation shows the traces that contain it.
import { useMemo } from 'preact/hooks';
import type { Operation } from '../lib/api';
import { linkTo } from '../lib/router';
import type { TimeWindow } from '../lib/time';
import { column, gridOf } from '../lib/timeline';
import { duration, grouped, NONE, percent, rate, share } from '../lib/units';
import { shortName } from '../trace/icicle';
import { Errors, KindBadge } from './page';
import { Spark } from './spark';
import { Table, type Column } from './table';

interface Props {
  rows: readonly Operation[];
  window: TimeWindow;
  /** Adds a column with the service of each operation. */
  several: boolean;
  /** The default sort column, and the address parameter that overrides it. */
  sort: string;
  param?: string;
}

export function OperationsTable({ rows, window: range, several, sort, param }: Props) {
  const columns = useMemo(() => columnsOf(rows, range, several), [rows, range.start, range.end, several]);
  return (
    <Table
      label="Operations"
      columns={columns}
      rows={rows}
      rowKey={(one) => `${one.service} ${one.kind} ${one.operation}`}
      rowLink={tracesOf}
      sort={sort}
      param={param}
    />
  );
}

function columnsOf(rows: readonly Operation[], range: TimeWindow, several: boolean): Column<Operation>[] {
  return [...nameColumns(rows, range, several), ...countColumns(range), ...timeColumns(rows)];
}

/** Address of the traces that contain an operation. */
const tracesOf = (one: Operation): string => linkTo(['traces'], { service: one.service, operation: one.operation });

function nameColumns(rows: readonly Operation[], range: TimeWindow, several: boolean): Column<Operation>[] {
  const grid = gridOf(
    rows.map((one) => one.timeline),
    range,
  );
  const service: Column<Operation> = {
    id: 'service',
    title: 'Service',
    value: (one) => one.service,
    cell: (one) => <span class="muted">{one.service}</span>,
  };
  return [
    {
      id: 'operation',
      title: 'Operation',
      wide: true,
      value: (one) => shortName(one.operation),
      cell: (one) => (
        <a class="name" href={tracesOf(one)} title={one.operation}>
          {shortName(one.operation)}
        </a>
      ),
    },
    ...(several ? [service] : []),
    { id: 'kind', title: 'Kind', value: (one) => one.kind, cell: (one) => <KindBadge kind={one.kind} /> },
    {
      id: 'trend',
      title: 'Trend',
      cell: (one) => (
        <Spark
          width={90}
          values={column(one.timeline, grid, 1, 0)}
          errors={column(one.timeline, grid, 2, 0)}
          label="Calls over time"
        />
      ),
    },
  ];
}

function countColumns(range: TimeWindow): Column<Operation>[] {
  const seconds = range.end - range.start;
  return [
    { id: 'count', title: 'Calls', numeric: true, value: (one) => one.count, cell: (one) => grouped(one.count) },
    { id: 'rate', title: 'Rate', numeric: true, value: (one) => one.count, cell: (one) => rate(one.count / seconds) },
    {
      id: 'errors',
      title: 'Failed',
      numeric: true,
      value: (one) => share(one.errors, one.count),
      cell: (one) => <Errors count={one.errors} of={one.count} />,
    },
    {
      id: 'refused',
      title: '4xx',
      hint: 'Calls with a status from 400 to 499; they do not count as failed',
      numeric: true,
      value: (one) => one.refused,
      cell: (one) => (one.refused === 0 ? NONE : grouped(one.refused)),
    },
  ];
}

function timeColumns(rows: readonly Operation[]): Column<Operation>[] {
  const whole = rows.reduce((sum, one) => sum + (one.self_ns ?? 0), 0);
  return [
    { id: 'p50', title: 'p50', numeric: true, value: (one) => one.p50_ns, cell: (one) => duration(one.p50_ns) },
    { id: 'p95', title: 'p95', numeric: true, value: (one) => one.p95_ns, cell: (one) => duration(one.p95_ns) },
    { id: 'p99', title: 'p99', numeric: true, value: (one) => one.p99_ns, cell: (one) => duration(one.p99_ns) },
    {
      id: 'total',
      title: 'Total',
      hint: 'Sum of all durations',
      numeric: true,
      value: (one) => one.total_ns,
      cell: (one) => duration(one.total_ns),
    },
    {
      id: 'self',
      title: 'Self',
      hint: 'Total without the time in recorded callees, also in other services; the bar shows the share of all self time',
      numeric: true,
      value: (one) => one.self_ns ?? -1,
      cell: (one) =>
        one.self_ns === null ? (
          NONE
        ) : (
          <span class="share">
            <Meter share={share(one.self_ns, whole) ?? 0} />
            <span>{duration(one.self_ns)}</span>
          </span>
        ),
    },
  ];
}

function Meter({ share: part }: { share: number }) {
  return (
    <svg class="meter" width="48" height="6" role="img" aria-label={percent(part)}>
      <title>{percent(part)}</title>
      <rect width={(48 * part).toFixed(1)} height="6" />
    </svg>
  );
}
