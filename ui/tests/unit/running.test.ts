import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ApiError } from '../../src/lib/api';

const never = (): Promise<Response> => new Promise(() => undefined);
const WINDOW = { start: 0, end: 1 };

/** New modules for each test, because they hold the running requests. */
const load = async () => ({
  ...(await import('../../src/lib/api')),
  ...(await import('../../src/lib/running')),
});

beforeEach(() => {
  vi.resetModules();
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A server that answers as given, by the path of the request. Counts the requests by path. */
function serve(answers: Record<string, (request: RequestInit) => Promise<Response>>): Map<string, number> {
  const counts = new Map<string, number>();
  vi.stubGlobal('fetch', (address: string, request: RequestInit) => {
    const path = address.split('?')[0] ?? '';
    counts.set(path, (counts.get(path) ?? 0) + 1);
    const answer = answers[path] ?? never;
    const aborted = new Promise<Response>((_, refuse) =>
      request.signal?.addEventListener('abort', () => refuse(request.signal?.reason as Error)),
    );
    return Promise.race([answer(request), aborted]);
  });
  return counts;
}

test('a slow request is shown although the server does not report its progress, and can be stopped', async () => {
  const counts = serve({});
  const { api, slow } = await load();
  const asked = api.services(WINDOW, new AbortController().signal).catch((error: ApiError) => error);
  await vi.advanceTimersByTimeAsync(900);
  expect(slow.get()).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_200);
  expect(slow.get().map(({ path, seconds, progress }) => [path, Math.floor(seconds), progress])).toEqual([
    ['api/services', 3, null],
  ]);
  expect(counts.get('api/queries')).toBe(1);
  slow.get()[0]?.stop();
  expect(((await asked) as ApiError).type).toBe('canceled');
  expect(slow.get()).toEqual([]);
});

test('the server is asked once a second, however many requests begin and end', async () => {
  let id = '';
  const answer = async (): Promise<Response> => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    return Response.json({ data: { queries: [{ id, progress: { pass: 1, done: 0.5, calls: 7 } }] } });
  };
  const counts = serve({
    'api/services': (request) => {
      id = new Headers(request.headers).get('x-tacho-query') ?? '';
      return never();
    },
    'api/queries': answer,
  });
  const { api, slow } = await load();
  for (let round = 0; round < 5; round++) {
    const leaving = new AbortController();
    api.services(WINDOW, leaving.signal).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(1_150);
    leaving.abort();
  }
  const before = counts.get('api/queries') ?? 0;
  const leaving = new AbortController();
  api.services(WINDOW, leaving.signal).catch(() => undefined);
  await vi.advanceTimersByTimeAsync(10_000);
  expect((counts.get('api/queries') ?? 0) - before).toBeLessThanOrEqual(10);
  expect(slow.get()[0]?.progress).toEqual({ pass: 1, done: 0.5, calls: 7 });
  leaving.abort();
  await vi.advanceTimersByTimeAsync(3_000);
  const after = counts.get('api/queries');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(counts.get('api/queries')).toBe(after);
});
