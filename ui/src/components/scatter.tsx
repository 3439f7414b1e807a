// Traces as marks over time and duration. A click opens a trace; dragging a box narrows time and duration.
import { useRef, useState } from 'preact/hooks';
import type { TraceSummary } from '../lib/api';
import { useSize } from '../lib/size';
import { fromNanos, moment, type TimeWindow } from '../lib/time';
import { duration } from '../lib/units';
import { extent, nearest, scaleOf, timeTicks, type Box, type Mark, type Scale } from '../trace/scatter';
import { timeLabel } from './chart';

const HEIGHT = 210;
const EDGES = { left: 62, right: 10, top: 8, bottom: 24 };
/** Sum of the left and the right padding of `.scatter` in trace.css, in pixels. */
const PADDING = 32;
/** Largest distance in pixels at which the pointer hits a mark. */
const REACH = 14;

export interface Selection extends TimeWindow {
  /** Shortest and longest duration, ns. */
  shortest: number;
  longest: number;
}

interface Props {
  traces: readonly TraceSummary[];
  window: TimeWindow;
  /** True if more traces match than were returned; the time axis then shows only the range of the returned ones. */
  part: boolean;
  onOpen: (trace: TraceSummary) => void;
  onSelect: (selection: Selection) => void;
}

interface Corner {
  x: number;
  y: number;
}

export function Scatter({ traces, window: whole, part, onOpen, onSelect }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const width = Math.max(useSize(holder, { width: 832, height: 0 }).width - PADDING, 200);
  const [lit, setLit] = useState(-1);
  const [brush, setBrush] = useState<[Corner, Corner] | null>(null);
  const marks = traces.map((trace): Mark => ({ at: fromNanos(trace.start), duration: trace.duration_ns }));
  const range = part ? extent(marks, whole) : whole;
  const box: Box = { width, height: HEIGHT, ...EDGES };
  const scale = scaleOf(marks, range.start, range.end, box);
  const at = (event: MouseEvent): Corner => ({ x: event.offsetX, y: event.offsetY });
  const press = (event: PointerEvent): void => {
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    setBrush([at(event), at(event)]);
  };
  const slide = (event: PointerEvent): void => {
    setLit(nearest(marks, scale, event.offsetX, event.offsetY, REACH));
    if (brush !== null) setBrush([brush[0], at(event)]);
  };
  const release = (): void => {
    const trace = traces[lit];
    if (brush !== null && big(brush)) onSelect(selectionOf(brush, scale));
    else if (trace !== undefined) onOpen(trace);
    setBrush(null);
  };
  return (
    <div class="scatter" ref={holder}>
      <svg
        height={HEIGHT}
        viewBox={`0 0 ${width} ${HEIGHT}`}
        width={width}
        role="img"
        aria-label={`Durations of ${traces.length} traces over time; the list below has the same traces`}
      >
        <Axes scale={scale} box={box} window={range} />
        {traces.map((trace, index) => (
          <MarkOf
            key={trace.trace_id}
            trace={trace}
            x={scale.x(marks[index]?.at ?? 0)}
            y={scale.y(trace.duration_ns)}
            lit={index === lit}
          />
        ))}
        {brush !== null && big(brush) && <rect class="brush" {...rectOf(brush)} />}
        <rect
          class={`surface${lit >= 0 ? ' over' : ''}`}
          width={width}
          height={HEIGHT}
          onPointerDown={press}
          onPointerMove={slide}
          onPointerUp={release}
          onPointerLeave={() => setLit(-1)}
        />
      </svg>
      {brush === null && (
        <Tip
          trace={traces[lit]}
          x={scale.x(marks[lit]?.at ?? 0)}
          y={scale.y(marks[lit]?.duration ?? 1)}
          width={width}
        />
      )}
    </div>
  );
}

const big = ([a, b]: [Corner, Corner]): boolean => Math.abs(a.x - b.x) > 5 || Math.abs(a.y - b.y) > 5;

function rectOf([a, b]: [Corner, Corner]) {
  return { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) };
}

function selectionOf([a, b]: [Corner, Corner], scale: Scale): Selection {
  return {
    start: scale.toSeconds(Math.min(a.x, b.x)),
    end: scale.toSeconds(Math.max(a.x, b.x)),
    shortest: scale.toNanos(Math.max(a.y, b.y)),
    longest: scale.toNanos(Math.min(a.y, b.y)),
  };
}

function Axes({ scale, box, window: range }: { scale: Scale; box: Box; window: TimeWindow }) {
  const floor = box.height - box.bottom;
  const { step, at } = timeTicks(range.start, range.end, box.width - box.left - box.right);
  return (
    <g>
      {scale.ticks.map((nanos) => (
        <g key={nanos}>
          <line class="grid" x1={box.left} x2={box.width - box.right} y1={scale.y(nanos)} y2={scale.y(nanos)} />
          <text x={box.left - 8} y={scale.y(nanos)} text-anchor="end" dominant-baseline="middle">
            {duration(nanos)}
          </text>
        </g>
      ))}
      {at.map((time, index) => (
        <g key={time}>
          <line class="grid" x1={scale.x(time)} x2={scale.x(time)} y1={box.top} y2={floor} />
          <text x={scale.x(time)} y={box.height - 6} text-anchor="middle">
            {timeLabel(time, step, at[index - 1])}
          </text>
        </g>
      ))}
    </g>
  );
}

/** A failed trace differs by shape, not only by colour. */
function MarkOf({ trace, x, y, lit }: { trace: TraceSummary; x: number; y: number; lit: boolean }) {
  const failed = trace.outcome === 'failed';
  const classes = `mark${failed ? ' failed' : ''}${lit ? ' lit' : ''}`;
  return failed ? (
    <path class={classes} d={`M${x} ${y - 5}l5 5-5 5-5-5z`} />
  ) : (
    <circle class={classes} cx={x} cy={y} r="3.5" />
  );
}

function Tip({ trace, x, y, width }: { trace: TraceSummary | undefined; x: number; y: number; width: number }) {
  if (trace === undefined) return null;
  const right = x > width / 2;
  return (
    <div
      class={`tip${right ? ' left-of' : ''}`}
      style={{ transform: `translate(${x + (right ? 6 : 30)}px, ${y + 16}px)${right ? ' translateX(-100%)' : ''}` }}
    >
      <div class="wrap">
        <b>{trace.operation}</b>
      </div>
      <div class="muted">
        {trace.service} · {moment(fromNanos(trace.start), true)}
      </div>
      <div>
        {duration(trace.duration_ns)}
        {trace.outcome === 'failed' && <b class="bad"> failed</b>}
      </div>
    </div>
  );
}
