// What is shown when there is nothing, not yet anything, or an error.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { api, ApiError } from '../lib/api';
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

/** The server's own words, and a way to try again. */
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
  if (error.status === 0) return 'No answer:';
  if (error.status === 404) return 'Not found';
  if (error.status === 503) return 'The server is busy';
  return error.status < 500 ? 'The server refused this' : 'The server failed';
}

export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <Copy text={text} label="Copy" />
    </div>
  );
}

/** A button that copies; says so for two seconds. */
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

/** The clipboard needs a secure context; a page served over plain HTTP from another machine has only the old way. */
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

/** Where to find what is there beside calls. */
function Elsewhere() {
  const status = useResource('status', api.status);
  const { sample = 0, entry = 0 } = status.data?.series ?? {};
  if (sample + entry === 0) return null;
  return (
    <p>
      {`There are ${grouped(sample)} series of samples and ${grouped(entry)} of texts: `}
      <a href={linkTo(['explore'])}>look at them in Explore</a>.
    </p>
  );
}

/** What to do on a server that has not heard of any program yet; `elsewhere` unless Explore itself says it. */
export function NoData({ elsewhere = true }: { elsewhere?: boolean }) {
  const host = window.location.hostname || '127.0.0.1';
  return (
    <div class="panel">
      <Empty title="No calls in this time range">
        {elsewhere && <Elsewhere />}
        <p>
          Attach the agent to a Java program. TACHO_INCLUDE names the methods to record; HTTP requests and SQL
          statements are recorded without it. The service appears here with its first call:
        </p>
        <Command
          text={[
            `TACHO_SERVER=${host}:7071 TACHO_SERVICE=shop TACHO_INCLUDE='com.shop..*' \\`,
            '  java -javaagent:tachograph-agent.jar -jar app.jar',
          ].join('\n')}
        />
        <p>Or see it work with the example that comes along:</p>
        <Command text="make demo" />
        <p>Data that is older lies outside the range at the top right; widen it there.</p>
      </Empty>
    </div>
  );
}
