// The login: exchanges a token for a session. The pages appear at the same address afterwards.
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, ApiError } from '../lib/api';
import { enter, EVERYBODY, leave, state, type Session, type State } from '../lib/session';
import { Mark } from './icons';

export function Login({ why }: { why: string }) {
  const field = useRef<HTMLInputElement>(null);
  const [fault, setFault] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = 'Log in · Tachograph';
    field.current?.focus();
  }, []);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const input = field.current;
    if (input === null || busy) return;
    setBusy(true);
    setFault('');
    try {
      enter(await api.login(input.value.trim()));
    } catch (error) {
      setFault(faultOf(error as Error));
      input.focus();
    } finally {
      input.value = '';
      setBusy(false);
    }
  };
  const said = fault || why;
  return (
    <main class="login" id="content">
      <form class="panel form" aria-labelledby="login-title" onSubmit={(event) => void submit(event)}>
        <div class="brand">
          <Mark />
          <span>Tachograph</span>
        </div>
        <h1 id="login-title">Log in</h1>
        {said !== '' && (
          <p class="notice" id="login-fault" role="alert">
            {said}
          </p>
        )}
        {/* Password managers store a password with a user name. */}
        <input
          class="hidden"
          type="text"
          name="username"
          autocomplete="username"
          value="tachograph"
          readOnly
          tabIndex={-1}
          aria-hidden="true"
          aria-label="User name"
        />
        <label>
          Token
          <input
            ref={field}
            class="field"
            type="password"
            name="token"
            autocomplete="current-password"
            required
            maxLength={256}
            spellcheck={false}
            aria-describedby={said === '' ? undefined : 'login-fault'}
            aria-invalid={fault !== ''}
          />
        </label>
        <button type="submit" class="button primary" disabled={busy}>
          Log in
        </button>
      </form>
    </main>
  );
}

function faultOf(error: Error): string {
  return error instanceof ApiError && error.status === 401
    ? `The token is not accepted: ${error.message}`
    : error.message;
}

/** The token of the session, and a button to log out if the page was opened with a cookie. Renders nothing if the server has
 * no tokens. */
export function Identity({ session }: { session: Session }) {
  const [fault, setFault] = useState('');
  if (!session.tokens) return null;
  const { name, roles, match, session_expires: ends } = session;
  const role = roles.includes('admin') ? 'admin' : roles.join(', ');
  const title = `Token ${name ?? ''} (${role})${match === null ? '' : `, only ${match}`}`;
  const logOut = (): void => {
    api.logout().then(leave, (error: Error) => setFault(error.message));
  };
  return (
    <>
      {fault !== '' && (
        <span class="bad" role="alert">
          {fault}
        </span>
      )}
      <span class="identity" title={title}>
        <b>{name}</b> <span class="faint">{role}</span>
      </span>
      {ends !== null && (
        <button type="button" class="button" title={title} onClick={logOut}>
          Log out
        </button>
      )}
    </>
  );
}

/** Longest time that a timer can wait. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Requests the session from the server: at the start, and when the session ends. */
export function useSession(): void {
  useEffect(() => {
    const controller = new AbortController();
    let timer = 0;
    const ask = (): void => {
      api.session(controller.signal).then(enter, () => {
        // A failure other than 401, such as an unreachable server, is shown by the pages.
        if (!controller.signal.aborted && state.get().kind === 'asking') enter(EVERYBODY);
      });
    };
    const plan = (now: State): void => {
      clearTimeout(timer);
      const ends = now.kind === 'open' ? now.session.session_expires : null;
      if (ends === null) return;
      const wait = Date.parse(ends) - Date.now() + 1_000;
      timer = window.setTimeout(ask, Math.min(Math.max(wait, 1_000), TIMER_MS_MAX));
    };
    const unwatch = state.watch(plan);
    ask();
    return () => {
      controller.abort();
      unwatch();
      clearTimeout(timer);
    };
  }, []);
}
