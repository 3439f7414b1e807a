// Requests that are running. Of those that take longer than a second, the server is asked how far they are.
// `components/running.tsx` shows them.
import { Store } from './store';

/** How far the server is. Absent for requests that report no progress. */
export interface Progress {
  /** A request may read the calls several times, in several passes. */
  pass: number;
  /** Share of the current pass, 0 to 1. */
  done: number;
  /** Calls read in all passes. */
  calls: number;
}

export interface Run {
  id: string;
  /** The path of the request, without its parameters. */
  path: string;
  seconds: number;
  progress: Progress | null;
  stop: () => void;
}

interface Request extends Run {
  begun: number;
}

const SLOW_MS = 1_000;

const running = new Map<string, Request>();
let isLooking = false;
let isAsking = false;

/** The requests that take longer than a second, the oldest first. */
export const slow = new Store<Run[]>([]);

/** Notes a request. The server knows it by the returned id. */
export function begin(address: string, stop: () => void): string {
  const id = `page-${Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join('')}`;
  const path = address.split('?')[0] ?? address;
  running.set(id, { id, path, seconds: 0, progress: null, stop, begun: performance.now() });
  if (!isLooking) setTimeout(look, SLOW_MS);
  isLooking = true;
  return id;
}

export function end(id: string): void {
  running.delete(id);
  show();
}

/** Runs every second while there are requests. */
function look(): void {
  show();
  isLooking = running.size > 0;
  if (!isLooking) return;
  if (late().length > 0 && !isAsking) void ask();
  setTimeout(look, SLOW_MS);
}

/** Keeps the known progress if the server does not answer, for example because slow requests take all connections. */
async function ask(): Promise<void> {
  isAsking = true;
  try {
    const signal = AbortSignal.timeout(5 * SLOW_MS);
    const response = await fetch('api/queries', { headers: { accept: 'application/json' }, signal });
    if (!response.ok) return;
    const { data } = (await response.json()) as { data: { queries: { id: string; progress: Progress | null }[] } };
    for (const { id, progress } of data.queries) {
      const one = running.get(id);
      if (one !== undefined) one.progress = progress;
    }
    show();
  } catch {
    // The request itself reports an unreachable server.
  } finally {
    isAsking = false;
  }
}

function late(): Request[] {
  const now = performance.now();
  return [...running.values()].filter((one) => now - one.begun >= SLOW_MS);
}

function show(): void {
  const now = performance.now();
  const shown = late().map((one) => ({ ...one, seconds: (now - one.begun) / 1_000 }));
  if (shown.length > 0 || slow.get().length > 0) slow.set(shown);
}
