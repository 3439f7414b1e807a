// node --import tachograph/register app.js: starts the agent before the program. After: `agent.js`.

import { start } from './agent.js';

if (start() !== null) {
  // Node begins to connect a tick later: a program that ends immediately must not end before that.
  await new Promise((done) => process.nextTick(done));
}
