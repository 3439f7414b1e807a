// node --require tachograph/register.cjs app.cjs: starts the agent before the program. After: `agent.js`.
'use strict';

try {
  require('./agent.js').start();
} catch (error) {
  if (error.code !== 'ERR_REQUIRE_ESM') {
    throw error;
  }
  // Node before 20.19 and 22.12 cannot load an ES module synchronously, so the first calls of the program are not recorded.
  import('./agent.js').then(({ start }) => start());
}
