// A text field for PromQL with completion of metrics, labels, values, functions and durations.
import { useRef, useState } from 'preact/hooks';
import type { TimeWindow } from '../lib/time';
import { accept, suggest, type Suggestion } from '../promql/complete';
import { contextAt, type Context } from '../promql/context';
import { Completions, placeOf } from './completions';
import { useNames } from './promql-names';

interface Props {
  id: string;
  label: string;
  value: string;
  window: TimeWindow;
  onInput: (text: string) => void;
  onRun: () => void;
  /** Whether the key `/` focuses the field. */
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
    // Updates the field immediately, because the next key may come before the next rendering.
    if (field.current !== null) field.current.value = edit.text;
    field.current?.setSelectionRange(edit.cursor, edit.cursor);
    onInput(edit.text);
    setChosen(0);
    // Continues with the completion: a label name is followed by its value, a function by its
    // argument.
    setCursor(/["(]$/.test(suggestion.insert) && suggestion.kind !== 'value' ? edit.cursor : null);
  };
  const press = (event: KeyboardEvent): void => {
    const suggestion = list[chosen];
    if (list.length > 0 && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      setChosen((chosen + (event.key === 'ArrowDown' ? 1 : list.length - 1)) % list.length);
    } else if (suggestion !== undefined && accepts(event)) take(suggestion);
    else if (event.key === 'Escape' && cursor !== null) setCursor(null);
    else if (event.key === ' ' && event.ctrlKey) setCursor(field.current?.selectionStart ?? null);
    else if (event.key === 'Enter' && !event.shiftKey) onRun();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="editor">
      <textarea
        ref={field}
        id={id}
        class={`field mono${invalid ? ' invalid' : ''}`}
        rows={Math.min(value.split('\n').length, 8)}
        value={value}
        aria-label={label}
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls={`${id}-list`}
        aria-activedescendant={list.length > 0 ? `${id}-${chosen}` : undefined}
        aria-invalid={invalid}
        spellcheck={false}
        autocomplete="off"
        placeholder="rate(http_requests_total[5m])"
        data-search={search || undefined}
        onInput={(event) => {
          onInput(event.currentTarget.value);
          setCursor(event.currentTarget.selectionStart);
          setChosen(0);
        }}
        onKeyDown={press}
        onClick={() => setCursor(null)}
        onBlur={() => setCursor(null)}
      />
      {list.length > 0 && (
        <Completions id={id} list={list} chosen={chosen} place={placeOf(field.current, value, context)} onTake={take} />
      )}
    </div>
  );
}

/** Tab or Enter accepts a suggestion; Shift and Enter inserts a line break. */
const accepts = (event: KeyboardEvent): boolean =>
  (event.key === 'Tab' || event.key === 'Enter') && !event.shiftKey && !event.ctrlKey;
