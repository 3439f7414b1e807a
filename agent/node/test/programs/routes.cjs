// Starts a server with the framework that the first argument names, sends requests to the server and ends. The second argument is
// the number of requests to `/users/...`, and also the number of requests to unknown paths (`/scanned/by/...`).
'use strict';

const http = require('http');
const Module = require('module');

const [name, users] = process.argv.slice(2);
const listening = (server) => new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));

/** Koa 2 is installed under another name next to Koa 3. The routers for it require `koa`. */
function koa2() {
  const resolve = Module._resolveFilename;
  Module._resolveFilename = (asked, ...rest) => resolve(asked === 'koa' ? 'koa2' : asked, ...rest);
  return require('koa');
}

const FRAMEWORKS = {
  async express(version = '') {
    const express = require(`express${version}`);
    const app = express();
    const router = express.Router();
    app.get('/users/:name', (request, response) => response.send(request.params.name));
    app.get('/missing/:name', (_request, response) => response.status(404).send('none'));
    app.get('/broken/:name', (_request, response) => response.status(500).send('broken'));
    // Slow, so that a part of its trace is sent before its route is known.
    app.use('/slow', (_request, _response, next) => setTimeout(next, 1_500));
    app.get('/slow/:name', (_request, response) => response.send('slow'));
    router.get('/inner/:name', (_request, response) => response.send('inner'));
    app.use('/shops/:shop', router);
    app.use('/plain', (_request, response) => response.send('plain'));
    return listening(http.createServer(app));
  },
  async fastify(version = '') {
    const app = require(`fastify${version}`).fastify();
    app.get('/users/:name', async (request) => request.params.name);
    app.get('/missing/:name', async (_request, reply) => reply.code(404).send('none'));
    app.get('/broken/:name', async () => Promise.reject(new Error('broken')));
    app.register(async (inner) => inner.get('/inner/:name', async () => 'inner'), { prefix: '/shops/:shop' });
    // Own handler for unknown paths, and hooks that answer a request before its handler.
    app.setNotFoundHandler((_request, reply) => reply.code(404).send('none'));
    app.addHook('onRequest', async (request, reply) => (request.url.startsWith('/hooked') ? reply.send('hooked') : undefined));
    app.get('/hooked/:name', async () => 'never');
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server;
  },
  async koa(Koa = require('koa'), { Router } = require('@koa/router')) {
    const app = new Koa({ env: 'test' });
    app.silent = true;
    const router = new Router();
    const inner = new Router();
    router.get('/users/:name', (context) => (context.body = context.params.name));
    router.get('/missing/:name', (context) => context.throw(404));
    router.get('/broken/:name', (context) => context.throw(500));
    inner.get('/inner/:name', (context) => (context.body = 'inner'));
    router.use('/shops/:shop', inner.routes());
    app.use(async (context, next) => (context.path.startsWith('/plain') ? (context.body = 'plain') : next()));
    app.use(router.routes());
    return listening(http.createServer(app.callback()));
  },
  async nest(adapter) {
    require('reflect-metadata');
    const { Controller, Get, HttpException, Module, Param } = require('@nestjs/common');
    const { NestFactory } = require('@nestjs/core');
    class Users {
      user(of) {
        return of;
      }
      missing() {
        throw new HttpException('none', 404);
      }
      broken() {
        throw new HttpException('broken', 500);
      }
      inner() {
        return 'inner';
      }
    }
    const paths = { user: 'users/:name', missing: 'missing/:name', broken: 'broken/:name', inner: 'shops/:shop/inner/:name' };
    for (const [method, path] of Object.entries(paths)) {
      Get(path)(Users.prototype, method, Object.getOwnPropertyDescriptor(Users.prototype, method));
    }
    Param('name')(Users.prototype, 'user', 0);
    Controller()(Users);
    class Shop {}
    Module({ controllers: [Users] })(Shop);
    const app = await NestFactory.create(Shop, ...(adapter === undefined ? [] : [adapter]), { logger: false });
    await app.listen(0, '127.0.0.1');
    return app.getHttpServer();
  },
  express4: () => FRAMEWORKS.express(4),
  fastify4: () => FRAMEWORKS.fastify(4),
  koa2: () => FRAMEWORKS.koa(koa2(), { Router: require('koa-router12') }),
  'koa-router': () => FRAMEWORKS.koa(koa2(), { Router: require('koa-router') }),
  'nest-fastify': () => FRAMEWORKS.nest(new (require('@nestjs/platform-fastify').FastifyAdapter)()),
};

(async () => {
  const server = await FRAMEWORKS[name]();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  const { port } = server.address();
  const ask = (path) =>
    new Promise((done, fail) => {
      const asked = http.get({ host: '127.0.0.1', port, path, agent }, (answer) => {
        answer.resume();
        answer.on('end', done);
      });
      asked.on('error', fail);
    });
  const all = (from, path) => Promise.all(Array.from({ length: from }, (_, at) => ask(`${path}${at + 1}`)));
  await all(Number(users), '/users/name');
  await all(Number(users), '/scanned/by/name');
  await ask('/plain/17');
  if (name.startsWith('express')) await ask('/slow/name1');
  if (name.startsWith('fastify')) await ask('/hooked/name1');
  await all(3, '/missing/name');
  await all(3, '/broken/name');
  await ask('/shops/5/inner/name1?x=1');
  console.log('done');
  process.exit(0);
})();
