// Warnings and infos of responses, for example about unreadable records and downsampled samples. They are shown above the page.
import { Store } from './store';

/** Optional members of a response. */
export interface Told {
  warnings?: string[];
  infos?: string[];
}

export interface Notices {
  warnings: string[];
  infos: string[];
}

/** Limit on the requests of one page for which notices are kept. */
const QUESTIONS_MAX = 64;
const NONE: Notices = { warnings: [], infos: [] };

/** Notices by request. The next response to a request replaces its earlier notices. */
const told = new Map<string, Told>();

export const notices = new Store<Notices>(NONE);

/** The key of a request: its address without times and step. */
export function questionOf(address: string): string {
  const [path = '', query = ''] = address.split('?');
  const params = [...new URLSearchParams(query)].filter(([name]) => !['start', 'end', 'time', 'step'].includes(name));
  return `${path}?${new URLSearchParams(params)}`;
}

export function take(address: string, { warnings, infos }: Told): void {
  const question = questionOf(address);
  const known = told.delete(question);
  if ((warnings ?? infos) !== undefined) told.set(question, { warnings, infos });
  else if (!known) return;
  for (const oldest of told.keys()) {
    if (told.size <= QUESTIONS_MAX) break;
    told.delete(oldest);
  }
  show();
}

/** Clears the notices when another page opens. */
export function forget(): void {
  told.clear();
  show();
}

function show(): void {
  const all = [...told.values()];
  const once = (texts: string[]): string[] => [...new Set(texts)];
  notices.set({
    warnings: once(all.flatMap((one) => one.warnings ?? [])),
    infos: once(all.flatMap((one) => one.infos ?? [])).map((text) => text.replace(/^PromQL info: /, '')),
  });
}
