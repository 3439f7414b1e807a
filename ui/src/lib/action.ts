// State of a request that changes data on the server. While `busy`, the caller disables its buttons. An error remains visible
// until a request succeeds.
import { useState } from 'preact/hooks';

export interface Action {
  busy: boolean;
  error: Error | null;
  /** Runs `work`. Resolves to false if `work` failed. */
  run: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** `done` is called after each request, also after a failed one. */
export function useAction(done: () => void): Action {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const run = async (work: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    try {
      await work();
      setError(null);
      return true;
    } catch (cause) {
      setError(cause as Error);
      return false;
    } finally {
      setBusy(false);
      done();
    }
  };
  return { busy, error, run };
}
