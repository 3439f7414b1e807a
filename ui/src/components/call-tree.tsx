// The call tree of a service, aggregated over all its traces.
import { useMemo, useState } from 'preact/hooks';
import { api, type CallNode } from '../lib/api';
import { useResource } from '../lib/resource';
import type { TimeWindow } from '../lib/time';
import { calls, duration, grouped, percent, share } from '../lib/units';
import { callFrames, shortName, type View } from '../trace/icicle';
import { Icicle, type Bar } from './icicle';
import { Empty, Failure, Loading } from './states';

export function CallTree({ service, window: range }: { service: string; window: TimeWindow }) {
  const tree = useResource(`calltree|${service}|${range.start}|${range.end}`, (signal) =>
    api.calltree(service, null, range, signal),
  );
  if (tree.error !== null) return <Failure error={tree.error} />;
  if (tree.data === null) return <Loading what="Aggregating calls" />;
  if (tree.data.children.length === 0)
    return (
      <Empty title="No calls">
        <p>No call of this service was recorded in this time range.</p>
      </Empty>
    );
  return <Drawn key={`${range.start}`} root={tree.data} service={service} />;
}

function Drawn({ root, service }: { root: CallNode; service: string }) {
  const { frames, nodes } = useMemo(() => callFrames(root), [root]);
  const bars = useMemo(() => nodes.map((node, index) => barOf(node, index, service)), [nodes, service]);
  const whole: View = { start: 0, end: Math.max(root.total_ns, 1) };
  const [view, setView] = useState(whole);
  const [chosen, setChosen] = useState(0);
  const node = nodes[chosen];
  return (
    <>
      <Icicle
        label="Aggregated call tree"
        frames={frames}
        bars={bars}
        whole={whole}
        view={view}
        onView={setView}
        chosen={chosen}
        onChoose={setChosen}
        tip={(index) => <Facts node={nodes[index]} whole={root.total_ns} name={nameOf(nodes[index], index, service)} />}
        say={(index) => `${nameOf(nodes[index], index, service)}, ${duration(nodes[index]?.total_ns)}`}
      />
      <div class="panel-body chosen-call">
        <Facts node={node} whole={root.total_ns} name={nameOf(node, chosen, service)} />
      </div>
    </>
  );
}

const nameOf = (node: CallNode | undefined, index: number, service: string): string =>
  index === 0 ? `All of ${service}` : (node?.operation ?? '');

function barOf(node: CallNode, index: number, service: string): Bar {
  return {
    label: index === 0 ? nameOf(node, index, service) : shortName(node.operation),
    token: `--kind-${index === 0 ? 'method' : node.kind}`,
    failed: node.errors > 0,
  };
}

function Facts({ node, whole, name }: { node: CallNode | undefined; whole: number; name: string }) {
  if (node === undefined) return null;
  const mean = node.count > 0 ? node.total_ns / node.count : null;
  return (
    <>
      <div class="wrap">
        <b>{name}</b>
      </div>
      <div>
        {duration(node.total_ns)} in all ({percent(share(node.total_ns, whole))}), {duration(node.self_ns)} self,{' '}
        {calls(node.count)}, {duration(mean)} each
        {node.errors > 0 && <span class="bad">, {grouped(node.errors)} failed</span>}
      </div>
    </>
  );
}
