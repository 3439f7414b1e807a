// The graph as a drawing: the wheel and the keys + and - zoom, dragging moves, arrow keys select the next node.
import { useEffect, useRef, useState } from 'preact/hooks';
import { centred, fit, nodeTowards, zoomAt, type Camera, type Direction, type Placed } from '../graph/layout';
import { useSize } from '../lib/size';
import { inSight, moved, useDrag, useWheel } from './graph-camera';
import { Arrows, Edges, NodeBox } from './graph-parts';
import { ZoomButtons } from './zoom-buttons';

interface Props {
  placed: Placed;
  chosen: string | null;
  onChoose: (id: string | null) => void;
  /** Self time of all nodes of the graph, including those not drawn, ns. */
  whole: number;
  /** Nodes found by the search; null if there is no search. */
  found: ReadonlySet<string> | null;
}

const LABEL =
  'Dependency graph. Arrow keys select the next node, with Shift they move the drawing; + and - zoom, 0 shows all.';

/** The smallest scale with readable names. If the whole graph does not fit at this scale, only a part is visible
 * at first. */
const READABLE = 0.5;

const ARROWS: Record<string, Direction> = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' };

export function GraphView({ placed, chosen, onChoose, whole, found }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const size = useSize(svg, { width: 800, height: 500 });
  const [camera, setCamera] = useState<Camera>({ k: 1, x: 0, y: 0 });
  const showAll = (): void => setCamera(fit(placed, size.width, size.height));
  useEffect(() => setCamera(fit(placed, size.width, size.height, READABLE)), [placed, size.width, size.height]);
  const node = placed.nodes.find((one) => one.node.id === chosen);
  useEffect(() => {
    if (node !== undefined && !inSight(node, camera, size)) setCamera(centred(camera, node, size.width, size.height));
  }, [node]);
  const middle = { x: size.width / 2, y: size.height / 2 };
  const zoom = (factor: number): void => setCamera(zoomAt(camera, factor, middle));
  useWheel(svg, camera, setCamera);
  const press = (event: KeyboardEvent): void => {
    const direction = ARROWS[event.key];
    if (direction !== undefined && event.shiftKey) setCamera(moved(camera, direction));
    else if (direction !== undefined)
      onChoose((node === undefined ? placed.nodes[0] : nodeTowards(placed.nodes, node, direction))?.node.id ?? null);
    else if (event.key === '+' || event.key === '=') zoom(1.4);
    else if (event.key === '-') zoom(1 / 1.4);
    else if (event.key === '0') showAll();
    else if (event.key === 'Escape') onChoose(null);
    else return;
    event.preventDefault();
  };
  return (
    <div class="graph-view">
      <svg
        ref={svg}
        tabindex={0}
        role="application"
        onKeyDown={press}
        {...useDrag(camera, setCamera, onChoose)}
        aria-label={LABEL}
      >
        <Arrows />
        <g transform={`translate(${camera.x.toFixed(2)} ${camera.y.toFixed(2)}) scale(${camera.k.toFixed(4)})`}>
          <Edges placed={placed} chosen={chosen} />
          {placed.nodes.map((one) => (
            <NodeBox
              key={one.node.id}
              placed={one}
              chosen={one.node.id === chosen}
              dim={found !== null && !found.has(one.node.id)}
              whole={whole}
            />
          ))}
        </g>
      </svg>
      <ZoomButtons onIn={() => zoom(1.4)} onOut={() => zoom(1 / 1.4)} onAll={showAll} />
      <div class="hidden" aria-live="polite">
        {node === undefined ? '' : `${node.node.operation || node.node.service}, ${node.node.count} calls`}
      </div>
    </div>
  );
}
