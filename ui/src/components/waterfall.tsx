// The spans of a trace as a table with bars over time. Only the rows on the screen, and `SPARE` rows above and below them, are
// in the DOM. So 10,000 spans scroll smoothly.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Span } from '../lib/api';
import { duration } from '../lib/units';
import { labelOf, type View } from '../trace/icicle';
import { move, visibleRows, type Step, type TreeRow } from '../trace/tree';

const ROW = 28;
/** Number of additional rows in the DOM above the screen, and below it. */
const SPARE = 8;

const STEPS: Record<string, Step> = {
  ArrowUp: 'up',
  ArrowDown: 'down',
  ArrowLeft: 'left',
  ArrowRight: 'right',
  Home: 'home',
  End: 'end',
};

interface Props {
  rows: readonly TreeRow[];
  view: View;
  chosen: number;
  onChoose: (index: number) => void;
  collapsed: ReadonlySet<string>;
  onCollapsed: (collapsed: ReadonlySet<string>) => void;
}

export function Waterfall({ rows, view, chosen, onChoose, collapsed, onCollapsed }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const scroll = useScroll(box);
  const visible = visibleRows(rows, collapsed);
  const place = visible.indexOf(chosen);
  useEffect(() => scrollTo(box.current, place), [place]);
  const set = (id: string, closed: boolean): void => onCollapsed(withMember(collapsed, id, closed));
  const press = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const result = move(rows, visible, collapsed, chosen, step);
    if (result.collapse !== undefined) set(result.collapse, true);
    if (result.expand !== undefined) set(result.expand, false);
    onChoose(result.to);
  };
  const first = Math.max(Math.floor(scroll.top / ROW) - SPARE, 0);
  const shown = visible.slice(first, first + Math.ceil(scroll.height / ROW) + 2 * SPARE);
  return (
    <div
      class="waterfall"
      role="treegrid"
      aria-label="Spans"
      aria-rowcount={visible.length}
      tabIndex={0}
      aria-activedescendant={place >= 0 ? `span-${chosen}` : undefined}
      onKeyDown={press}
      ref={box}
    >
      <div class="waterfall-all" style={{ height: `${visible.length * ROW}px` }}>
        <div class="waterfall-shown" style={{ transform: `translateY(${first * ROW}px)` }}>
          {shown.map((index) => {
            const row = rows[index];
            return row === undefined ? null : (
              <SpanRow
                key={row.span.id}
                row={row}
                index={index}
                view={view}
                chosen={index === chosen}
                open={row.last > index ? !collapsed.has(row.span.id) : null}
                onChoose={onChoose}
                onToggle={set}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** Scroll position and visible height of the box, in pixels. */
function useScroll(box: { readonly current: HTMLElement | null }) {
  const [scroll, setScroll] = useState({ top: 0, height: 400 });
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = (): void => setScroll({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, []);
  return scroll;
}

function withMember(set: ReadonlySet<string>, id: string, member: boolean): ReadonlySet<string> {
  const next = new Set(set);
  if (member) next.add(id);
  else next.delete(id);
  return next;
}

function scrollTo(box: HTMLElement | null, place: number): void {
  if (box === null || place < 0) return;
  const top = place * ROW;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
}

interface RowProps {
  row: TreeRow;
  index: number;
  view: View;
  chosen: boolean;
  /** Whether the children are shown; null for a span without children. */
  open: boolean | null;
  onChoose: (index: number) => void;
  onToggle: (id: string, closed: boolean) => void;
}

function SpanRow({ row, index, view, chosen, open, onChoose, onToggle }: RowProps) {
  const { span, depth } = row;
  return (
    <div
      id={`span-${index}`}
      class={`span-row${chosen ? ' chosen' : ''}`}
      role="row"
      aria-level={depth + 1}
      aria-expanded={open ?? undefined}
      aria-selected={chosen}
      onClick={() => onChoose(index)}
    >
      <div class="span-name" role="gridcell" style={{ paddingLeft: `${8 + Math.min(depth, 40) * 14}px` }}>
        {open === null ? (
          <i class="twist" />
        ) : (
          <button
            type="button"
            class="twist"
            tabIndex={-1}
            aria-label={open ? 'Close' : 'Open'}
            onClick={(event) => {
              event.stopPropagation();
              onToggle(span.id, open);
            }}
          >
            {open ? '▾' : '▸'}
          </button>
        )}
        <i class={`dot ${span.kind}`} />
        <span class={span.outcome === 'failed' ? 'bad' : undefined} title={span.operation}>
          {labelOf(span)}
        </span>
      </div>
      <div class="span-service" role="gridcell">
        {span.service}
      </div>
      <div class="span-bar" role="gridcell">
        <BarOf span={span} view={view} />
      </div>
      <div class="span-number" role="gridcell">
        {duration(span.duration_ns)}
      </div>
      <div class="span-number faint" role="gridcell">
        {duration(span.self_ns)}
      </div>
    </div>
  );
}

function BarOf({ span, view }: { span: Span; view: View }) {
  const length = view.end - view.start;
  const left = Math.max((span.offset_ns - view.start) / length, 0);
  const right = Math.min((span.offset_ns + span.duration_ns - view.start) / length, 1);
  if (left >= 1 || right <= 0) return null;
  const failed = span.outcome === 'failed' ? ' failed' : '';
  return (
    <i
      class={`bar ${span.kind}${failed}`}
      style={{ left: `${left * 100}%`, width: `max(2px, ${(right - left) * 100}%)` }}
    />
  );
}
