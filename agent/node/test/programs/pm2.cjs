// Runs `ends.cjs` under pm2, and prints how the program ended. To stop it, pm2 sends SIGINT, and SIGKILL if SIGINT has no effect.
'use strict';

const { join } = require('path');
const { promisify } = require('util');
const pm2 = require('pm2');

const [way, mode, ...flags] = process.argv.slice(2);
const call = (name, ...args) => promisify(pm2[name].bind(pm2))(...args);
const PATIENCE_MS = 60_000;

(async () => {
  await call('connect', true); // without a daemon: pm2 runs in this process
  const bus = await call('launchBus');
  const ended = new Promise((done) => bus.on('process:event', ({ event, process: of }) => event === 'exit' && done(of)));
  const script = join(__dirname, 'ends.cjs');
  const how = {
    args: [way],
    node_args: flags,
    exec_mode: mode,
    autorestart: false,
    kill_timeout: PATIENCE_MS,
    wait_ready: true,
    listen_timeout: PATIENCE_MS,
  };
  await call('start', { name: 'ends', script, ...how });
  await call('stop', 'ends');
  const { exit_code: code, status } = await ended;
  console.log(`${way}: ${status} ${code}`);
  await call('delete', 'ends');
  pm2.disconnect();
  process.exit(0);
})();
