// Refreshes parts of the page that show the current state.
import { useEffect, useRef, useState } from 'preact/hooks';

/** A counter that rises periodically while the page is visible and `busy` is false, and on each call of `next`. The caller sets
 * `busy` while a request is running. */
export function useTick(milliseconds: number): { tick: number; next: () => void; busy: { current: boolean } } {
  const [tick, setTick] = useState(0);
  const busy = useRef(false);
  const next = (): void => setTick((before) => before + 1);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && !busy.current && next(), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
  return { tick, next, busy };
}
