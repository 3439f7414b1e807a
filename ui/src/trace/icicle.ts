// Positions of an icicle's bars: bars of a trace at their times, bars of an aggregated call tree side by side.
import type { CallNode, Span } from '../lib/api';
import type { TreeRow } from './tree';

/** A bar. `start` and `width` are in ns, `row` counts from the top. */
export interface Frame {
  start: number;
  width: number;
  row: number;
  /** Index of the parent's frame, -1 for none. */
  parent: number;
}

export interface View {
  start: number;
  end: number;
}

/** Frame i belongs to `rows[i]`. A span is drawn one row below its parent. If an earlier span in that row ends later than
 * the span begins (another thread), the span is drawn in the next free row. */
export function traceFrames(rows: readonly TreeRow[]): Frame[] {
  const ends: number[] = [];
  const frames: Frame[] = [];
  for (const { span, parent } of rows) {
    let row = (frames[parent]?.row ?? -1) + 1;
    while ((ends[row] ?? -Infinity) > span.offset_ns) row += 1;
    ends[row] = span.offset_ns + span.duration_ns;
    frames.push({ start: span.offset_ns, width: span.duration_ns, row, parent });
  }
  return frames;
}

export interface CallFrames {
  frames: Frame[];
  nodes: CallNode[];
}

/** Children are side by side from their parent's left edge, scaled down if their sum exceeds the parent (parallel calls). */
export function callFrames(root: CallNode): CallFrames {
  const frames: Frame[] = [];
  const nodes: CallNode[] = [];
  const place = (node: CallNode, start: number, width: number, row: number, parent: number): void => {
    const index = frames.push({ start, width, row, parent }) - 1;
    nodes.push(node);
    const together = node.children.reduce((sum, child) => sum + child.total_ns, 0);
    const scale = together > 0 ? Math.min(width / together, node.total_ns > 0 ? width / node.total_ns : Infinity) : 0;
    let at = start;
    for (const child of node.children) {
      place(child, at, child.total_ns * scale, row + 1, index);
      at += child.total_ns * scale;
    }
  };
  place(root, 0, root.total_ns, 0, -1);
  return { frames, nodes };
}

export const rowCount = (frames: readonly Frame[]): number =>
  frames.reduce((most, frame) => Math.max(most, frame.row + 1), 0);

/** Limits a view to the whole. The view is at least a millionth of the whole and at least 10 ns wide, but not wider than the
 * whole. */
export function clamp(view: View, whole: View): View {
  const length = whole.end - whole.start;
  const width = Math.min(Math.max(view.end - view.start, length / 1e6, Math.min(10, length)), length);
  const start = Math.min(Math.max(view.start, whole.start), whole.end - width);
  return { start, end: start + width };
}

/** The view as text for the address; null for the whole. A view starts below 0 if a span starts before the root. */
export function viewText(view: View, whole: View): string | null {
  const isWhole = view.start === whole.start && view.end === whole.end;
  return isWhole ? null : `${Math.round(view.start)}-${Math.round(view.end)}`;
}

/** The view of a text from `viewText`; the whole for other text. */
export function viewOf(text: string | null, whole: View): View {
  const found = /^(-?\d+)-(-?\d+)$/.exec(text ?? '');
  return found === null ? whole : clamp({ start: Number(found[1]), end: Number(found[2]) }, whole);
}

/** Zooms by a factor (> 1 zooms out) around a fixed point. */
export function zoom(view: View, whole: View, factor: number, around: number): View {
  return clamp({ start: around - (around - view.start) * factor, end: around + (view.end - around) * factor }, whole);
}

/** Index of the frame at a point, or at most `slack` ns left or right of the point; -1 for none. Of several frames, the last one
 * of the list, which is drawn last. */
export function frameAt(frames: readonly Frame[], at: number, row: number, slack: number): number {
  let found = -1;
  frames.forEach((frame, index) => {
    if (frame.row === row && at >= frame.start - slack && at <= frame.start + frame.width + slack) found = index;
  });
  return found;
}

export type Direction = 'up' | 'down' | 'left' | 'right';

/** Target of an arrow key. Up: the parent, down: the longest child, left and right: the previous and the next sibling that does
 * not overlap the frame. Returns `from` if there is no target. */
export function neighbour(frames: readonly Frame[], from: number, direction: Direction): number {
  const here = frames[from];
  if (here === undefined) return frames.length > 0 ? 0 : -1;
  if (direction === 'up') return here.parent >= 0 ? here.parent : from;
  let best = from;
  frames.forEach((frame, index) => {
    if (index !== from && better(frames, here, frame, from, best, direction)) best = index;
  });
  return best;
}

function better(
  frames: readonly Frame[],
  here: Frame,
  frame: Frame,
  from: number,
  best: number,
  direction: Direction,
): boolean {
  const current = best === from ? null : (frames[best] ?? null);
  if (direction === 'down') return frame.parent === from && (current === null || frame.width > current.width);
  if (frame.parent !== here.parent) return false;
  return direction === 'right'
    ? frame.start >= here.start + here.width && (current === null || frame.start < current.start)
    : frame.start + frame.width <= here.start && (current === null || frame.start > current.start);
}

/** Round positions for a ruler over the view, at least `space` pixels apart. */
export function ticks(view: View, pixels: number, space = 110): number[] {
  const wanted = ((view.end - view.start) * space) / Math.max(pixels, 1);
  if (!(wanted > 0)) return [];
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= wanted) ?? power * 10;
  const result: number[] = [];
  for (let at = Math.ceil(view.start / step) * step; at <= view.end; at += step) result.push(at);
  return result;
}

/** Short form of a name for a narrow bar: class and method without package and parameters. */
export function shortName(operation: string): string {
  const method = /^([\p{L}\p{N}_$.<>]+)\(.*\)$/su.exec(operation)?.[1];
  if (method === undefined) return operation;
  return method.split('.').slice(-2).join('.');
}

export const labelOf = (span: Span): string => shortName(span.operation);
