// node --import tachograph/register app.js: starts the agent before the program. After: `agent.js`.

import { start } from './agent.js';

if (start() !== null) {
  // Node begins to connect one tick later. Wait for it, also for programs that end immediately.
  await new Promise((done) => process.nextTick(done));
}
