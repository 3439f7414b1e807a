import { afterEach, expect, test, vi } from 'vitest';
import { api } from '../../src/lib/api';

afterEach(() => vi.unstubAllGlobals());

test('an empty scope is omitted from a rule', async () => {
  const sent: string[] = [];
  vi.stubGlobal('fetch', async (_: string, { body }: RequestInit) => {
    sent.push(String(body));
    return new Response('{}');
  });
  await api.addProbe({ state: 'off', pattern: 'a..*', service: '', instance: '', keep: false });
  await api.addProbe({ state: 'on', pattern: 'a..*', service: 'shop', instance: '8080', keep: true });
  expect(sent.map((body) => JSON.parse(body) as unknown)).toEqual([
    { state: 'off', pattern: 'a..*', keep: false },
    { state: 'on', pattern: 'a..*', service: 'shop', instance: '8080', keep: true },
  ]);
});
