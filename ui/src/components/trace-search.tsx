// The form for searching traces. The address holds the values of its fields. A selection in a list, Enter and the button Search
// each write all values to the address.
import { api, type Service } from '../lib/api';
import { useResource } from '../lib/resource';
import { change, usePlace } from '../lib/router';
import type { TimeWindow } from '../lib/time';
import { LIMIT_DEFAULT, LIMITS, OUTCOMES } from '../trace/filter';

const NAMES = [
  'service',
  'operation',
  'min',
  'max',
  'outcome',
  'request',
  'limit',
  'text',
  'status',
  'exception',
  'attribute',
];

interface Props {
  services: readonly Service[];
  window: TimeWindow;
}

export function TraceSearch({ services, window: range }: Props) {
  const { params } = usePlace();
  const value = (name: string): string => params.get(name) ?? '';
  const service = value('service');
  const operations = useOperations(service, range);
  const names = services.map((one) => one.service);
  if (service !== '' && !names.includes(service)) names.unshift(service);
  const submit = (event: Event): void => {
    event.preventDefault();
    apply(event.currentTarget as HTMLFormElement);
  };
  const pick = (event: Event): void => apply((event.currentTarget as HTMLSelectElement).form);
  return (
    // The key changes with the address, so that new fields are created with the new values.
    <form class="search form" role="search" onSubmit={submit} key={NAMES.map(value).join('|')}>
      <label>
        Service
        <select class="field" name="service" onChange={pick}>
          <option value="">All</option>
          {names.map((name) => (
            <option key={name} value={name} selected={name === service}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <Text label="Operation" name="operation" value={value('operation')} placeholder="All" list="operations" />
      <datalist id="operations">
        {operations.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <Text label="Shortest" name="min" value={value('min')} placeholder="1.5ms" />
      <Text label="Longest" name="max" value={value('max')} placeholder="2s" />
      <label>
        Outcome
        <Choice name="outcome" all="All" options={OUTCOMES} value={value('outcome')} onPick={pick} />
      </label>
      <Text label="Request id" name="request" value={value('request')} placeholder="Any" />
      <Text label="Status" name="status" value={value('status')} placeholder="503 or 5xx" />
      <Text label="Name contains" name="text" value={value('text')} placeholder="part of a statement" />
      <Text label="Exception" name="exception" value={value('exception')} placeholder="IllegalStateException" />
      <Text label="Attribute" name="attribute" value={value('attribute')} placeholder="key=value" />
      <label>
        Limit
        <Choice name="limit" options={LIMITS} value={value('limit') || LIMIT_DEFAULT} onPick={pick} />
      </label>
      <button type="submit" class="button primary">
        Search
      </button>
    </form>
  );
}

interface TextProps {
  label: string;
  name: string;
  value: string;
  placeholder: string;
  /** Id of the list of suggestions. The field with such a list is the page's search field. */
  list?: string;
}

function Text({ label, name, value, placeholder, list }: TextProps) {
  return (
    <label>
      {label}
      <input
        class="field"
        name={name}
        defaultValue={value}
        placeholder={placeholder}
        list={list}
        data-search={list !== undefined || undefined}
        autocomplete="off"
        spellcheck={false}
      />
    </label>
  );
}

interface ChoiceProps {
  name: string;
  all?: string;
  options: readonly string[];
  value: string;
  onPick: (event: Event) => void;
}

function Choice({ name, all, options, value, onPick }: ChoiceProps) {
  return (
    <select class="field" name={name} onChange={onPick}>
      {all !== undefined && <option value="">{all}</option>}
      {options.map((option) => (
        <option key={option} value={option} selected={option === value}>
          {option}
        </option>
      ))}
    </select>
  );
}

function apply(form: HTMLFormElement | null): void {
  if (form === null) return;
  const fields = new FormData(form);
  const changes = Object.fromEntries(NAMES.map((name) => [name, String(fields.get(name) ?? '').trim()]));
  if (changes.limit === LIMIT_DEFAULT) changes.limit = '';
  // Another search begins with its first page.
  changes.after = '';
  change(changes, 'keep');
}

function useOperations(service: string, range: TimeWindow): string[] {
  const key = `operations|${service}|${range.start}|${range.end}`;
  const { data } = useResource(key, (signal) => api.operations(service === '' ? null : service, range, signal));
  return [...new Set((data ?? []).map((one) => one.operation))].sort();
}
