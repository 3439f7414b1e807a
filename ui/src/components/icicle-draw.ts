// Draws the bars of an icicle on its canvas.
import { token } from '../lib/theme';
import { duration } from '../lib/units';
import { ticks, type Frame, type View } from '../trace/icicle';
import type { Bar } from './icicle';

/** Heights in pixels. */
export const ROW = 22;
export const RULER = 24;

interface Picture {
  frames: readonly Frame[];
  bars: readonly Bar[];
  whole: View;
  view: View;
  chosen: number;
  hover: number;
  width: number;
  height: number;
}

export function draw(canvas: HTMLCanvasElement, picture: Picture): void {
  const { width, height } = picture;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  if (context === null || width === 0) return;
  context.scale(ratio, ratio);
  context.textBaseline = 'middle';
  drawRuler(context, picture);
  drawBars(context, picture);
}

function drawRuler(context: CanvasRenderingContext2D, { view, width, height }: Picture): void {
  const scale = width / (view.end - view.start);
  context.font = `11px ${token('--sans')}`;
  context.fillStyle = token('--text-3');
  context.strokeStyle = token('--grid');
  context.lineWidth = 1;
  for (const at of ticks(view, width)) {
    const x = Math.round((at - view.start) * scale) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.stroke();
    const label = at === 0 ? '0' : duration(at);
    if (x + 4 + context.measureText(label).width < width) context.fillText(label, x + 4, RULER / 2);
  }
}

function drawBars(context: CanvasRenderingContext2D, picture: Picture): void {
  const { frames, bars, view, width, chosen, hover } = picture;
  const scale = width / (view.end - view.start);
  const paint = painter(context, width);
  // Where a bar is already drawn, bars narrower than a pixel are omitted, except the selected bar and failed calls.
  const drawnTo: number[] = [];
  frames.forEach((frame, index) => {
    const bar = bars[index];
    const x = (frame.start - view.start) * scale;
    const long = frame.width * scale;
    if (bar === undefined || x > width || x + long < 0) return;
    if (long < 1 && index !== chosen && !bar.failed && x < (drawnTo[frame.row] ?? -1)) return;
    drawnTo[frame.row] = x + 1;
    paint(bar, x, RULER + frame.row * ROW, long, index === hover);
  });
  outline(context, frames[chosen], view, scale);
}

type Paint = (bar: Bar, x: number, y: number, long: number, lit: boolean) => void;

function painter(context: CanvasRenderingContext2D, width: number): Paint {
  const colors = new Map<string, string>();
  const color = (name: string): string => {
    const known = colors.get(name) ?? token(name);
    colors.set(name, known);
    return known;
  };
  context.font = `12px ${token('--sans')}`;
  const text = color('--bar-text');
  const letter = context.measureText('n').width;
  return (bar, x, y, long, lit) => {
    const left = Math.max(x, 0);
    const wide = Math.max(Math.min(x + long, width) - left - (long > 3 ? 1 : 0), 1);
    context.fillStyle = color(bar.token);
    context.globalAlpha = lit ? 0.75 : 1;
    context.fillRect(left, y, wide, ROW - 2);
    context.globalAlpha = 1;
    if (bar.failed) {
      context.fillStyle = color('--error');
      context.fillRect(left, y + ROW - 5, wide, 3);
    }
    if (wide < 28) return;
    context.fillStyle = text;
    context.fillText(fit(context, bar.label, wide - 10, letter), left + 5, y + (ROW - 2) / 2 + 0.5);
  };
}

/** The text if it fits, otherwise its first letters with an ellipsis, or nothing if fewer than two letters fit. */
function fit(context: CanvasRenderingContext2D, label: string, room: number, letter: number): string {
  if (label.length * letter * 0.7 <= room && context.measureText(label).width <= room) return label;
  let low = 0;
  let high = Math.min(label.length, Math.ceil(room / (letter * 0.3)));
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (context.measureText(`${label.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? '' : `${label.slice(0, low)}…`;
}

function outline(context: CanvasRenderingContext2D, frame: Frame | undefined, view: View, scale: number): void {
  if (frame === undefined) return;
  const x = (frame.start - view.start) * scale;
  context.strokeStyle = token('--text');
  context.lineWidth = 2;
  context.strokeRect(x + 1, RULER + frame.row * ROW + 1, Math.max(frame.width * scale - 3, 2), ROW - 4);
}
