// One trace: its spans in order, and their durations.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Icicle, type Bar } from '../components/icicle';
import { kindName, PageHead, Panel, Tiles } from '../components/page';
import { SpanDetails } from '../components/span-details';
import { Copy, Failure, Loading } from '../components/states';
import { Waterfall } from '../components/waterfall';
import { api, type Kind, type Span, type Trace } from '../lib/api';
import { useResource } from '../lib/resource';
import { change, linkTo, usePlace } from '../lib/router';
import { fromNanos, moment } from '../lib/time';
import { duration, grouped } from '../lib/units';
import { labelOf, traceFrames, viewOf, viewText, type View } from '../trace/icicle';
import { belowDepth, reveal, rowsOf, summary, type TreeRow } from '../trace/tree';

export function TracePage({ id }: { id: string }) {
  const trace = useResource(`trace|${id}`, (signal) => api.trace(id, signal));
  const crumbs = <a href={linkTo(['traces'])}>Traces</a>;
  if (trace.data === null) {
    return (
      <>
        <PageHead title={`Trace ${id.slice(0, 12)}`} crumbs={crumbs} />
        {trace.error === null ? <Loading what="Reading the trace" /> : <Failure error={trace.error} />}
      </>
    );
  }
  return <Found trace={trace.data} />;
}

function Found({ trace }: { trace: Trace }) {
  const rows = useMemo(() => rowsOf(trace.spans), [trace]);
  const whole = useMemo(() => wholeOf(trace), [trace]);
  const { params } = usePlace();
  const chosen = rows.findIndex((row) => row.span.id === (params.get('span') ?? trace.spans[0]?.id));
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const [view, setView] = useView(whole);
  const choose = (index: number): void => {
    if (index < 0) return;
    setCollapsed((before) => reveal(rows, before, index));
    change({ span: rows[index]?.span.id });
  };
  const shared = { view, chosen, onChoose: choose };
  return (
    <>
      <Head trace={trace} />
      <Overall rows={rows} whole={whole} onView={setView} {...shared} />
      <div class="trace-parts">
        <Panel title="Spans" class="spans" aside={<Levels rows={rows} onCollapsed={setCollapsed} />}>
          <div class="span-row span-head" aria-hidden="true">
            <div class="span-name">Operation</div>
            <div class="span-service">Service</div>
            <div class="span-bar">Time</div>
            <div class="span-number">Duration</div>
            <div class="span-number">Self</div>
          </div>
          <Waterfall rows={rows} collapsed={collapsed} onCollapsed={setCollapsed} {...shared} />
        </Panel>
        <Panel title="Details" class="span-details">
          <SpanDetails span={rows[chosen]?.span} trace={trace} />
        </Panel>
      </div>
    </>
  );
}

/** From the first start to the last end; spans may exceed the root's duration. */
function wholeOf(trace: Trace): View {
  const start = trace.spans.reduce((least, span) => Math.min(least, span.offset_ns), 0);
  const end = trace.spans.reduce((most, span) => Math.max(most, span.offset_ns + span.duration_ns), trace.duration_ns);
  return { start, end: Math.max(end, start + 1) };
}

/** The address holds the zoom. It is written 300 ms after the last movement. */
function useView(whole: View): [View, (view: View) => void] {
  const { params } = usePlace();
  const [view, setView] = useState<View>(() => viewOf(params.get('at'), whole));
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const update = (next: View): void => {
    setView(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => change({ at: viewText(next, whole) }), 300);
  };
  return [view, update];
}

function Head({ trace }: { trace: Trace }) {
  const root = trace.spans[0];
  const { services, errors, threads } = summary(trace.spans);
  return (
    <>
      <PageHead
        title={root?.operation ?? trace.trace_id}
        crumbs={
          <>
            <a href={linkTo(['traces'], { service: root?.service })}>Traces</a> /{' '}
            <span class="mono">{trace.trace_id}</span>
          </>
        }
      >
        <Copy text={trace.trace_id} label="Copy id" />
        <Copy text={window.location.href} label="Copy link" />
      </PageHead>
      <Tiles
        tiles={[
          { name: 'Duration', value: duration(trace.duration_ns) },
          {
            name: 'Started',
            value: moment(fromNanos(trace.start), true).slice(11),
            title: moment(fromNanos(trace.start), true),
          },
          {
            name: services.length === 1 ? 'Service' : 'Services',
            value: services.length === 1 ? (services[0] ?? '') : String(services.length),
            title: services.join(', '),
          },
          { name: 'Spans', value: grouped(trace.spans.length) },
          { name: 'Failed', value: grouped(errors), bad: errors > 0 },
          { name: 'Threads', value: grouped(threads) },
        ]}
      />
    </>
  );
}

type ColorBy = 'kind' | 'service';

interface OverallProps {
  rows: TreeRow[];
  whole: View;
  view: View;
  onView: (view: View) => void;
  chosen: number;
  onChoose: (index: number) => void;
}

function Overall({ rows, ...rest }: OverallProps) {
  const by: ColorBy = usePlace().params.get('color') === 'service' ? 'service' : 'kind';
  const frames = useMemo(() => traceFrames(rows), [rows]);
  const bars = useMemo(() => barsOf(rows, by), [rows, by]);
  return (
    <Panel title="Icicle" aside={<Colors rows={rows} by={by} />}>
      <Icicle
        label="Icicle of the trace"
        frames={frames}
        bars={bars}
        {...rest}
        tip={(index) => <SpanTip span={rows[index]?.span} />}
        say={(index) => `${rows[index]?.span.operation ?? ''}, ${duration(rows[index]?.span.duration_ns)}`}
      />
    </Panel>
  );
}

function barsOf(rows: readonly TreeRow[], by: ColorBy): Bar[] {
  const services = summary(rows.map((row) => row.span)).services;
  const tokens = ['method', 'http-server', 'database', 'http-client', 'task', 'connection-wait'];
  return rows.map(({ span }) => ({
    label: labelOf(span),
    token: `--kind-${by === 'kind' ? span.kind : (tokens[services.indexOf(span.service) % tokens.length] ?? 'method')}`,
    failed: span.outcome === 'failed',
  }));
}

function Colors({ rows, by }: { rows: readonly TreeRow[]; by: ColorBy }) {
  const kinds = [...new Set(rows.map((row) => row.span.kind))];
  return (
    <>
      {by === 'kind' && (
        <span class="row">
          {kinds.map((kind: Kind) => (
            <span key={kind} class={`kind ${kind}`}>
              {kindName(kind)}
            </span>
          ))}
        </span>
      )}
      <div class="segments" role="group" aria-label="Colour by">
        {(['kind', 'service'] as const).map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={one === by}
            onClick={() => change({ color: one === 'kind' ? null : one })}
          >
            {one === 'kind' ? 'Kind' : 'Service'}
          </button>
        ))}
      </div>
    </>
  );
}

function SpanTip({ span }: { span: Span | undefined }) {
  if (span === undefined) return null;
  return (
    <>
      <div class="wrap">
        <b>{span.operation}</b>
      </div>
      <div class="muted">
        {span.service} · {kindName(span.kind)} · {span.thread}
      </div>
      <div>
        {duration(span.duration_ns)} <span class="muted">self {duration(span.self_ns)}</span>
        {span.outcome === 'failed' && <b class="bad"> failed</b>}
      </div>
    </>
  );
}

function Levels({
  rows,
  onCollapsed,
}: {
  rows: readonly TreeRow[];
  onCollapsed: (collapsed: ReadonlySet<string>) => void;
}) {
  return (
    <>
      <button type="button" class="button plain" onClick={() => onCollapsed(new Set())}>
        Open all
      </button>
      <button type="button" class="button plain" onClick={() => onCollapsed(belowDepth(rows, 1))}>
        Close all
      </button>
    </>
  );
}
