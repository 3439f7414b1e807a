// State of a request for data. The last response stays visible until the next one arrives, so that nothing
// flickers; outdated responses are discarded.
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Resource<T> {
  /** The key that `data` belongs to. */
  key: string | null;
  data: T | null;
  error: Error | null;
  loading: boolean;
}

/** Reloads when `key` changes. A null key loads nothing and clears the data. */
export function useResource<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Resource<T> {
  const [state, setState] = useState<Resource<T>>({ key: null, data: null, error: null, loading: key !== null });
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    if (key === null) {
      setState({ key: null, data: null, error: null, loading: false });
      return;
    }
    const controller = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    latest.current(controller.signal).then(
      (data) => !controller.signal.aborted && setState({ key, data, error: null, loading: false }),
      (error: Error) => !controller.signal.aborted && setState((before) => ({ ...before, error, loading: false })),
    );
    return () => controller.abort();
  }, [key]);
  return state;
}
