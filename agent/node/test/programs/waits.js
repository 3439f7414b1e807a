// Makes a call at the start, and a call with an entry of 1 MB for each line of its input. Ends at the end of its input.

import { createInterface } from 'node:readline';
import { entry, record } from 'tachograph';

record('outer', () => 1);
for await (const line of createInterface({ input: process.stdin })) {
  record(line, () => entry('app_log', 'x'.repeat(1_000_000)));
}
