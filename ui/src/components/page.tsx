// Parts shared by pages: head, panel, tiles, badges.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import type { Kind } from '../lib/api';
import { grouped, percent, share } from '../lib/units';

interface HeadProps {
  title: string;
  crumbs?: ComponentChildren;
  children?: ComponentChildren;
}

export function PageHead({ title, crumbs, children }: HeadProps) {
  useEffect(() => {
    document.title = `${title} · Tachograph`;
  }, [title]);
  return (
    <div class="page-head">
      <div class="where">
        {crumbs !== undefined && (
          <nav class="crumbs" aria-label="Path">
            {crumbs}
          </nav>
        )}
        <h1>{title}</h1>
      </div>
      {children}
    </div>
  );
}

interface PanelProps {
  title?: string;
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

export function Panel({ title, aside, class: className = '', children }: PanelProps) {
  return (
    <section class={`panel ${className}`.trim()} aria-label={title}>
      {title !== undefined && (
        <div class="panel-head">
          <h2>{title}</h2>
          {aside !== undefined && <div class="aside">{aside}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

export interface Tile {
  name: string;
  value: string;
  bad?: boolean;
  title?: string;
}

export function Tiles({ tiles }: { tiles: Tile[] }) {
  return (
    <dl class="tiles">
      {tiles.map((tile) => (
        <div class="tile" key={tile.name}>
          <dt>{tile.name}</dt>
          <dd class={tile.bad === true ? 'bad' : undefined} title={tile.title ?? tile.value}>
            {tile.value}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A thin line under the top bar while a request is running. */
export function Progress({ on }: { on: boolean }) {
  return on ? <div class="progress" aria-hidden="true" /> : null;
}

const KINDS: Record<Kind, string> = {
  method: 'method',
  'http-server': 'HTTP server',
  'http-client': 'HTTP client',
  database: 'database',
  'connection-wait': 'connection wait',
  task: 'task',
};

export const kindName = (kind: Kind): string => KINDS[kind] ?? kind;

export function KindBadge({ kind }: { kind: Kind }) {
  return <span class={`kind ${kind}`}>{kindName(kind)}</span>;
}

/** Share of failed calls. */
export function Errors({ count, of }: { count: number; of: number }) {
  return (
    <span class={count > 0 ? 'bad' : 'zero'} title={`${grouped(count)} of ${grouped(of)}`}>
      {percent(share(count, of) ?? 0)}
    </span>
  );
}
