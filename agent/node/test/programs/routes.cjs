// A server of the framework that is named by the first argument asks itself, and ends: so many users, and paths that nobody has.
'use strict';

const http = require('http');

const [name, users] = process.argv.slice(2);
const listening = (server) => new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)));

const FRAMEWORKS = {
  async express() {
    const express = require('express');
    const app = express();
    const router = express.Router();
    app.get('/users/:name', (request, response) => response.send(request.params.name));
    app.get('/missing/:name', (_request, response) => response.status(404).send('none'));
    app.get('/broken/:name', (_request, response) => response.status(500).send('broken'));
    // So long that a part of its trace is sent before its route is known.
    app.use('/slow', (_request, _response, next) => setTimeout(next, 1_500));
    app.get('/slow/:name', (_request, response) => response.send('slow'));
    router.get('/inner/:name', (_request, response) => response.send('inner'));
    app.use('/shops/:shop', router);
    app.use('/plain', (_request, response) => response.send('plain'));
    return listening(http.createServer(app));
  },
  async fastify() {
    const app = require('fastify').fastify();
    app.get('/users/:name', async (request) => request.params.name);
    app.get('/missing/:name', async (_request, reply) => reply.code(404).send('none'));
    app.get('/broken/:name', async () => Promise.reject(new Error('broken')));
    app.register(async (inner) => inner.get('/inner/:name', async () => 'inner'), { prefix: '/shops/:shop' });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server;
  },
  async koa() {
    const Koa = require('koa');
    const { Router } = require('@koa/router');
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
  if (name === 'express') await ask('/slow/name1');
  await all(3, '/missing/name');
  await all(3, '/broken/name');
  await ask('/shops/5/inner/name1?x=1');
  console.log('done');
  process.exit(0);
})();
