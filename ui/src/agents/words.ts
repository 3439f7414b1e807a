// What is said about an agent, and about a rule, in a few words.
import type { Agent, ProbeRule } from '../lib/api';
import { grouped } from '../lib/units';

export interface Words {
  text: string;
  /** Class of the sign before it. */
  sign: 'ok' | 'running' | 'failed';
}

const STATES: Record<Agent['state'], Words> = {
  follows: { text: 'follows its rules', sign: 'ok' },
  waiting: { text: 'was told, answers soon', sign: 'running' },
  silent: { text: 'does not answer', sign: 'failed' },
  none: { text: 'takes no rules', sign: 'running' },
  left: { text: 'has left', sign: 'running' },
};

export const stateOf = (agent: Agent): Words => STATES[agent.state];

const agents = (count: number): string => (count === 1 ? '1 agent' : `${grouped(count)} agents`);
const methods = (count: number): string => (count === 1 ? '1 method' : `${grouped(count)} methods`);

/** What a rule came to: the first of these that holds is what one has to know. */
export function outcomeOf({ agents: said }: ProbeRule): Words {
  if (said.told === 0) return { text: 'no agent that it is for', sign: 'running' };
  if (said.faults > 0) return { text: `${said.faults} of ${agents(said.told)} cannot follow it`, sign: 'failed' };
  if (said.answered < said.told)
    return { text: `${said.told - said.answered} of ${agents(said.told)} to answer`, sign: 'running' };
  if (said.matched === 0) return { text: 'no method', sign: 'failed' };
  return { text: `${methods(said.matched)} in ${agents(said.answered)}`, sign: 'ok' };
}

/** `shop on h1 (8080)` */
export function nameOf({ service, host, instance }: Agent): string {
  return `${service} on ${host}${instance === '' ? '' : ` (${instance})`}`;
}

export function scopeOf({ service, instance }: ProbeRule): string {
  if (service === '' && instance === '') return 'all agents';
  if (instance === '') return service;
  return `${service === '' ? 'all services' : service}, instance ${instance}`;
}
