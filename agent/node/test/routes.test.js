// Are requests named by the routes of real frameworks, however many paths there are, and by no path that nobody has?

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Tacho, run } from './support/tacho.js';

/** @type {Tacho} */
let tacho;
before(async () => {
  tacho = await Tacho.start();
});
after(() => tacho.close());

const ROUTES = { '/users/:name': 20, '/missing/:name': 3, '/broken/:name': 3, '/shops/:shop/inner/:name': 1 };
const NOT_FOUND = { '(not found)': 20 };
for (const [name, routes] of Object.entries({
  // Express tells of the path that a router is mounted at only what it is now.
  express: {
    ...ROUTES,
    '/shops/:shop/inner/:name': undefined,
    '/shops/{id}/inner/:name': 1,
    '/plain/{id}': 1,
    '/users/:name': 1_100,
    '/slow/:name': 1,
  },
  fastify: ROUTES,
  koa: { ...ROUTES, '/plain/{id}': 1 },
  nest: ROUTES,
  'nest-fastify': ROUTES,
})) {
  test(`routes of ${name}`, async () => {
    const users = routes['/users/:name'];
    const { code, out, err } = await run(tacho, 'routes.cjs', { args: [name, String(users)], service: name });
    assert.deepEqual([code, out], [0, 'done\n'], err);
    assert.doesNotMatch(err, /probe failed/);
    const found = [...(await tacho.operations(name, { limit: '10000' })).values()].filter(({ kind }) => kind === 'http-server');
    const unrouted = routes['/plain/{id}'] === undefined ? users + 1 : users;
    const expected = { ...routes, ...NOT_FOUND, '(not found)': unrouted };
    const counts = Object.fromEntries(found.map(({ operation, count }) => [operation.replace('GET ', ''), count]));
    assert.deepEqual(counts, JSON.parse(JSON.stringify(expected)));
  });
}
