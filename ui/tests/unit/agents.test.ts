import { expect, test } from 'vitest';
import { nameOf, outcomeOf, scopeOf, stateOf } from '../../src/agents/words';
import type { Agent, ProbeRule } from '../../src/lib/api';

const rule = (said: Partial<ProbeRule['agents']>, scope: Partial<ProbeRule> = {}): ProbeRule => ({
  id: 1,
  service: '',
  instance: '',
  state: 'off',
  pattern: 'a..*',
  since: '0',
  kept: false,
  agents: { told: 0, answered: 0, matched: 0, faults: 0, ...said },
  ...scope,
});

test.each([
  [{}, 'no matching agent', 'running'],
  [{ told: 2, answered: 2, matched: 12_872 }, '12\u202f872 methods in 2 agents', 'ok'],
  [{ told: 1, answered: 1, matched: 1 }, '1 method in 1 agent', 'ok'],
  [{ told: 3, answered: 1, matched: 7 }, 'pending in 2 of 3 agents', 'running'],
  [{ told: 2, answered: 2 }, 'no matching method', 'failed'],
  [{ told: 2, answered: 2, matched: 4, faults: 1 }, 'failed in 1 of 2 agents', 'failed'],
])('a rule with the reports %j has the outcome %j', (said, text, sign) =>
  expect(outcomeOf(rule(said))).toEqual({ text, sign }),
);

test.each([
  ['', '', 'all agents'],
  ['shop', '', 'shop'],
  ['', '8080', 'all services, instance 8080'],
  ['shop', '8080', 'shop, instance 8080'],
])('service %j and instance %j are the scope %j', (service, instance, text) =>
  expect(scopeOf(rule({}, { service, instance }))).toBe(text),
);

test('an agent is named by service, host and instance, and a silent agent is shown as failed', () => {
  const agent = { service: 'shop', host: 'h1', instance: '', state: 'silent' } as Agent;
  expect(nameOf(agent)).toBe('shop on h1');
  expect(nameOf({ ...agent, instance: '8080' })).toBe('shop on h1 (8080)');
  expect(stateOf(agent)).toEqual({ text: 'no response', sign: 'failed' });
});
