// The zoom buttons of a drawing; the keys + - 0 do the same.
import { Fit, Minus, Plus } from './icons';

interface Props {
  onIn: () => void;
  onOut: () => void;
  onAll: () => void;
}

export function ZoomButtons({ onIn, onOut, onAll }: Props) {
  return (
    <div class="corner" role="group" aria-label="Zoom">
      <button type="button" class="button icon" aria-label="Zoom in" title="Zoom in (+)" onClick={onIn}>
        <Plus />
      </button>
      <button type="button" class="button icon" aria-label="Zoom out" title="Zoom out (-)" onClick={onOut}>
        <Minus />
      </button>
      <button type="button" class="button icon" aria-label="Show all" title="Show all (0)" onClick={onAll}>
        <Fit />
      </button>
    </div>
  );
}
