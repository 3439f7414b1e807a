// Suggestions for the cursor's position, best first, and the text after accepting one.
import type { Context } from './context';
import { AGGREGATIONS, FUNCTIONS, KEYWORDS } from './functions';
import { selectorOf } from './result';

export interface Suggestion {
  /** Text in the list. */
  label: string;
  /** Inserted text. */
  insert: string;
  kind: 'metric' | 'function' | 'aggregation' | 'keyword' | 'label' | 'value' | 'duration';
  detail: string;
}

export interface Edit {
  text: string;
  cursor: number;
}

const SHOWN_MAX = 40;
const DURATIONS = ['30s', '1m', '5m', '15m', '30m', '1h', '6h', '1d', '1h:1m'];

const WORDS: Suggestion[] = [
  ...AGGREGATIONS.map(([name, doc]): Suggestion => ({
    label: name,
    insert: `${name}(`,
    kind: 'aggregation',
    detail: doc,
  })),
  ...FUNCTIONS.map(([name, parameters, doc]): Suggestion => ({
    label: name,
    insert: `${name}(`,
    kind: 'function',
    detail: `(${parameters}) ${doc}`,
  })),
  ...KEYWORDS.map((name): Suggestion => ({ label: name, insert: `${name} `, kind: 'keyword', detail: '' })),
];

/** `names` are the server's names for this position: metrics, label names or values. */
export function suggest(context: Context, names: readonly string[]): Suggestion[] {
  const found = ranked(candidates(context, names), 'word' in context ? context.word : '');
  // A list with nothing but the word itself is of no use.
  const only = found.length === 1 && 'word' in context && found[0]?.label === context.word;
  return only ? [] : found.slice(0, SHOWN_MAX);
}

function candidates(context: Context, names: readonly string[]): Suggestion[] {
  const written = (kind: Suggestion['kind'], name: string): string =>
    kind === 'value' ? escape(name) : kind === 'metric' ? selectorOf(name) : name;
  const all = (kind: Suggestion['kind'], end = ''): Suggestion[] =>
    names.map((name) => ({ label: name, insert: `${written(kind, name)}${end}`, kind, detail: '' }));
  switch (context.kind) {
    case 'none':
      return [];
    case 'expression':
      return [...all('metric'), ...(context.word === '' ? [] : WORDS)];
    case 'label':
      return all('label', '="').filter((one) => one.label !== '__name__');
    case 'grouping':
      return all('label').filter((one) => one.label !== '__name__');
    case 'value':
      return all('value', '"');
    case 'duration':
      return DURATIONS.map((text) => ({ label: text, insert: `${text}]`, kind: 'duration', detail: '' }));
  }
}

const escape = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

/** Rank of a name by the first place where it contains the word: 0 (best) at its start, 1 after `_`, `:` or `.`, 2 elsewhere. The
 * rank is -1 if the name does not contain the word. */
function rankOf(label: string, word: string): number {
  const at = label.toLowerCase().indexOf(word.toLowerCase());
  if (at <= 0) return at;
  return /[_:.]/.test(label.charAt(at - 1)) ? 1 : 2;
}

function ranked(list: Suggestion[], word: string): Suggestion[] {
  return list
    .map((suggestion, order) => ({ suggestion, order, rank: rankOf(suggestion.label, word) }))
    .filter(({ rank }) => rank >= 0)
    .sort((a, b) => a.rank - b.rank || a.order - b.order)
    .map(({ suggestion }) => suggestion);
}

/** Replaces the word at the cursor by the suggestion. A label value is replaced only up to the cursor. If the quote, the bracket
 * or the label's operator that the suggestion would insert already follows, it is not repeated. */
export function accept(text: string, cursor: number, context: Context, suggestion: Suggestion): Edit {
  if (context.kind === 'none') return { text, cursor };
  const rest = text.slice(cursor).replace(/^[A-Za-z0-9_:.]*/, context.kind === 'value' ? '$&' : '');
  if (suggestion.kind === 'label' && /^\s*[=!]/.test(rest)) {
    const before = text.slice(0, context.from) + suggestion.label;
    return { text: before + rest, cursor: before.length };
  }
  const last = suggestion.insert.at(-1) ?? '';
  const doubled = '"](='.includes(last) && rest.startsWith(last);
  const insert = doubled ? suggestion.insert.slice(0, -1) : suggestion.insert;
  const before = text.slice(0, context.from) + insert;
  return { text: before + rest, cursor: before.length + (doubled ? 1 : 0) };
}
