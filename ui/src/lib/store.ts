// An observable value shared by components.
import { useEffect, useState } from 'preact/hooks';

export class Store<T> {
  private readonly watchers = new Set<(value: T) => void>();

  constructor(private value: T) {}

  get(): T {
    return this.value;
  }

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    this.watchers.forEach((watcher) => watcher(value));
  }

  watch(watcher: (value: T) => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState<T>(() => store.get());
  useEffect(() => {
    setValue(() => store.get());
    return store.watch((next) => setValue(() => next));
  }, [store]);
  return value;
}
