// The syntactic context at the cursor: a metric, a label's name, its value, a duration.
import { GROUPINGS } from './functions';

export type Context =
  | { kind: 'expression'; from: number; word: string }
  | { kind: 'label'; from: number; word: string; metric: string | null }
  | { kind: 'value'; from: number; word: string; metric: string | null; label: string }
  | { kind: 'grouping'; from: number; word: string }
  | { kind: 'duration'; from: number; word: string }
  | { kind: 'none' };

interface Open {
  bracket: string;
  /** The word before the bracket; null if there is none. */
  before: string | null;
}

interface Scan {
  open: Open[];
  /** The last word and its position, if only blanks follow it. */
  word: { text: string; from: number; to: number } | null;
  /** Text and start of a string that the cursor is in. */
  quoted: { text: string; from: number } | null;
  /** The label before the operator of the current matcher in braces, such as `job` of `job=~"`. */
  label: string | null;
  comment: boolean;
}

const WORD = /[A-Za-z0-9_:.]/;

/** Reads the text up to the cursor. */
function scan(text: string): Scan {
  const state: Scan = { open: [], word: null, quoted: null, label: null, comment: false };
  let at = 0;
  while (at < text.length) at = step(text, at, state);
  return state;
}

function step(text: string, at: number, state: Scan): number {
  const char = text.charAt(at);
  if (char === '#') {
    const end = text.indexOf('\n', at);
    state.comment = end < 0;
    return end < 0 ? text.length : end;
  }
  if (char === '"' || char === "'" || char === '`') return string(text, at, char, state);
  if (WORD.test(char)) {
    let end = at + 1;
    while (end < text.length && WORD.test(text.charAt(end))) end += 1;
    state.word = { text: text.slice(at, end), from: at, to: end };
    return end;
  }
  if ('({['.includes(char)) state.open.push({ bracket: char, before: state.word?.text ?? null });
  else if (')}]'.includes(char)) state.open.pop();
  else if ((char === '=' || char === '!') && state.open.at(-1)?.bracket === '{' && state.word !== null)
    state.label = state.word.text;
  if ('{,}'.includes(char)) state.label = null;
  if (!/\s/.test(char)) state.word = null;
  return at + 1;
}

function string(text: string, at: number, quote: string, state: Scan): number {
  let end = at + 1;
  while (end < text.length && text.charAt(end) !== quote) end += text.charAt(end) === '\\' && quote !== '`' ? 2 : 1;
  if (end >= text.length) state.quoted = { text: text.slice(at + 1), from: at + 1 };
  state.word = null;
  return end + 1;
}

export function contextAt(text: string, cursor: number): Context {
  const { open, word, quoted, label, comment } = scan(text.slice(0, cursor));
  if (comment) return { kind: 'none' };
  const inner = open.at(-1);
  const metric = inner?.bracket === '{' ? inner.before : null;
  if (quoted !== null) {
    if (inner?.bracket !== '{' || label === null) return { kind: 'none' };
    return { kind: 'value', from: quoted.from, word: quoted.text, metric, label };
  }
  // A word is being written only while the cursor touches it.
  const touched = word !== null && word.to === cursor;
  const here = { from: touched ? word.from : cursor, word: touched ? word.text : '' };
  if (inner?.bracket === '{') return { kind: 'label', ...here, metric };
  if (inner?.bracket === '[') return { kind: 'duration', ...here };
  if (inner?.bracket === '(' && (GROUPINGS as readonly string[]).includes(inner.before ?? ''))
    return { kind: 'grouping', ...here };
  if (/^[0-9.]/.test(here.word)) return { kind: 'none' };
  // After a complete expression, another expression needs an operator.
  if (here.word === '' && /[\w)}\]"'`]\s*$/.test(text.slice(0, cursor))) return { kind: 'none' };
  return { kind: 'expression', ...here };
}
