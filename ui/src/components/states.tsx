// Empty, loading and error states.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { agentVariables } from '../agents/address';
import { api, ApiError, type Status } from '../lib/api';
import { useResource } from '../lib/resource';
import { linkTo } from '../lib/router';
import { grouped } from '../lib/units';
import { refreshNow } from '../lib/window';

export function Loading({ what = 'Loading' }: { what?: string }) {
  return (
    <div class="state loading" role="status">
      {what} …
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** The server's error message, and a button to retry. */
export function Failure({ error }: { error: Error }) {
  const status = error instanceof ApiError && error.status > 0 ? ` (${error.status})` : '';
  return (
    <div class="notice row spread" role="alert">
      <span>
        <b>
          {titleOf(error)}
          {status}
        </b>{' '}
        {error.message}
      </span>
      <button type="button" class="button" onClick={refreshNow}>
        Try again
      </button>
    </div>
  );
}

function titleOf(error: Error): string {
  if (!(error instanceof ApiError)) return 'The page failed:';
  if (error.type === 'canceled') return 'Stopped:';
  if (error.status === 0) return 'No answer:';
  if (error.status === 404) return 'Not found';
  if (error.status === 503) return 'The server is busy';
  return error.status < 500 ? 'The server refused the request' : 'The server failed';
}

export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <Copy text={text} label="Copy" />
    </div>
  );
}

/** A button that copies `text`; shows "Copied" for two seconds. */
export function Copy({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = (): void => {
    copyText(text).then(
      () => {
        setDone(true);
        setTimeout(() => setDone(false), 2000);
      },
      () => undefined,
    );
  };
  return (
    <button type="button" class="button" onClick={copy} aria-live="polite">
      {done ? 'Copied' : label}
    </button>
  );
}

/** The clipboard API needs a secure context; over plain HTTP from another machine only execCommand works. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'hidden';
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** The numbers of series of samples and of entries, with a link to Explore. */
function Elsewhere({ status }: { status: Status | null }) {
  const { sample = 0, entry = 0 } = status?.series ?? {};
  if (sample + entry === 0) return null;
  return (
    <p>
      {`The server has ${grouped(sample)} series of samples and ${grouped(entry)} series of entries: `}
      <a href={linkTo(['explore'])}>open them in Explore</a>.
    </p>
  );
}

/** Instructions for a time range without calls. `elsewhere`: show a link to Explore; false on Explore itself. */
export function NoData({ elsewhere = true }: { elsewhere?: boolean }) {
  const status = useResource('status', api.status).data;
  const variables = agentVariables(window.location.hostname, status);
  return (
    <div class="panel">
      <Empty title="No calls in this time range">
        {elsewhere && <Elsewhere status={status} />}
        <p>
          To see calls here, start a Java program with the agent, as below. TACHO_INCLUDE selects the methods to record;
          HTTP requests and SQL statements are recorded without it.
        </p>
        <Command
          text={[
            `${variables} TACHO_SERVICE=shop TACHO_INCLUDE='com.shop..*' \\`,
            '  java -javaagent:tachograph-agent.jar -jar app.jar',
          ].join('\n')}
        />
        <p>Or run the included example:</p>
        <Command text="make demo" />
        <p>To see older data, widen the time range at the top right.</p>
      </Empty>
    </div>
  );
}
