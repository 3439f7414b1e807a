// Moves and zooms the drawing of the graph by wheel, pointer and arrow keys.
import { useEffect, useRef } from 'preact/hooks';
import { NODE_HEIGHT, NODE_WIDTH, zoomAt, type Camera, type Direction, type PlacedNode } from '../graph/layout';
import type { Size } from '../lib/size';

/** Whether a node is completely visible. */
export function inSight(node: PlacedNode, camera: Camera, size: Size): boolean {
  const [x, y] = [node.x * camera.k + camera.x, node.y * camera.k + camera.y];
  const [dx, dy] = [(NODE_WIDTH / 2) * camera.k, (NODE_HEIGHT / 2) * camera.k];
  return x - dx >= 0 && x + dx <= size.width && y - dy >= 0 && y + dy <= size.height;
}

export function moved(camera: Camera, direction: Direction): Camera {
  const far = 60;
  const dx = direction === 'left' ? far : direction === 'right' ? -far : 0;
  const dy = direction === 'up' ? far : direction === 'down' ? -far : 0;
  return { ...camera, x: camera.x + dx, y: camera.y + dy };
}

export function useWheel(
  svg: { current: SVGSVGElement | null },
  camera: Camera,
  setCamera: (camera: Camera) => void,
): void {
  const latest = useRef(camera);
  latest.current = camera;
  useEffect(() => {
    const element = svg.current;
    const turn = (event: WheelEvent): void => {
      event.preventDefault();
      const box = element?.getBoundingClientRect();
      const at = { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) };
      setCamera(zoomAt(latest.current, Math.exp(-event.deltaY / 400), at));
    };
    element?.addEventListener('wheel', turn, { passive: false });
    return () => element?.removeEventListener('wheel', turn);
  }, []);
}

/** Dragging moves the drawing; a click selects the node under the pointer, or none. */
export function useDrag(camera: Camera, setCamera: (camera: Camera) => void, onChoose: (id: string | null) => void) {
  const drag = useRef<{ x: number; y: number; camera: Camera; moved: boolean; id: string | null } | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      const id = (event.target as Element).closest('[data-node]')?.getAttribute('data-node') ?? null;
      drag.current = { x: event.clientX, y: event.clientY, camera, moved: false, id };
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const from = drag.current;
      if (from === null) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.moved && Math.abs(dx) + Math.abs(dy) < 5) return;
      from.moved = true;
      setCamera({ k: from.camera.k, x: from.camera.x + dx, y: from.camera.y + dy });
    },
    onPointerUp: () => {
      if (drag.current?.moved === false) onChoose(drag.current.id);
      drag.current = null;
    },
  };
}
