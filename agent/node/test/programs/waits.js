// Makes one call, and more calls, each with an entry of 1 MB, for the lines of its input; ends with it.

import { createInterface } from 'node:readline';
import { entry, record } from 'tachograph';

record('outer', () => 1);
for await (const line of createInterface({ input: process.stdin })) {
  record(line, () => entry('app_log', 'x'.repeat(1_000_000)));
}
