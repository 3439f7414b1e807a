import { expect, test } from 'vitest';
import { recordsAddress } from '../../src/agents/address';

test.each([
  ['tacho.example.org', { records_port: 17_071 }, 'tacho.example.org:17071'],
  ['[::1]', { records_port: 4000 }, '[::1]:4000'],
  ['', { records_port: 4000 }, '127.0.0.1:4000'],
  ['h1', {}, 'h1:7071'],
  ['h1', null, 'h1:7071'],
])('agents reach a page on %j with status %j at %s', (host, status, address) =>
  expect(recordsAddress(host, status)).toBe(address),
);
