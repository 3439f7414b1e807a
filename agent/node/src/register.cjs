// node --require tachograph/register.cjs app.js: like `register.js`, for programs started with
// `--require`. After: `agent.js`.
'use strict';

try {
  require('./agent.js').start();
} catch (error) {
  if (error.code !== 'ERR_REQUIRE_ESM') {
    throw error;
  }
  // Before versions 20.19 and 22.12 Node cannot load an ES module synchronously, so calls in the
  // first moment of the program are not recorded.
  import('./agent.js').then(({ start }) => start());
}
