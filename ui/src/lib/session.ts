// Who uses the page: the token behind the cookie of this browser, its roles, and whether a login is needed. The page cannot
// read the cookie, and keeps no token.
import { Store, useStore } from './store';

export type Role = 'read' | 'write' | 'admin';

export interface Session {
  /** False if the server needs no token. */
  tokens: boolean;
  /** Name of the token. */
  name: string | null;
  roles: Role[];
  /** The selector of the series that the token is confined to. */
  match: string | null;
  /** When the token expires, in RFC 3339; null if it does not. */
  expires: string | null;
  /** When the cookie expires, in RFC 3339; null if there is no cookie. */
  session_expires: string | null;
}

export type State =
  /** The server has not answered yet. */
  | { kind: 'asking' }
  | { kind: 'open'; session: Session }
  /** A login is needed. `why` is the reason for the user; empty if there was no session, or the user has ended it. */
  | { kind: 'closed'; why: string };

/** The rights of a user of a server without tokens. */
export const EVERYBODY: Session = {
  tokens: false,
  name: null,
  roles: ['read', 'write', 'admin'],
  match: null,
  expires: null,
  session_expires: null,
};

export const state = new Store<State>({ kind: 'asking' });

/** Shows the pages if the token may read. */
export function enter(session: Session): void {
  const { name, roles } = session;
  const why = `The token ${name ?? ''} may not read. Use a token with the role read or admin.`;
  state.set(mayRead(roles) ? { kind: 'open', session } : { kind: 'closed', why });
}

/** Shows the login after a response 401. `before` is the state in which the page sent the request. If the state has changed since
 * then, nothing happens: a late response must not end a newer session. */
export function expire(before: State): void {
  if (state.get() !== before || before.kind === 'closed') return;
  const why = before.kind === 'open' ? 'The session has ended. Log in again.' : '';
  state.set({ kind: 'closed', why });
}

/** Shows the login after the user has logged out. */
export function leave(): void {
  state.set({ kind: 'closed', why: '' });
}

export const mayRead = (roles: readonly Role[]): boolean => roles.includes('read') || roles.includes('admin');

/** True if the user may change rules. */
export function useMayChange(): boolean {
  const now = useStore(state);
  return now.kind === 'open' && now.session.roles.includes('admin');
}
