// A text field for PromQL that completes metrics, labels, values, functions and durations.
import { useEffect, useRef, useState } from 'preact/hooks';
import { api } from '../lib/api';
import { useResource } from '../lib/resource';
import type { TimeWindow } from '../lib/time';
import { accept, suggest, type Suggestion } from '../promql/complete';
import { contextAt, type Context } from '../promql/context';

interface Props {
  id: string;
  label: string;
  value: string;
  window: TimeWindow;
  onInput: (text: string) => void;
  onRun: () => void;
  /** Marks the field for `/`. */
  search: boolean;
  invalid: boolean;
}

export function PromqlEditor({ id, label, value, window: range, onInput, onRun, search, invalid }: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [chosen, setChosen] = useState(0);
  const context: Context = cursor === null ? { kind: 'none' } : contextAt(value, cursor);
  const names = useNames(context, range);
  const list = cursor === null ? [] : suggest(context, names);
  const take = (suggestion: Suggestion): void => {
    const edit = accept(value, cursor ?? 0, context, suggestion);
    // At once, not with the next rendering: the next key may come before it.
    if (field.current !== null) field.current.value = edit.text;
    field.current?.setSelectionRange(edit.cursor, edit.cursor);
    onInput(edit.text);
    setChosen(0);
    // A label wants its value next, a function its argument; anything else is done.
    setCursor(/["(]$/.test(suggestion.insert) && suggestion.kind !== 'value' ? edit.cursor : null);
  };
  const press = (event: KeyboardEvent): void => {
    const suggestion = list[chosen];
    if (list.length > 0 && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      setChosen((chosen + (event.key === 'ArrowDown' ? 1 : list.length - 1)) % list.length);
    } else if (suggestion !== undefined && (event.key === 'Tab' || event.key === 'Enter') && !event.shiftKey && !event.ctrlKey) take(suggestion);
    else if (event.key === 'Escape' && cursor !== null) setCursor(null);
    else if (event.key === ' ' && event.ctrlKey) setCursor(field.current?.selectionStart ?? null);
    else if (event.key === 'Enter' && !event.shiftKey) onRun();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="editor">
      <textarea ref={field} id={id} class={`field mono${invalid ? ' invalid' : ''}`} rows={Math.min(value.split('\n').length, 8)} value={value}
        aria-label={label} aria-autocomplete="list" aria-haspopup="listbox" aria-controls={`${id}-list`}
        aria-activedescendant={list.length > 0 ? `${id}-${chosen}` : undefined} aria-invalid={invalid}
        spellcheck={false} autocomplete="off" placeholder="rate(http_requests_total[5m])" data-search={search || undefined}
        onInput={(event) => { onInput(event.currentTarget.value); setCursor(event.currentTarget.selectionStart); setChosen(0); }}
        onKeyDown={press} onClick={() => setCursor(null)} onBlur={() => setCursor(null)} />
      {list.length > 0 && <List id={id} list={list} chosen={chosen} place={placeOf(field.current, value, context)} onTake={take} />}
    </div>
  );
}

/** What the server knows for the place of the cursor. */
function useNames(context: Context, range: TimeWindow): readonly string[] {
  const key = context.kind === 'expression' ? 'metrics'
    : context.kind === 'label' ? `labels|${context.metric ?? ''}`
      : context.kind === 'grouping' ? 'labels|'
        : context.kind === 'value' ? `values|${context.label}|${context.metric ?? ''}` : null;
  const names = useResource(key, (signal) => {
    if (context.kind === 'expression') return api.labelValues('__name__', null, range, signal);
    if (context.kind === 'value') return api.labelValues(context.label, context.metric, range, signal);
    return api.labelNames(context.kind === 'label' ? context.metric : null, range, signal);
  });
  return key === null || names.loading ? [] : names.data ?? [];
}

interface Place { left: number; top: number }

/** Below the start of the word. The field does not wrap and its letters have one width, so that can be counted. */
function placeOf(field: HTMLTextAreaElement | null, text: string, context: Context): Place {
  const from = 'from' in context ? context.from : 0;
  const before = text.slice(0, from).split('\n');
  const pen = document.createElement('canvas').getContext('2d');
  if (field === null || pen === null) return { left: 0, top: 0 };
  const style = getComputedStyle(field);
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  const column = pen.measureText('0').width * (before.at(-1)?.length ?? 0);
  const left = Math.min(column - field.scrollLeft + parseFloat(style.paddingLeft), Math.max(field.clientWidth - 360, 0));
  return { left: Math.max(left, 0), top: before.length * parseFloat(style.lineHeight) + parseFloat(style.paddingTop) + 4 };
}

interface ListProps {
  id: string;
  list: Suggestion[];
  chosen: number;
  place: Place;
  onTake: (suggestion: Suggestion) => void;
}

function List({ id, list, chosen, place, onTake }: ListProps) {
  const box = useRef<HTMLUListElement>(null);
  useEffect(() => box.current?.children[chosen]?.scrollIntoView({ block: 'nearest' }), [chosen]);
  return (
    <ul class="completions" id={`${id}-list`} role="listbox" ref={box} style={{ transform: `translate(${place.left}px, ${place.top}px)` }}>
      {list.map((one, index) => (
        // The field keeps the focus: the button of the mouse going down must not take it away.
        <li key={`${one.kind} ${one.label}`} id={`${id}-${index}`} role="option" aria-selected={index === chosen}
          onMouseDown={(event) => { event.preventDefault(); onTake(one); }}>
          <span class="mono">{one.label}</span><span class="faint">{one.detail === '' ? one.kind : one.detail}</span>
        </li>
      ))}
    </ul>
  );
}
