// Selects the page that the address names.
import type { ComponentChildren } from 'preact';
import { useErrorBoundary } from 'preact/hooks';
import { Login, useSession } from './components/login';
import { Shell } from './components/shell';
import { Empty, Failure, Loading } from './components/states';
import { linkTo, usePlace } from './lib/router';
import { state, type Session } from './lib/session';
import { useStore } from './lib/store';
import { useWindow, type WindowState } from './lib/window';
import { AgentsPage } from './pages/agents';
import { ExplorePage } from './pages/explore';
import { GraphPage } from './pages/graph';
import { Overview } from './pages/overview';
import { ServicePage } from './pages/service';
import { TracePage } from './pages/trace';
import { TracesPage } from './pages/traces';

export function App() {
  useSession();
  const now = useStore(state);
  switch (now.kind) {
    case 'asking':
      return <Loading />;
    case 'closed':
      return <Login why={now.why} />;
    case 'open':
      return <Pages session={now.session} />;
  }
}

function Pages({ session }: { session: Session }) {
  const { path } = usePlace();
  const state = useWindow();
  return (
    <Shell section={path[0] ?? 'services'} window={state} session={session}>
      <Guarded key={path.join('/')}>
        <Page path={path} window={state} />
      </Guarded>
    </Shell>
  );
}

/** If a page throws an exception, the navigation stays, so that the user can open another page. */
function Guarded({ children }: { children: ComponentChildren }) {
  const [error] = useErrorBoundary();
  return error === undefined ? <>{children}</> : <Failure error={error as Error} />;
}

function Page({ path, window: state }: { path: string[]; window: WindowState }) {
  const [section = 'services', detail] = path;
  switch (section) {
    case 'services':
      return detail === undefined ? (
        <Overview window={state} />
      ) : (
        <ServicePage key={detail} name={detail} window={state} />
      );
    case 'explore':
      return <ExplorePage window={state} />;
    case 'traces':
      return detail === undefined ? <TracesPage window={state} /> : <TracePage key={detail} id={detail} />;
    case 'graph':
      return <GraphPage window={state} />;
    case 'agents':
      return <AgentsPage window={state} />;
    default:
      return (
        <Empty title="Page not found">
          <p>
            The address names “{section}”. <a href={linkTo(['services'])}>Go to the overview</a>
          </p>
        </Empty>
      );
  }
}
