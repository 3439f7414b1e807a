// The current time window. It is set in the address; "now" moves only on refresh, so that all requests of one page
// use the same window.
import { useEffect, useMemo } from 'preact/hooks';
import { change, usePlace } from './router';
import { Store, useStore } from './store';
import { windowOf, type WindowState } from './window-of';

export type { WindowState };

const now = new Store(Date.now() / 1000);

/** Moves "now" to the current time. A page with a range up to now repeats its requests. */
export function refreshNow(): void {
  now.set(Date.now() / 1000);
}

export function useWindow(): WindowState {
  const at = useStore(now);
  const { params } = usePlace();
  const key = ['range', 'from', 'to', 'refresh'].map((name) => params.get(name)).join('|');
  return useMemo(() => windowOf(params, at), [key, at]);
}

/** Refreshes at the window's interval while the page is visible, unless the window is fixed. Only `Shell` uses it. */
export function useRefresh(state: WindowState): void {
  useEffect(() => {
    if (state.refresh === 0 || state.range === null) return;
    const timer = setInterval(() => document.visibilityState === 'visible' && refreshNow(), state.refresh * 1000);
    return () => clearInterval(timer);
  }, [state.refresh, state.range]);
}

// A page of a search belongs to its window, so another window begins with the first page (`after`).
export function setRange(range: string): void {
  refreshNow();
  change({ range, from: null, to: null, after: null }, 'keep');
}

/** Sets a fixed window, for example one that was selected by dragging on a chart; it becomes at least 10 ms wide. */
export function setFixed(start: number, end: number): void {
  const last = Math.max(end, start + 0.01);
  change({ range: null, from: start.toFixed(3), to: last.toFixed(3), after: null }, 'keep');
}

export function setRefresh(seconds: number): void {
  change({ refresh: seconds === 0 ? null : seconds });
}
