// A proxy in front of the server that passes on and stores all bytes that a program sends.

import { connect, createServer } from 'node:net';

/** @param {{ records: string }} tacho */
export async function wiretap(tacho) {
  const [host, port] = tacho.records.split(':');
  /** @type {Buffer[]} */
  const heard = [];
  const server = createServer((client) => {
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
    close: () => server.close(),
  };
}
