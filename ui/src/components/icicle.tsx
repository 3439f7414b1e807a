// Stacked bars on a canvas: a trace over time, or an aggregated call tree. The wheel with Ctrl, the buttons, and the keys + and -
// zoom; dragging moves; a click selects; a double click zooms to the bar under the pointer, Enter to the selected bar.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useSize } from '../lib/size';
import { useStore } from '../lib/store';
import { theme } from '../lib/theme';
import { clamp, frameAt, neighbour, rowCount, zoom, type Direction, type Frame, type View } from '../trace/icicle';
import { draw, ROW, RULER } from './icicle-draw';
import { ZoomButtons } from './zoom-buttons';

export interface Bar {
  label: string;
  /** Colour token of the background. */
  token: string;
  failed: boolean;
}

interface Props {
  label: string;
  frames: readonly Frame[];
  bars: readonly Bar[];
  whole: View;
  view: View;
  onView: (view: View) => void;
  chosen: number;
  onChoose: (index: number) => void;
  /** Content of the tooltip. */
  tip: (index: number) => ComponentChildren;
  /** Text for screen readers when a bar is selected. */
  say: (index: number) => string;
}

const ARROWS: Record<string, Direction> = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' };

export function Icicle(props: Props) {
  const { frames, bars, whole, view, onView, chosen, label, tip, say } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const { width } = useSize(box, { width: 0, height: 0 });
  const [hover, setHover] = useState<{ index: number; x: number; y: number } | null>(null);
  const colors = useStore(theme);
  const height = RULER + rowCount(frames) * ROW + 4;
  useEffect(() => {
    if (canvas.current !== null)
      draw(canvas.current, { frames, bars, view, whole, chosen, hover: hover?.index ?? -1, width, height });
  }, [frames, bars, view, chosen, hover?.index, width, height, colors]);
  useChosenInSight(canvas, frames[chosen]);
  const pointer = usePointer(props, width, setHover);
  useWheel(canvas, props, width);
  const middle = (view.start + view.end) / 2;
  return (
    <div class="icicle">
      <div class="icicle-scroll" ref={box}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label={`${label}. Arrow keys select, Enter zooms, Escape shows all.`}
          onKeyDown={(event) => pressed(event, props)}
          {...pointer}
        />
      </div>
      {hover !== null && <Tip at={hover}>{tip(hover.index)}</Tip>}
      <ZoomButtons
        onIn={() => onView(zoom(view, whole, 0.5, middle))}
        onOut={() => onView(zoom(view, whole, 2, middle))}
        onAll={() => onView(whole)}
      />
      <div class="hidden" aria-live="polite">
        {chosen >= 0 ? say(chosen) : ''}
      </div>
    </div>
  );
}

function pressed(event: KeyboardEvent, props: Props): void {
  const { frames, view, whole, chosen, onChoose, onView } = props;
  const frame = frames[chosen];
  const middle = frame === undefined ? (view.start + view.end) / 2 : frame.start + frame.width / 2;
  const direction = ARROWS[event.key];
  if (direction !== undefined) {
    const next = neighbour(frames, chosen, direction);
    onChoose(next);
    const target = frames[next];
    if (target !== undefined && (target.start + target.width < view.start || target.start > view.end))
      onView(around(target, view, whole));
  } else if (event.key === 'Enter' && frame !== undefined) onView(fill(frame, whole));
  else if (event.key === '+' || event.key === '=') onView(zoom(view, whole, 0.5, middle));
  else if (event.key === '-') onView(zoom(view, whole, 2, middle));
  else if (event.key === '0' || event.key === 'Escape') onView(whole);
  else return;
  event.preventDefault();
}

const fill = (frame: Frame, whole: View): View => clamp({ start: frame.start, end: frame.start + frame.width }, whole);

function around(frame: Frame, view: View, whole: View): View {
  const half = (view.end - view.start) / 2;
  const middle = frame.start + frame.width / 2;
  return clamp({ start: middle - half, end: middle + half }, whole);
}

/** Scrolls the box so that the selected bar's row is visible. */
function useChosenInSight(canvas: { current: HTMLCanvasElement | null }, frame: Frame | undefined): void {
  useEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box || frame === undefined) return;
    const top = RULER + frame.row * ROW;
    if (top < box.scrollTop + RULER) box.scrollTop = top - RULER;
    else if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
  }, [frame]);
}

type SetHover = (hover: { index: number; x: number; y: number } | null) => void;

function usePointer(props: Props, width: number, setHover: SetHover) {
  const { frames, view, whole, onView, onChoose } = props;
  const drag = useRef<{ x: number; view: View; moved: boolean } | null>(null);
  const scale = (view.end - view.start) / Math.max(width, 1);
  const under = (event: MouseEvent): number =>
    frameAt(frames, view.start + event.offsetX * scale, Math.floor((event.offsetY - RULER) / ROW), scale);
  return {
    onPointerDown: (event: PointerEvent) => {
      drag.current = { x: event.offsetX, view, moved: false };
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const from = drag.current;
      if (from !== null && (from.moved || Math.abs(event.offsetX - from.x) > 3)) {
        from.moved = true;
        const shift = (from.x - event.offsetX) * scale;
        onView(clamp({ start: from.view.start + shift, end: from.view.end + shift }, whole));
        return;
      }
      const index = under(event);
      const box = (event.currentTarget as HTMLElement).parentElement;
      setHover(index < 0 ? null : { index, x: event.offsetX, y: event.offsetY - (box?.scrollTop ?? 0) });
    },
    onPointerUp: (event: PointerEvent) => {
      if (drag.current?.moved === false) onChoose(under(event));
      drag.current = null;
    },
    onPointerLeave: () => setHover(null),
    onDblClick: (event: MouseEvent) => {
      const frame = frames[under(event)];
      onView(frame === undefined ? whole : fill(frame, whole));
    },
  };
}

/** Ctrl and the wheel zoom; Shift and the wheel, or a horizontal wheel, move; the wheel alone scrolls the page.
 *  Needs its own listener: a listener added by Preact cannot prevent the browser's default action. */
function useWheel(canvas: { current: HTMLCanvasElement | null }, props: Props, width: number): void {
  const latest = useRef({ props, width });
  latest.current = { props, width };
  useEffect(() => {
    const element = canvas.current;
    const turn = (event: WheelEvent): void => {
      const { view, whole, onView } = latest.current.props;
      const scale = (view.end - view.start) / Math.max(latest.current.width, 1);
      if (event.ctrlKey || event.metaKey)
        onView(zoom(view, whole, Math.exp(event.deltaY / 240), view.start + event.offsetX * scale));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const shift = (event.deltaX || event.deltaY) * scale;
        onView(clamp({ start: view.start + shift, end: view.end + shift }, whole));
      } else return;
      event.preventDefault();
    };
    element?.addEventListener('wheel', turn, { passive: false });
    return () => element?.removeEventListener('wheel', turn);
  }, []);
}

function Tip({ at, children }: { at: { x: number; y: number }; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    const room = element?.parentElement;
    if (!element || !room) return;
    const x = Math.min(at.x + 14, Math.max(room.clientWidth - element.offsetWidth - 4, 0));
    element.style.transform = `translate(${x}px, ${at.y + 18}px)`;
  });
  return (
    <div class="tip" ref={box}>
      {children}
    </div>
  );
}
