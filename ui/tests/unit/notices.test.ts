// The warnings and infos of responses that the page shows.
import { beforeEach, describe, expect, it } from 'vitest';
import { forget, notices, questionOf, take } from '../../src/lib/notices';

beforeEach(forget);

describe('notices', () => {
  it('belong to a request, independent of its times', () => {
    const ask = (query: string, start: number): string =>
      `api/v1/query_range?query=${query}&start=${start}&end=9&step=1`;
    expect(questionOf(ask('up', 1))).toBe(questionOf(ask('up', 2)));
    expect(questionOf(ask('up', 1))).not.toBe(questionOf(ask('down', 1)));
    take(ask('up', 1), { warnings: ['one'] });
    take(ask('down', 1), { warnings: ['one', 'two'], infos: ['PromQL info: averages of 1 h'] });
    expect(notices.get()).toEqual({ warnings: ['one', 'two'], infos: ['averages of 1 h'] });
    take(ask('down', 2), {});
    expect(notices.get()).toEqual({ warnings: ['one'], infos: [] });
    forget();
    expect(notices.get()).toEqual({ warnings: [], infos: [] });
  });

  it('of many requests are limited', () => {
    for (let n = 0; n < 1000; n++) take(`api/graph?service=${n}`, { warnings: [`warning ${n}`] });
    expect(notices.get().warnings.length).toBe(64);
    expect(notices.get().warnings.at(-1)).toBe('warning 999');
  });
});
