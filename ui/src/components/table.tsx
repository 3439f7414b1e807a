// A sortable table. The address holds the sort column, so that a link shows the same order.
import type { ComponentChildren } from 'preact';
import { change, goTo, usePlace } from '../lib/router';

export interface Column<T> {
  id: string;
  title: string;
  /** Explains the column on hover. */
  hint?: string;
  /** Numbers are right-aligned and sort in descending order first. */
  numeric?: boolean;
  wide?: boolean;
  /** Left-aligned although it is a number. */
  left?: boolean;
  /** The sort key; a column without it is not sortable. */
  value?: (row: T) => number | string | null;
  cell: (row: T) => ComponentChildren;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
  /** Address opened by a click on a row; keyboard users have the link in the row. */
  rowLink?: (row: T) => string;
  /** Default sort column: `total`, or `-total` for the reverse order. Without the minus, numbers are in descending order and
   * texts in ascending order. */
  sort: string;
  /** Name of the address parameter with the sort column, by default `sort`. The tables of a page need different names. */
  param?: string | undefined;
}

export function sortRows<T>(rows: readonly T[], columns: Column<T>[], sort: string): readonly T[] {
  const { column, reverse } = sortOf(columns, sort);
  const value = column?.value;
  if (value === undefined) return rows;
  const sign = (column?.numeric === true ? -1 : 1) * (reverse ? -1 : 1);
  return [...rows].sort((a, b) => sign * compare(value(a), value(b)));
}

function sortOf<T>(columns: Column<T>[], sort: string): { column: Column<T> | undefined; reverse: boolean } {
  const reverse = sort.startsWith('-');
  const id = reverse ? sort.slice(1) : sort;
  return { column: columns.find((one) => one.id === id), reverse };
}

function compare(a: number | string | null, b: number | string | null): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return typeof a === 'string' && typeof b === 'string' ? a.localeCompare(b) : Number(a) - Number(b);
}

export function Table<T>(props: Props<T>) {
  const { columns, rows, rowKey, rowLink, label, param = 'sort' } = props;
  const sort = usePlace().params.get(param) ?? props.sort;
  const open = (event: MouseEvent, row: T): void => {
    if (rowLink === undefined || (event.target as HTMLElement).closest('a, button') !== null) return;
    if (window.getSelection()?.toString() !== '') return;
    goTo(rowLink(row));
  };
  return (
    <div class="table-scroll">
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <Head key={column.id} column={column} columns={columns} sort={sort} param={param} />
            ))}
          </tr>
        </thead>
        <tbody onKeyDown={walk}>
          {sortRows(rows, columns, sort).map((row) => (
            <tr
              key={rowKey(row)}
              class={rowLink === undefined ? undefined : 'link'}
              onClick={(event) => open(event, row)}
            >
              {columns.map((column) => (
                <td key={column.id} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The arrow keys move the focus between the links of the rows. */
function walk(event: KeyboardEvent): void {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  const row = (event.target as HTMLElement).closest('tr');
  const next = event.key === 'ArrowDown' ? row?.nextElementSibling : row?.previousElementSibling;
  const link = next?.querySelector<HTMLElement>('a.name');
  if (!link) return;
  event.preventDefault();
  link.focus();
}

interface HeadProps<T> {
  column: Column<T>;
  columns: Column<T>[];
  sort: string;
  param: string;
}

function Head<T>({ column, columns, sort, param }: HeadProps<T>) {
  if (column.value === undefined)
    return (
      <th scope="col" class={classOf(column)} title={column.hint}>
        {column.title}
      </th>
    );
  const current = sortOf(columns, sort);
  const chosen = current.column?.id === column.id;
  const falling = chosen ? (column.numeric === true) !== current.reverse : undefined;
  const next = chosen && !current.reverse ? `-${column.id}` : column.id;
  return (
    <th
      scope="col"
      class={classOf(column)}
      title={column.hint}
      aria-sort={falling === undefined ? undefined : falling ? 'descending' : 'ascending'}
    >
      <button type="button" onClick={() => change({ [param]: next })}>
        {column.title}
      </button>
    </th>
  );
}

function classOf<T>(column: Column<T>): string | undefined {
  return (
    [column.numeric === true && column.left !== true ? 'num' : '', column.wide === true ? 'wide' : '']
      .join(' ')
      .trim() || undefined
  );
}
