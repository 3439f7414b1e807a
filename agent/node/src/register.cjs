// node --require tachograph/register.cjs app.js: as `register.js`, for programs that are started so. After: `agent.js`.
'use strict';

try {
  require('./agent.js').start();
} catch (error) {
  if (error.code !== 'ERR_REQUIRE_ESM') {
    throw error;
  }
  // Before Node 20.19 an ES module cannot be loaded at once: what the program does in its first moment is not seen.
  import('./agent.js').then(({ start }) => start());
}
