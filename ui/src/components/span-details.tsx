// The details of one span.
import type { Span, Trace } from '../lib/api';
import { linkTo } from '../lib/router';
import { duration, percent, share } from '../lib/units';
import { KindBadge } from './page';

export function SpanDetails({ span, trace }: { span: Span | undefined; trace: Trace }) {
  if (span === undefined) return <p class="panel-body muted">Select a span to see its attributes.</p>;
  const attributes = Object.entries(span.attributes);
  return (
    <div class="details panel-body">
      <h3 class="operation">{span.operation}</h3>
      <div class="row">
        <KindBadge kind={span.kind} />
        <span class={`outcome ${span.outcome}`}>{span.outcome}</span>
      </div>
      <dl class="facts">
        <dt>Duration</dt>
        <dd>
          {duration(span.duration_ns)}{' '}
          <span class="faint">{percent(share(span.duration_ns, trace.duration_ns))} of the trace</span>
        </dd>
        <dt>Self time</dt>
        <dd>
          {duration(span.self_ns)}{' '}
          <span class="faint">{percent(share(span.self_ns, span.duration_ns))} of the span</span>
        </dd>
        <dt>Starts after</dt>
        <dd>{duration(span.offset_ns)}</dd>
        <dt>Service</dt>
        <dd>{span.service}</dd>
        <dt>Host</dt>
        <dd>{span.host}</dd>
        <dt>Thread</dt>
        <dd>{span.thread}</dd>
        <dt>Span id</dt>
        <dd class="mono">{span.id}</dd>
      </dl>
      <h3>Attributes</h3>
      {attributes.length === 0 ? (
        <p class="faint">None recorded.</p>
      ) : (
        <dl class="facts">
          {attributes.map(([key, value]) => [<dt key={`${key}=`}>{key}</dt>, <dd key={key}>{String(value)}</dd>])}
        </dl>
      )}
      <a href={linkTo(['traces'], { service: span.service, operation: span.operation })}>Traces with this operation</a>
    </div>
  );
}
