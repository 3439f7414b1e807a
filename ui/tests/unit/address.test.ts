import { expect, test } from 'vitest';
import { agentVariables, recordsAddress } from '../../src/agents/address';

test.each([
  ['tacho.example.org', { records_port: 17_071 }, 'tacho.example.org:17071'],
  ['[::1]', { records_port: 4000 }, '[::1]:4000'],
  ['', { records_port: 4000 }, '127.0.0.1:4000'],
  ['h1', {}, 'h1:7071'],
  ['h1', null, 'h1:7071'],
])('a page on host %j with status %j shows the address %s for agents', (host, status, address) =>
  expect(recordsAddress(host, status)).toBe(address),
);

test.each([
  [null, 'TACHO_SERVER=h:7071'],
  [{ access: { tokens: 'none', exposed: false, warnings: [] } }, 'TACHO_SERVER=h:7071'],
  [
    { records_port: 17_071, access: { tokens: 'used', exposed: false, warnings: [] } },
    'TACHO_SERVER=h:17071 TACHO_TOKEN_FILE=tacho.token',
  ],
] as const)('a command for the server with status %j has %s', (status, variables) =>
  expect(agentVariables('h', status as Parameters<typeof agentVariables>[1])).toBe(variables),
);
