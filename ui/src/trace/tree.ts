// Visible rows of a trace's tree. Spans arrive in tree order, parent before child.
import type { Span } from '../lib/api';

export interface TreeRow {
  span: Span;
  depth: number;
  /** Row of the parent, -1 for a root. */
  parent: number;
  /** Row of the last descendant; its own row if it has no descendants. */
  last: number;
}

/** Rows of all spans. A span whose parent is missing (not recorded, or not yet received) is a root. */
export function rowsOf(spans: readonly Span[]): TreeRow[] {
  const position = new Map<string, number>();
  const rows = spans.map((span, index): TreeRow => {
    const parent = span.parent === null ? -1 : (position.get(span.parent) ?? -1);
    position.set(span.id, index);
    return { span, depth: 0, parent, last: index };
  });
  rows.forEach((row) => {
    row.depth = (rows[row.parent]?.depth ?? -1) + 1;
  });
  for (let index = rows.length - 1; index >= 0; index -= 1) {
    const row = rows[index];
    const parent = rows[row?.parent ?? -1];
    if (row !== undefined && parent !== undefined) parent.last = Math.max(parent.last, row.last);
  }
  return rows;
}

/** Indices of the visible rows, in order. */
export function visibleRows(rows: readonly TreeRow[], collapsed: ReadonlySet<string>): number[] {
  const visible: number[] = [];
  let index = 0;
  while (index < rows.length) {
    const row = rows[index];
    if (row === undefined) break;
    visible.push(index);
    index = collapsed.has(row.span.id) ? row.last + 1 : index + 1;
  }
  return visible;
}

/** Opens every ancestor of a row, so that it is visible. */
export function reveal(rows: readonly TreeRow[], collapsed: ReadonlySet<string>, index: number): ReadonlySet<string> {
  const next = new Set(collapsed);
  for (let at = rows[index]?.parent ?? -1; at >= 0; at = rows[at]?.parent ?? -1) next.delete(rows[at]?.span.id ?? '');
  return next.size === collapsed.size ? collapsed : next;
}

/** Ids of rows that have children and are at this depth or deeper. If these rows are collapsed, `depth + 1` levels stay
 * visible. */
export function belowDepth(rows: readonly TreeRow[], depth: number): Set<string> {
  return new Set(rows.filter((row, index) => row.depth >= depth && row.last > index).map((row) => row.span.id));
}

export type Step = 'up' | 'down' | 'left' | 'right' | 'home' | 'end';

export interface Move {
  /** Row to select. */
  to: number;
  collapse?: string;
  expand?: string;
}

/** Effect of an arrow key, Home or End in the tree, as in the ARIA tree pattern, except that Left on a root that is collapsed or
 * has no children selects the first row. */
export function move(
  rows: readonly TreeRow[],
  visible: readonly number[],
  collapsed: ReadonlySet<string>,
  from: number,
  step: Step,
): Move {
  const place = Math.max(visible.indexOf(from), 0);
  const row = rows[from];
  if (row === undefined) return { to: visible[0] ?? 0 };
  const open = row.last > from && !collapsed.has(row.span.id);
  switch (step) {
    case 'up':
      return { to: visible[Math.max(place - 1, 0)] ?? from };
    case 'down':
      return { to: visible[Math.min(place + 1, visible.length - 1)] ?? from };
    case 'home':
      return { to: visible[0] ?? from };
    case 'end':
      return { to: visible.at(-1) ?? from };
    case 'left':
      return open ? { to: from, collapse: row.span.id } : { to: Math.max(row.parent, 0) };
    case 'right':
      if (row.last === from) return { to: from };
      return open ? { to: from + 1 } : { to: from, expand: row.span.id };
  }
}

export interface Summary {
  services: string[];
  errors: number;
  threads: number;
}

export function summary(spans: readonly Span[]): Summary {
  return {
    services: [...new Set(spans.map((span) => span.service))],
    errors: spans.filter((span) => span.outcome === 'failed').length,
    threads: new Set(spans.map((span) => `${span.host}\n${span.thread}`)).size,
  };
}
