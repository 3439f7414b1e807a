// node --import tachograph/register app.js: starts the agent before the program. After: `agent.js`.

import { start } from './agent.js';

if (start() !== null) {
  // Node begins to connect one tick later. With this wait, even a program that ends at once can connect.
  await new Promise((done) => process.nextTick(done));
}
