// node --import tachograph/register app.js: starts the agent before the program. After: `agent.js`.

import { start } from './agent.js';

if (start() !== null) {
  // Node begins to connect one tick later. With this wait, a program that ends immediately can also
  // connect.
  await new Promise((done) => process.nextTick(done));
}
