// The list of suggestions below the word at the cursor.
import { useEffect, useRef } from 'preact/hooks';
import type { Suggestion } from '../promql/complete';
import type { Context } from '../promql/context';

interface Place {
  left: number;
  top: number;
}

/** The position below the start of the word. It follows from the number of characters before the word, since the field
 *  does not wrap and its font is monospaced. */
export function placeOf(field: HTMLTextAreaElement | null, text: string, context: Context): Place {
  const from = 'from' in context ? context.from : 0;
  const before = text.slice(0, from).split('\n');
  const pen = document.createElement('canvas').getContext('2d');
  if (field === null || pen === null) return { left: 0, top: 0 };
  const style = getComputedStyle(field);
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  const column = pen.measureText('0').width * (before.at(-1)?.length ?? 0);
  const left = Math.min(
    column - field.scrollLeft + parseFloat(style.paddingLeft),
    Math.max(field.clientWidth - 360, 0),
  );
  return {
    left: Math.max(left, 0),
    top: before.length * parseFloat(style.lineHeight) + parseFloat(style.paddingTop) + 4,
  };
}

interface ListProps {
  id: string;
  list: Suggestion[];
  chosen: number;
  place: Place;
  onTake: (suggestion: Suggestion) => void;
}

export function Completions({ id, list, chosen, place, onTake }: ListProps) {
  const box = useRef<HTMLUListElement>(null);
  useEffect(() => box.current?.children[chosen]?.scrollIntoView({ block: 'nearest' }), [chosen]);
  return (
    <ul
      class="completions"
      id={`${id}-list`}
      role="listbox"
      ref={box}
      style={{ transform: `translate(${place.left}px, ${place.top}px)` }}
    >
      {list.map((one, index) => (
        // Pressing the mouse button would move the focus; preventDefault keeps it in the field.
        <li
          key={`${one.kind} ${one.label}`}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === chosen}
          onMouseDown={(event) => {
            event.preventDefault();
            onTake(one);
          }}
        >
          <span class="mono">{one.label}</span>
          <span class="faint">{one.detail === '' ? one.kind : one.detail}</span>
        </li>
      ))}
    </ul>
  );
}
