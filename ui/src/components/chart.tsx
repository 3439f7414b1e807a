// A chart of lines over time. Dragging on it sets the page's time window; charts with the same `sync` share a cursor.
import uPlot from 'uplot';
import { useEffect, useRef } from 'preact/hooks';
import { useStore } from '../lib/store';
import { theme, token } from '../lib/theme';
import { clock, day, type TimeWindow } from '../lib/time';
import { format, type Unit } from '../lib/units';
import { setFixed } from '../lib/window';
import { tip } from './chart-tip';

export interface Line {
  label: string;
  /** Colour as token (`--s1`) for the canvas and as class (`c1`) for the legend. */
  token: string;
  color: string;
  values: (number | null)[];
  hidden?: boolean;
}

interface Props {
  label: string;
  times: number[];
  lines: Line[];
  unit: Unit;
  window: TimeWindow;
  height?: number;
  sync?: string;
  /** Text in the middle of a chart without lines. */
  empty?: string;
  /** Called when the time axis moves or changes its width. */
  onArea?: (area: Area) => void;
}

/** Position of the time axis, in pixels from the chart's left edge. */
export interface Area {
  left: number;
  width: number;
}

export function Chart(props: Props) {
  const { label, times, lines, unit, window: range, height = 180, sync, empty = 'No data', onArea } = props;
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shown = useRef(range);
  shown.current = range;
  const colors = useStore(theme);
  const shape = [unit, height, sync, colors, ...lines.map((line) => `${line.label}${line.token}`)].join('\n');
  const data: uPlot.AlignedData = [times, ...lines.map((line) => line.values)];
  useEffect(() => {
    const element = holder.current;
    if (element === null) return;
    const made = new uPlot(options(element, lines, unit, height, shown, sync), data, element);
    plot.current = made;
    tellArea(made, onArea);
    const observer = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height });
      tellArea(made, onArea);
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => {
    plot.current?.batch(() => {
      lines.forEach((line, index) => plot.current?.setSeries(index + 1, { show: line.hidden !== true }));
      plot.current?.setData(data);
    });
    // The axis of values is as wide as its widest label.
    if (plot.current !== null) tellArea(plot.current, onArea);
  });
  const drawn = lines.some((line) => line.values.some((value) => value !== null));
  return (
    <div class="chart" role="img" aria-label={label}>
      <div ref={holder} />
      {!drawn && <div class="chart-empty">{empty}</div>}
    </div>
  );
}

function tellArea(plot: uPlot, onArea: ((area: Area) => void) | undefined): void {
  const { left, width } = plot.over.getBoundingClientRect();
  onArea?.({ left: left - plot.root.getBoundingClientRect().left, width });
}

type Shown = { readonly current: TimeWindow };

function options(
  element: HTMLElement,
  lines: Line[],
  unit: Unit,
  height: number,
  shown: Shown,
  sync?: string,
): uPlot.Options {
  return {
    width: Math.max(element.clientWidth, 100),
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      drag: { x: true, y: false, setScale: false },
      y: false,
      points: { size: 6 },
      ...(sync === undefined ? {} : { sync: { key: sync, setSeries: false } }),
    },
    scales: {
      x: { time: true, range: () => [shown.current.start, shown.current.end] },
      y: { range: (_, low, high) => valueRange(low, high, unit) },
    },
    axes: [timeAxis(), valueAxis(unit)],
    series: [{}, ...lines.map(lineOptions)],
    hooks: { setSelect: [takeSelection] },
    plugins: [tip(lines, unit)],
  };
}

function lineOptions(line: Line): uPlot.Series {
  const stroke = token(line.token);
  return {
    label: line.label,
    stroke,
    width: 1.5,
    show: line.hidden !== true,
    points: { show: true, size: 4, stroke, fill: stroke, filter: (plot, series) => lonely(plot.data[series] ?? []) },
  };
}

/** Single points between two gaps; a line does not show them. */
function lonely(values: ArrayLike<number | null | undefined>): number[] {
  const found: number[] = [];
  for (let index = 0; index < values.length; index += 1) {
    const alone = (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null;
    if (alone && (values[index] ?? null) !== null) found.push(index);
  }
  return found;
}

/** The range of the axis of values. It contains zero if all values are equal. It starts at zero if no value is negative
 *  and the values vary much. Otherwise it starts just below the lowest value. */
export function valueRange(low: number | null, high: number | null, unit: Unit): [number, number] {
  // If all values are zero, the axis still needs a length: 1 % for shares, 1 for other units.
  const length = unit === 'percent' ? 0.01 : 1;
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) return [0, length];
  const room = (high - low) * 0.08;
  if (low >= 0 && low < high * 0.7) return [0, high + room];
  if (low === high) return low === 0 ? [0, length] : [Math.min(0, low * 1.2), Math.max(0, high * 1.2)];
  return [low - room, high + room];
}

function takeSelection(plot: uPlot): void {
  const { left, width } = plot.select;
  if (width < 4) return;
  const start = plot.posToVal(left, 'x');
  const end = plot.posToVal(left + width, 'x');
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  setFixed(start, end);
}

const font = (): string => `11px ${token('--sans')}`;

function timeAxis(): uPlot.Axis {
  return {
    stroke: () => token('--text-3'),
    font: font(),
    size: 30,
    gap: 8,
    space: 72,
    grid: { stroke: () => token('--grid'), width: 1 },
    ticks: { show: false },
    values: (_, splits, __, ___, step) => splits.map((at, index) => timeLabel(at, step, splits[index - 1])),
  };
}

/** Shows the date where a day begins, and seconds only where the steps need them. */
export function timeLabel(at: number, step: number, before: number | undefined): string {
  if (step >= 86_400 || (before !== undefined && day(before) !== day(at))) return day(at).slice(5);
  if (step < 1) return clock(at, true);
  return step < 60 ? clock(at) : clock(at).slice(0, 5);
}

function valueAxis(unit: Unit): uPlot.Axis {
  return {
    stroke: () => token('--text-3'),
    font: font(),
    gap: 6,
    space: 32,
    size: (_, values) => Math.max(44, Math.max(0, ...(values ?? []).map((value) => value.length)) * 6.4 + 14),
    grid: { stroke: () => token('--grid'), width: 1 },
    ticks: { show: false },
    values: (_, splits) => splits.map((value) => (value === 0 ? '0' : format(unit, value))),
  };
}
