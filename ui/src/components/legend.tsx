// The lines of a chart by name. A click on a name hides all other lines, a second click shows all again. A click with Shift or
// Ctrl hides that line, or shows it again, and does not change the other lines.
import type { Line } from './chart';

export type Hidden = ReadonlySet<string>;

/** The hidden lines after a click on `label`. */
export function toggle(hidden: Hidden, labels: string[], label: string, single: boolean): Hidden {
  if (!single) {
    const next = new Set(hidden);
    if (!next.delete(label)) next.add(label);
    return next;
  }
  const others = labels.filter((one) => one !== label);
  const alone = !hidden.has(label) && others.every((one) => hidden.has(one));
  return new Set(alone ? [] : others);
}

interface Props {
  lines: Line[];
  hidden: Hidden;
  onChange: (hidden: Hidden) => void;
}

export function Legend({ lines, hidden, onChange }: Props) {
  const labels = lines.map((line) => line.label);
  const click = (event: MouseEvent, label: string): void =>
    onChange(toggle(hidden, labels, label, !(event.shiftKey || event.ctrlKey || event.metaKey)));
  return (
    <ul class="legend" aria-label="Lines: a click hides all others, a click with Shift hides or shows one">
      {lines.map((line) => (
        <li key={line.label}>
          <button
            type="button"
            aria-pressed={!hidden.has(line.label)}
            title={line.label}
            onClick={(event) => click(event, line.label)}
          >
            <i class={`swatch ${line.color}`} />
            <span>{line.label}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
