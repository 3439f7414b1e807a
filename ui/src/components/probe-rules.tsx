// The rules that switch probes: list, results, and a form for a new one.
import { outcomeOf, scopeOf } from '../agents/words';
import { useAction, type Action } from '../lib/action';
import { api, type Agent, type ProbeRule, type ProbeState } from '../lib/api';
import { useMayChange } from '../lib/session';
import { fromNanos } from '../lib/time';
import { duration } from '../lib/units';
import { Cross } from './icons';
import { Panel } from './page';
import { Empty } from './states';
import { Table, type Column } from './table';

const STATES: { state: ProbeState; title: string; hint: string }[] = [
  { state: 'on', title: 'On', hint: 'Each call is recorded' },
  { state: 'off', title: 'Off', hint: 'Nothing is recorded' },
  {
    state: 'aggregate',
    title: 'Aggregate',
    hint: 'Calls are counted (count, sum, maximum, histogram) instead of recorded',
  },
];

interface Props {
  rules: readonly ProbeRule[];
  agents: readonly Agent[];
  /** Unix seconds. */
  now: number;
  /** Called after each attempt to change the rules. */
  onChange: () => void;
}

export function ProbeRules({ rules, agents, now, onChange }: Props) {
  const action = useAction(onChange);
  const mayChange = useMayChange();
  const removeAll = (): void => void action.run(() => api.removeProbe(null));
  const all = (
    <button type="button" class="button" disabled={action.busy} onClick={removeAll}>
      Remove all
    </button>
  );
  return (
    <Panel title="Rules" aside={mayChange && rules.length > 1 ? all : undefined}>
      {mayChange ? (
        <RuleForm agents={agents} action={action} />
      ) : (
        <p class="panel-body muted">Only a token with the role admin can change rules.</p>
      )}
      {action.error !== null && (
        <p class="notice rule-fault" role="alert">
          {action.error.message}
        </p>
      )}
      {rules.length === 0 ? (
        <Empty title="No rules">
          <p>
            Without rules, the agents' own settings apply. A rule switches matching methods on or off immediately,
            without a restart of the program. If several rules match a method, the last one applies.
          </p>
        </Empty>
      ) : (
        <Table
          label="Rules"
          columns={columns(action, mayChange, now)}
          rows={rules}
          rowKey={(rule) => String(rule.id)}
          sort="-id"
          param="rules"
        />
      )}
    </Panel>
  );
}

function columns(action: Action, mayChange: boolean, now: number): Column<ProbeRule>[] {
  const age = (rule: ProbeRule): number => Math.max(now - fromNanos(rule.since), 0) * 1e9;
  return [
    { id: 'id', title: 'Rule', numeric: true, left: true, value: (rule) => rule.id, cell: (rule) => rule.id },
    { id: 'state', title: 'State', cell: (rule) => <StateSwitch rule={rule} action={action} mayChange={mayChange} /> },
    {
      id: 'pattern',
      title: 'Pattern',
      wide: true,
      value: (rule) => rule.pattern,
      cell: (rule) => <code title={rule.pattern}>{rule.pattern}</code>,
    },
    { id: 'scope', title: 'For', value: scopeOf, cell: scopeOf },
    {
      id: 'kept',
      title: 'Kept',
      hint: 'Whether the rule remains after a restart of the server',
      cell: (rule) => (rule.kept ? 'permanently' : 'until the server stops'),
    },
    { id: 'age', title: 'Since', numeric: true, value: age, cell: (rule) => duration(age(rule)) },
    { id: 'outcome', title: 'Result', cell: (rule) => <Outcome rule={rule} /> },
    { id: 'remove', title: '', cell: (rule) => (mayChange ? <Remove rule={rule} action={action} /> : null) },
  ];
}

function Outcome({ rule }: { rule: ProbeRule }) {
  const { text, sign } = outcomeOf(rule);
  return <span class={`outcome ${sign}`}>{text}</span>;
}

function Remove({ rule, action }: { rule: ProbeRule; action: Action }) {
  return (
    <button
      type="button"
      class="button plain icon"
      aria-label={`Remove rule ${rule.id}`}
      title="Remove"
      disabled={action.busy}
      onClick={() => void action.run(() => api.removeProbe(rule.id))}
    >
      <Cross />
    </button>
  );
}

/**
 * Changing the state adds a rule with the same pattern and scope. The new rule replaces this rule and is the last in
 * the list.
 */
function StateSwitch({ rule, action, mayChange }: { rule: ProbeRule; action: Action; mayChange: boolean }) {
  const { pattern, service, instance, kept: keep } = rule;
  const pick = (state: ProbeState): void => {
    if (state !== rule.state) void action.run(() => api.addProbe({ state, pattern, service, instance, keep }));
  };
  return (
    <div class="segments" role="group" aria-label={`State of rule ${rule.id}`}>
      {STATES.map(({ state, title, hint }) => (
        <button
          key={state}
          type="button"
          title={hint}
          aria-pressed={state === rule.state}
          disabled={action.busy || !mayChange}
          onClick={() => pick(state)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

function RuleForm({ agents, action }: { agents: readonly Agent[]; action: Action }) {
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const fields = new FormData(form);
    const text = (name: string): string => String(fields.get(name) ?? '').trim();
    const wish = {
      state: text('state') as ProbeState,
      pattern: text('pattern'),
      service: text('service'),
      instance: text('instance'),
      keep: fields.has('keep'),
    };
    if (await action.run(() => api.addProbe(wish))) form.reset();
  };
  return (
    <form class="form rule-form" aria-label="New rule" onSubmit={(event) => void submit(event)}>
      <label>
        State
        <select class="field" name="state">
          {STATES.map(({ state, title }) => (
            <option key={state} value={state}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label>
        Pattern
        <input
          class="field"
          name="pattern"
          placeholder="com.shop..*"
          required
          maxLength={1024}
          autocomplete="off"
          spellcheck={false}
        />
      </label>
      <Scope label="Service" name="service" values={agents.map((agent) => agent.service)} />
      <Scope label="Instance" name="instance" values={agents.map((agent) => agent.instance)} />
      <label class="keep" title="Keep the rule after a restart of the server">
        <input type="checkbox" name="keep" />
        Keep
      </label>
      <button type="submit" class="button primary" disabled={action.busy}>
        Add
      </button>
    </form>
  );
}

function Scope({ label, name, values }: { label: string; name: string; values: string[] }) {
  const known = [...new Set(values)].filter((value) => value !== '').sort();
  const list = `${name}s-known`;
  return (
    <label>
      {label}
      <input class="field" name={name} placeholder="All" list={list} autocomplete="off" spellcheck={false} />
      <datalist id={list}>
        {known.map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    </label>
  );
}
