// The current page. The part of the address behind the # holds its state, so that an address can be shared.
import { useEffect, useState } from 'preact/hooks';
import { formatPlace, parsePlace, withChanges, type Changes, type Place } from './place';

/** Parameters kept when another page opens. */
const CARRIED = ['range', 'from', 'to', 'refresh'];

/** Address of another page: keeps the time range and the refresh interval, resets all other parameters. */
export function linkTo(path: string[], changes: Changes = {}): string {
  const carried = new URLSearchParams();
  const here = parsePlace(window.location.hash).params;
  for (const name of CARRIED) {
    const value = here.get(name);
    if (value !== null) carried.set(name, value);
  }
  return formatPlace(path, withChanges(carried, changes));
}

/** Opens another page; the back button returns here. */
export function goTo(address: string): void {
  window.location.hash = address;
}

/** Changes parameters of this page. With `keep` it adds a history entry. By default it replaces the
 * current entry, for typing and sorting. */
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
