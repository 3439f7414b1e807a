// Requests are named by the routes of real frameworks, for any number of paths, and never by unknown paths.

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
/** With more users than `GUESSES_MAX` (1,024), the agent's limit on names from paths without a route. */
const MANY = { ...ROUTES, '/users/:name': 1_100 };
/** Express exposes only the current value of a router's mount path, so the route has `{id}` in place of `:shop`. */
const EXPRESS = {
  ...MANY,
  '/shops/:shop/inner/:name': undefined,
  '/shops/{id}/inner/:name': 1,
  '/plain/{id}': 1,
  '/slow/:name': 1,
};
const FASTIFY = { ...MANY, '/hooked/:name': 1 };
const KOA = { ...MANY, '/plain/{id}': 1 };
for (const [name, routes] of Object.entries({
  express: EXPRESS,
  express4: EXPRESS,
  fastify: FASTIFY,
  fastify4: FASTIFY,
  koa: KOA,
  koa2: KOA,
  'koa-router': { ...KOA, '/users/:name': 20 },
  nest: ROUTES,
  'nest-fastify': ROUTES,
})) {
  test(`requests are named by the routes of ${name}`, async () => {
    const users = routes['/users/:name'];
    const { code, out, err } = await run(tacho, 'routes.cjs', { args: [name, String(users)], service: name });
    assert.deepEqual([code, out], [0, 'done\n'], err);
    assert.doesNotMatch(err, /agent failed/);
    const found = [...(await tacho.operations(name, { limit: '10000' })).values()].filter(({ kind }) => kind === 'http-server');
    const unrouted = routes['/plain/{id}'] === undefined ? users + 1 : users;
    const expected = { ...routes, ...NOT_FOUND, '(not found)': unrouted };
    const counts = Object.fromEntries(found.map(({ operation, count }) => [operation.replace('GET ', ''), count]));
    assert.deepEqual(counts, JSON.parse(JSON.stringify(expected)));
  });
}
