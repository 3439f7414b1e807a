// Marks of entries under a chart, on its time axis: pale bars for counts, a line for each listed entry.
import { barsOf, placeOf, type EntryRow } from '../lib/entries';
import type { TimeWindow } from '../lib/time';
import type { Area } from './chart';

const HEIGHT = 34;

interface Props {
  rows: readonly EntryRow[];
  counts: readonly number[];
  window: TimeWindow;
  /** Position of the time axis of the chart above. */
  area: Area;
  chosen: string | null;
  onChoose: (key: string | null) => void;
}

export function EntryLane({ rows, counts, window: range, area, chosen, onChoose }: Props) {
  return (
    <svg class="lane" role="img" aria-label="Entries over time" width={area.left + area.width} height={HEIGHT}>
      <g transform={`translate(${area.left} 0)`}>
        <rect class="lane-ground" x={0} y={0} width={area.width} height={HEIGHT} />
        {barsOf(counts, area.width).map((bar) => (
          <rect
            key={bar.x}
            class="lane-count"
            x={bar.x}
            y={HEIGHT * (1 - bar.height)}
            width={bar.width}
            height={HEIGHT * bar.height}
          />
        ))}
        {rows.map((row) => (
          <g key={row.key} onMouseEnter={() => onChoose(row.key)} onMouseLeave={() => onChoose(null)}>
            <rect class="lane-hit" x={placeOf(row.at, range, area.width) - 3} y={0} width={7} height={HEIGHT} />
            <rect
              class={row.key === chosen ? 'lane-mark chosen' : 'lane-mark'}
              x={placeOf(row.at, range, area.width)}
              y={4}
              width={2}
              height={HEIGHT - 8}
            >
              <title>{row.text}</title>
            </rect>
          </g>
        ))}
      </g>
    </svg>
  );
}
