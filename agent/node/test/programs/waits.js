// Makes one call at the start, and one more for each line of its input. Each of the latter sends an entry of 1 MB. Ends at the
// end of its input.

import { createInterface } from 'node:readline';
import { entry, record } from 'tachograph';

record('outer', () => 1);
for await (const line of createInterface({ input: process.stdin })) {
  record(line, () => entry('app_log', 'x'.repeat(1_000_000)));
}
