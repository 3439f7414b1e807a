// Where is the user? All state of the page lives behind the # of its address, so that an address can be shared.
//
//   #/services/bulletin-board?range=15m&sort=p95
//     path                     params
import { useEffect, useState } from 'preact/hooks';

export interface Place {
  /** Decoded segments: ['services', 'bulletin-board']. */
  path: string[];
  params: URLSearchParams;
}

/** Values to set; null or '' removes one, a list repeats it. */
export type Changes = Record<string, string | number | null | undefined | string[]>;

/** Parameters that go along from page to page. */
const CARRIED = ['range', 'from', 'to', 'refresh'];

export function parsePlace(hash: string): Place {
  const text = hash.replace(/^#?\/?/, '');
  const cut = text.indexOf('?');
  const path = (cut < 0 ? text : text.slice(0, cut)).split('/').filter((part) => part !== '');
  return { path: path.map(decodeSafely), params: new URLSearchParams(cut < 0 ? '' : text.slice(cut + 1)) };
}

function decodeSafely(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function formatPlace(path: string[], params: URLSearchParams): string {
  const query = params.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${query === '' ? '' : `?${query}`}`;
}

export function withChanges(params: URLSearchParams, changes: Changes): URLSearchParams {
  const result = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    result.delete(name);
    if (Array.isArray(value)) value.forEach((one) => result.append(name, one));
    else if (value !== null && value !== undefined && value !== '') result.set(name, String(value));
  }
  return result;
}

/** Address of another page: the time range goes along, everything else starts anew. */
export function linkTo(path: string[], changes: Changes = {}): string {
  const carried = new URLSearchParams();
  const here = parsePlace(window.location.hash).params;
  for (const name of CARRIED) {
    const value = here.get(name);
    if (value !== null) carried.set(name, value);
  }
  return formatPlace(path, withChanges(carried, changes));
}

/** Goes to another page; back returns here. */
export function goTo(address: string): void {
  window.location.hash = address;
}

/** Changes parameters of this page. `keep` adds a step to the history; the default replaces, as for typing and sorting. */
export function change(changes: Changes, history: 'replace' | 'keep' = 'replace'): void {
  const here = parsePlace(window.location.hash);
  const address = formatPlace(here.path, withChanges(here.params, changes));
  if (address === window.location.hash) return;
  if (history === 'keep') {
    window.location.hash = address;
    return;
  }
  window.history.replaceState(null, '', address);
  window.dispatchEvent(new HashChangeEvent('hashchange'));
}

export function usePlace(): Place {
  const [hash, setHash] = useState(window.location.hash);
  useEffect(() => {
    const update = (): void => setHash(window.location.hash);
    window.addEventListener('hashchange', update);
    update();
    return () => window.removeEventListener('hashchange', update);
  }, []);
  return parsePlace(hash);
}
