// What do answers say of themselves: which stored records could not be read, what stands for many? Shown above their page.
import { Store } from './store';

/** What an answer may have beside its data. */
export interface Told {
  warnings?: string[];
  infos?: string[];
}

export interface Notices {
  warnings: string[];
  infos: string[];
}

/** Questions of one page whose notices are kept. */
const QUESTIONS_MAX = 64;
const NONE: Notices = { warnings: [], infos: [] };

/** By question, so that the next answer to it takes the place of the last. */
const told = new Map<string, Told>();

export const notices = new Store<Notices>(NONE);

/** The question of an answer: its times do not matter. */
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

/** Another page asks other questions. */
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
