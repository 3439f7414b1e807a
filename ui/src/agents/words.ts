// Short texts for the states of agents and rules.
import type { Agent, ProbeRule } from '../lib/api';
import { grouped } from '../lib/units';

export interface Words {
  text: string;
  /** Class of the icon before the text. */
  sign: 'ok' | 'running' | 'failed';
}

const STATES: Record<Agent['state'], Words> = {
  follows: { text: 'rules applied', sign: 'ok' },
  waiting: { text: 'response pending', sign: 'running' },
  silent: { text: 'no response', sign: 'failed' },
  none: { text: 'rules unsupported', sign: 'running' },
  left: { text: 'disconnected', sign: 'running' },
};

export const stateOf = (agent: Agent): Words => STATES[agent.state];

const agents = (count: number): string => (count === 1 ? '1 agent' : `${grouped(count)} agents`);
const methods = (count: number): string => (count === 1 ? '1 method' : `${grouped(count)} methods`);

/** The most important part of a rule's result. */
export function outcomeOf({ agents: said }: ProbeRule): Words {
  if (said.told === 0) return { text: 'no matching agent', sign: 'running' };
  if (said.faults > 0) return { text: `failed in ${said.faults} of ${agents(said.told)}`, sign: 'failed' };
  if (said.answered < said.told)
    return { text: `pending in ${said.told - said.answered} of ${agents(said.told)}`, sign: 'running' };
  if (said.matched === 0) return { text: 'no matching method', sign: 'failed' };
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
