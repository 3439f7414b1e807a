// Keys that work on every page.
import { useEffect } from 'preact/hooks';

/** True while the user types into a text field, so letters are not commands. */
export function typing(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return target !== null && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
}

/** Calls `handle` for each key without Ctrl, Alt or Meta. Skips keys in a text field, and keys that an element has handled. */
export function useKeys(handle: (key: string, event: KeyboardEvent) => void, deps: unknown[] = []): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (typing(event) || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      handle(event.key, event);
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, deps);
}

/** Focuses the search field of the page, marked with `data-search`. Returns false if the page has none. */
export function focusSearch(): boolean {
  const field = document.querySelector<HTMLElement>('[data-search]');
  field?.focus();
  if (field instanceof HTMLInputElement) field.select();
  return field !== null;
}
