// Records calls in the main thread and in a worker thread.

import { Worker, isMainThread } from 'node:worker_threads';
import { record } from 'tachograph';

if (isMainThread) {
  new Worker(new URL(import.meta.url));
  record('in main', () => 1);
} else {
  record('in worker', () => record('below', () => 1));
}
