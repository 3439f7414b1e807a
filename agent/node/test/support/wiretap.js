// A proxy between a program and the server. It stores all bytes that it passes to the server, and can make the first connections
// fail.

import { connect, createServer } from 'node:net';

/**
 * @param {{ records: string }} tacho
 * @param {'closes' | 'hangs' | 'resets'} [first] how the first connections fail
 * @param {number} [failures] number of connections that fail
 */
export async function wiretap(tacho, first = 'closes', failures = 0) {
  const [host, port] = tacho.records.split(':');
  /** @type {Buffer[]} */
  const heard = [];
  let connections = 0;
  const hanging = [];
  const server = createServer((client) => {
    if (++connections <= failures) {
      client.on('error', () => {});
      ({ closes: () => client.end(), hangs: () => hanging.push(client), resets: () => client.resetAndDestroy() })[first]();
      return;
    }
    const behind = connect(Number(port), host);
    client.on('data', (data) => heard.push(data));
    client.pipe(behind).pipe(client);
    for (const socket of [client, behind]) socket.on('error', () => [client, behind].forEach((one) => one.destroy()));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', () => done(undefined)));
  const { port: own } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    records: `127.0.0.1:${own}`,
    heard: () => Buffer.concat(heard).toString('latin1'),
    connections: () => connections,
    close: () => {
      server.close();
      for (const client of hanging) client.destroy();
    },
  };
}
