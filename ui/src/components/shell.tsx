// The frame of every page: skip link, navigation, time window, theme, keys.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { api, type Status } from '../lib/api';
import { focusSearch, useKeys } from '../lib/keys';
import { useResource } from '../lib/resource';
import { goTo, linkTo } from '../lib/router';
import type { Session } from '../lib/session';
import { useStore } from '../lib/store';
import { choice, theme } from '../lib/theme';
import { refreshNow, useRefresh, type WindowState } from '../lib/window';
import { Footer } from './footer';
import { Identity } from './login';
import { Help, Mark, Moon, Sun } from './icons';
import { Notices } from './notices';
import { Running } from './running';
import { TimePicker } from './time-picker';

const PAGES = [
  { path: 'services', title: 'Overview' },
  { path: 'explore', title: 'Explore' },
  { path: 'traces', title: 'Traces' },
  { path: 'graph', title: 'Graph' },
  { path: 'agents', title: 'Agents' },
] as const;

const KEYS: [string[], string][] = [
  [['/'], 'Search on this page'],
  [['1', '…', '5'], 'Overview, Explore, Traces, Graph, Agents'],
  [['r'], 'Refresh'],
  [['t'], 'Light or dark'],
  [['↑', '↓', '←', '→'], 'Move in trees and lists; open and close branches'],
  [['Enter'], 'Open the selected item'],
  [['+', '-', '0'], 'Zoom a trace or a graph; 0 shows all'],
  [['Esc'], 'Close; reset the zoom'],
  [['?'], 'This list'],
];

interface Props {
  section: string;
  window: WindowState;
  session: Session;
  children: ComponentChildren;
}

export function Shell({ section, window: state, session, children }: Props) {
  const help = useRef<HTMLDialogElement>(null);
  const status = useResource(`status|${state.end}`, (signal) => api.status(signal)).data;
  useRefresh(state);
  useKeys((key, event) => {
    const page = PAGES[Number(key) - 1];
    if (key === '/') focusSearch() && event.preventDefault();
    else if (key === '?') help.current?.showModal();
    else if (key === 'r') refreshNow();
    else if (key === 't') switchTheme();
    else if (page !== undefined) goTo(linkTo([page.path]));
  });
  return (
    <>
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <header class="topbar">
        <a class="brand" href={linkTo(['services'])} aria-label="Tachograph">
          <Mark />
          <span>Tachograph</span>
        </a>
        <nav class="nav" aria-label="Pages">
          {PAGES.map((page) => (
            <a key={page.path} href={linkTo([page.path])} aria-current={page.path === section ? 'page' : undefined}>
              {page.title}
            </a>
          ))}
        </nav>
        <div class="tools">
          <Identity session={session} />
          <TimePicker window={state} />
          <ThemeButton />
          <button
            type="button"
            class="button plain icon"
            aria-label="Keys"
            title="Keys (?)"
            onClick={() => help.current?.showModal()}
          >
            <Help />
          </button>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        <AccessWarnings status={status} />
        <Notices page={section} />
        {children}
      </main>
      <Footer status={status} end={state.end} />
      <Running />
      <KeyList reference={help} />
    </>
  );
}

/** The server's warnings about its access settings, for example that everyone on the network may use it. */
function AccessWarnings({ status }: { status: Status | null }) {
  const warnings = status?.access?.warnings ?? [];
  if (warnings.length === 0) return null;
  return (
    <div class="notice" role="status">
      <b>Warning:</b>
      {warnings.map((warning) => (
        <div key={warning}>{warning}</div>
      ))}
    </div>
  );
}

/** Moves the focus without following the link, because the link would replace the page's state after the #. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('content')?.focus();
}

function switchTheme(): void {
  choice.set(theme.get() === 'dark' ? 'light' : 'dark');
}

function ThemeButton() {
  const dark = useStore(theme) === 'dark';
  const label = dark ? 'Switch to light' : 'Switch to dark';
  return (
    <button type="button" class="button plain icon" aria-label={label} title={`${label} (t)`} onClick={switchTheme}>
      {dark ? <Sun /> : <Moon />}
    </button>
  );
}

function KeyList({ reference }: { reference: { current: HTMLDialogElement | null } }) {
  useEffect(() => {
    const dialog = reference.current;
    const outside = (event: MouseEvent): void => {
      if (event.target === dialog) dialog?.close();
    };
    dialog?.addEventListener('click', outside);
    return () => dialog?.removeEventListener('click', outside);
  }, []);
  return (
    <dialog ref={reference} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">
        {KEYS.map(([keys, meaning]) => [
          <dt key={`${meaning} keys`}>{keys.map((key) => (key === '…' ? '…' : <kbd key={key}>{key}</kbd>))}</dt>,
          <dd key={meaning}>{meaning}</dd>,
        ])}
      </dl>
      <form method="dialog">
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </dialog>
  );
}
