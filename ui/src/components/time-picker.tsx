// Selects the time window and the refresh interval.
import { useEffect, useRef, useState } from 'preact/hooks';
import { describe, moment, parseDuration, parseMoment, RANGES, REFRESH_SECONDS } from '../lib/time';
import { refreshNow, setFixed, setRange, setRefresh, type WindowState } from '../lib/window';
import { Clock, Down, Reload } from './icons';

export function TimePicker({ window: state }: { window: WindowState }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', outside);
    return () => document.removeEventListener('pointerdown', outside);
  }, [open]);
  return (
    <div class="row">
      <div class="menu" ref={root} onKeyDown={(event) => event.key === 'Escape' && open && close()}>
        <button
          type="button"
          class="button"
          ref={button}
          aria-haspopup="dialog"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          <Clock />
          {state.range === null ? describe(state) : `Last ${state.range}`}
          <Down />
        </button>
        {open && <Popover state={state} close={close} />}
      </div>
      <button type="button" class="button icon" aria-label="Refresh now" title="Refresh now" onClick={refreshNow}>
        <Reload />
      </button>
    </div>
  );
}

function Popover({ state, close }: { state: WindowState; close: () => void }) {
  const choose = (range: string): void => {
    setRange(range);
    close();
  };
  return (
    <div class="popover" role="dialog" aria-label="Time range">
      <div class="choices" role="group" aria-label="Last">
        {RANGES.map((range) => (
          <button
            key={range}
            type="button"
            class="button"
            aria-pressed={range === state.range}
            onClick={() => choose(range)}
          >
            {range}
          </button>
        ))}
      </div>
      <Custom state={state} close={close} />
      <label>
        Refresh every
        <select
          class="field"
          value={String(state.refresh)}
          onChange={(event) => setRefresh(Number(event.currentTarget.value))}
        >
          {REFRESH_SECONDS.map((seconds) => (
            <option key={seconds} value={String(seconds)}>
              {seconds === 0 ? 'Off' : `${seconds} s`}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Custom({ state, close }: { state: WindowState; close: () => void }) {
  const first = useRef<HTMLInputElement>(null);
  const [from, setFrom] = useState(state.range === null ? moment(state.start) : `now-${state.range}`);
  const [to, setTo] = useState(state.range === null ? moment(state.end) : 'now');
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => first.current?.focus(), []);
  const apply = (event: Event): void => {
    event.preventDefault();
    const range = to.trim() === 'now' ? /^now\s*-\s*(\S+)$/.exec(from.trim())?.[1] : undefined;
    const now = Date.now() / 1000;
    const start = parseMoment(from, now);
    const end = parseMoment(to, now);
    if (start === null || end === null) setProblem(`Not a time: ${start === null ? from : to}`);
    else if (end <= start) setProblem('The end must be after the start');
    else {
      if (range !== undefined && parseDuration(range) !== null) setRange(range);
      else setFixed(start, end);
      close();
    }
  };
  return (
    <form class="form" onSubmit={apply}>
      <label>
        From
        <input
          ref={first}
          class="field"
          value={from}
          onInput={(event) => setFrom(event.currentTarget.value)}
          spellcheck={false}
        />
      </label>
      <label>
        To
        <input class="field" value={to} onInput={(event) => setTo(event.currentTarget.value)} spellcheck={false} />
      </label>
      {problem === null ? (
        <p class="faint">now, now-90m, 2026-11-21 20:30, Unix seconds</p>
      ) : (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" class="button">
        Apply
      </button>
    </form>
  );
}
