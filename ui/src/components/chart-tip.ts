// The tooltip of a chart: the time and the values of the visible lines, highest first.
import type uPlot from 'uplot';
import { moment } from '../lib/time';
import { format, type Unit } from '../lib/units';

export interface TipLine {
  label: string;
  /** Class with the colour of the swatch. */
  color: string;
}

/** The tooltip shows at most this many lines, and the number of further lines. */
const LINES_MAX = 12;

interface Entry {
  line: TipLine;
  value: number;
}

function entriesAt(plot: uPlot, lines: TipLine[], index: number): Entry[] {
  const entries: Entry[] = [];
  lines.forEach((line, position) => {
    const value = plot.data[position + 1]?.[index];
    if (value !== null && value !== undefined && plot.series[position + 1]?.show !== false)
      entries.push({ line, value });
  });
  return entries.sort((a, b) => b.value - a.value);
}

function element(name: string, className: string, text = ''): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

function fill(box: HTMLElement, plot: uPlot, lines: TipLine[], unit: Unit, index: number): void {
  const entries = entriesAt(plot, lines, index);
  const rows = entries.slice(0, LINES_MAX).map(({ line, value }) => {
    const row = element('div', 'line');
    const name = element('span', '', line.label);
    row.append(element('i', `swatch ${line.color}`), name, element('b', '', format(unit, value)));
    return row;
  });
  if (entries.length > LINES_MAX) rows.push(element('div', 'faint', `and ${entries.length - LINES_MAX} more`));
  box.replaceChildren(element('div', 'when', moment(plot.data[0][index] ?? 0)), ...rows);
}

/** Places the tooltip next to the cursor, on the side with more space. */
function place(box: HTMLElement, plot: uPlot): void {
  const { left = 0, top = 0 } = plot.cursor;
  const over = plot.over;
  const right = left > over.clientWidth / 2;
  const x = over.offsetLeft + (right ? left - box.offsetWidth - 12 : left + 12);
  const y = over.offsetTop + Math.min(Math.max(top - 12, 0), Math.max(over.clientHeight - box.offsetHeight, 0));
  box.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}

export function tip(lines: TipLine[], unit: Unit): uPlot.Plugin {
  const box = element('div', 'tip');
  box.hidden = true;
  let hovered = false;
  return {
    hooks: {
      init: (plot) => {
        plot.root.append(box);
        plot.over.addEventListener('mouseenter', () => {
          hovered = true;
        });
        plot.over.addEventListener('mouseleave', () => {
          hovered = false;
          box.hidden = true;
        });
      },
      setCursor: (plot) => {
        const index = plot.cursor.idx;
        box.hidden = !hovered || index === null || index === undefined;
        if (box.hidden || index === null || index === undefined) return;
        fill(box, plot, lines, unit, index);
        place(box, plot);
      },
      destroy: () => box.remove(),
    },
  };
}
