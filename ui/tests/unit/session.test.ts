import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { api, ApiError } from '../../src/lib/api';
import { enter, expire, leave, mayRead, state, type Session } from '../../src/lib/session';

const reader: Session = {
  tokens: true,
  name: 'reader',
  roles: ['read'],
  match: null,
  expires: null,
  session_expires: '2027-01-31T00:00:00Z',
};

beforeEach(() => state.set({ kind: 'asking' }));
afterEach(() => vi.unstubAllGlobals());

/** Answers each request with this status. Returns the list that collects the requests. */
function answers(status: number, body = '{}'): Request[] {
  const asked: Request[] = [];
  vi.stubGlobal('fetch', async (path: string, request: RequestInit) => {
    asked.push(new Request(`http://tacho.example/${path}`, { ...request, signal: null }));
    return new Response(status === 204 ? null : body, { status });
  });
  return asked;
}

test('a refused request leads to the login, which gives the reason if a session has ended', async () => {
  answers(401, '{"errorType":"unauthorized","error":"this server requires a token"}');
  const ask = () => api.status(new AbortController().signal);
  await expect(ask()).rejects.toThrow(ApiError);
  expect(state.get()).toEqual({ kind: 'closed', why: '' });
  enter(reader);
  await expect(ask()).rejects.toThrow(ApiError);
  const ended = state.get();
  expect(ended).toEqual({ kind: 'closed', why: 'The session has ended. Log in again.' });
  await expect(ask()).rejects.toThrow(ApiError);
  expect(state.get()).toBe(ended);
});

test('a late refusal does not end a newer session', () => {
  enter(reader);
  const before = state.get();
  leave();
  enter(reader);
  expire(before);
  expect(state.get().kind).toBe('open');
});

test('a token that may only write does not open the page', () => {
  expect(
    [['read'], ['admin'], ['write'], ['read', 'write'], []].map((roles) => mayRead(roles as Session['roles'])),
  ).toEqual([true, true, false, true, false]);
  enter({ ...reader, name: 'shop', roles: ['write'] });
  const why = 'The token shop may not read. Use a token with the role read or admin.';
  expect(state.get()).toEqual({ kind: 'closed', why });
});

test('a login sends the token in the body only', async () => {
  const asked = answers(200, JSON.stringify({ data: reader }));
  expect(await api.login('tacho_secret')).toEqual(reader);
  const [request] = asked;
  expect(request?.url).toBe('http://tacho.example/api/session');
  expect(await request?.json()).toEqual({ token: 'tacho_secret' });
  expect([...(request?.headers ?? [])].sort()).toEqual([
    ['accept', 'application/json'],
    ['content-type', 'application/json'],
    ['x-tacho', '1'],
  ]);
});

test('requests that change something have the header x-tacho', async () => {
  const asked = answers(204);
  await api.logout();
  await api.removeProbe(3);
  expect(asked.map(({ method, headers }) => [method, headers.get('x-tacho')])).toEqual([
    ['DELETE', '1'],
    ['DELETE', '1'],
  ]);
});
