// node --import tachograph/register app.js: starts the agent before the program. After: `agent.js`.

import { start } from './agent.js';

if (start() !== null) {
  // Node begins to connect one tick later. This wait lets a program that ends immediately connect, too.
  await new Promise((done) => process.nextTick(done));
}
