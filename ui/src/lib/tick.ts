// How does a part of the page that shows the state of this moment stay up to date?
import { useEffect, useRef, useState } from 'preact/hooks';

/** A number that rises every so often while somebody looks and nothing is on its way; and whenever the second is called. */
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
