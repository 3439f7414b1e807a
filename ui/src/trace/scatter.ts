// Positions of traces in the chart of durations over time: time to the right, duration up on a log scale.
import type { TimeWindow } from '../lib/time';

export interface Mark {
  /** Unix seconds. */
  at: number;
  /** Nanoseconds. */
  duration: number;
}

export interface Box {
  width: number;
  height: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Scale {
  x: (seconds: number) => number;
  y: (nanos: number) => number;
  toSeconds: (x: number) => number;
  toNanos: (y: number) => number;
  /** Round durations for the axis. */
  ticks: number[];
}

/**
 * The part of the window that contains the marks, with a margin. Used if more traces match than were returned, because the
 * returned ones may cover a small part of the window.
 */
export function extent(marks: readonly Mark[], window: TimeWindow): TimeWindow {
  const first = marks.reduce((least, mark) => Math.min(least, mark.at), Infinity);
  const last = marks.reduce((most, mark) => Math.max(most, mark.at), -Infinity);
  if (!(last > first)) return window;
  const room = (last - first) * 0.04;
  return { start: Math.max(first - room, window.start), end: Math.min(last + room, window.end) };
}

/**
 * Exponents of the axis of durations: of the power of ten at or below the shortest duration, and of the power of ten at or
 * above the longest. The axis has at least one decade. Durations of 0 are ignored.
 */
export function decades(durations: readonly number[]): [number, number] {
  const positive = durations.filter((duration) => duration > 0);
  if (positive.length === 0) return [5, 7];
  const low = Math.floor(Math.log10(positive.reduce((least, one) => Math.min(least, one), Infinity)));
  const high = Math.ceil(Math.log10(positive.reduce((most, one) => Math.max(most, one), 0)));
  return [low, Math.max(high, low + 1)];
}

export function scaleOf(marks: readonly Mark[], start: number, end: number, box: Box): Scale {
  const [low, high] = decades(marks.map((mark) => mark.duration));
  const wide = box.width - box.left - box.right;
  const tall = box.height - box.top - box.bottom;
  const x = (seconds: number): number => box.left + ((seconds - start) / (end - start)) * wide;
  const y = (nanos: number): number => box.top + ((high - Math.log10(Math.max(nanos, 1))) / (high - low)) * tall;
  return {
    x,
    y: (nanos) => Math.min(Math.max(y(nanos), box.top), box.top + tall),
    toSeconds: (at) => start + ((at - box.left) / wide) * (end - start),
    toNanos: (at) => 10 ** (high - ((at - box.top) / tall) * (high - low)),
    ticks: Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index)),
  };
}

/** Index of the nearest mark within `reach` pixels, -1 for none. */
export function nearest(marks: readonly Mark[], scale: Scale, x: number, y: number, reach: number): number {
  let found = -1;
  let least = reach * reach;
  marks.forEach((mark, index) => {
    const distance = (scale.x(mark.at) - x) ** 2 + (scale.y(mark.duration) - y) ** 2;
    if (distance <= least) {
      least = distance;
      found = index;
    }
  });
  return found;
}

/** Round times for the axis, at least `space` pixels apart, such as full seconds, minutes or hours of local time. */
export function timeTicks(start: number, end: number, pixels: number, space = 90): { step: number; at: number[] } {
  const steps = [
    0.01, 0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    604_800,
  ];
  const wanted = ((end - start) * space) / Math.max(pixels, 1);
  const step = steps.find((one) => one >= wanted) ?? Math.ceil(wanted / 604_800) * 604_800;
  const zone = new Date(start * 1000).getTimezoneOffset() * 60;
  const at: number[] = [];
  for (let time = Math.ceil((start - zone) / step) * step + zone; time <= end; time += step) at.push(time);
  return { step, at };
}
