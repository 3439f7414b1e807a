// Current size of an element in pixels, for drawings that fill it.
import { useEffect, useState } from 'preact/hooks';

export interface Size {
  width: number;
  height: number;
}

/** The inner size; `first` until the element has been laid out. */
export function useSize(element: { readonly current: Element | null }, first: Size): Size {
  const [size, setSize] = useState(first);
  useEffect(() => {
    const target = element.current;
    if (target === null) return;
    const observer = new ResizeObserver(() => setSize({ width: target.clientWidth, height: target.clientHeight }));
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  return size;
}
