// Light or dark theme: the system's setting until the user chooses; the choice is kept in this browser.
import { Store } from './store';

export type Choice = 'system' | 'light' | 'dark';

const KEY = 'tachograph.theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');

function stored(): Choice {
  const value = localStorage.getItem(KEY);
  return value === 'light' || value === 'dark' ? value : 'system';
}

function effective(choice: Choice): 'light' | 'dark' {
  if (choice !== 'system') return choice;
  return system.matches ? 'dark' : 'light';
}

export const choice = new Store<Choice>(stored());
/** The current theme; canvases redraw when it changes. */
export const theme = new Store<'light' | 'dark'>(effective(choice.get()));

function apply(): void {
  const next = effective(choice.get());
  document.documentElement.dataset.theme = next;
  theme.set(next);
}

export function startTheme(): void {
  system.addEventListener('change', apply);
  choice.watch((value) => {
    if (value === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, value);
    apply();
  });
  apply();
}

/** The value of a colour token, for canvases. */
export function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
