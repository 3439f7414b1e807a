// Warnings and infos of the responses, above every page: about unreadable records and downsampled samples.
import { useEffect } from 'preact/hooks';
import { forget, notices } from '../lib/notices';
import { useStore } from '../lib/store';
import { grouped } from '../lib/units';

/** Number of lines of one kind that are visible without a click. */
const SHOWN_MAX = 3;

/** `page` is the page that the responses belong to. */
export function Notices({ page }: { page: string }) {
  const { warnings, infos } = useStore(notices);
  useEffect(() => forget, [page]);
  return (
    <>
      <Lines title="Warning:" lines={warnings} />
      <Lines title="Note:" lines={infos} warn />
    </>
  );
}

function Lines({ title, lines, warn = false }: { title: string; lines: string[]; warn?: boolean }) {
  if (lines.length === 0) return null;
  const rest = lines.slice(SHOWN_MAX);
  return (
    <div class={warn ? 'notice warn' : 'notice'} role="status">
      <b>{title}</b>
      {lines.slice(0, SHOWN_MAX).map((line) => (
        <div key={line}>{line}</div>
      ))}
      {rest.length > 0 && (
        <details>
          <summary>{`and ${grouped(rest.length)} more`}</summary>
          {rest.map((line) => (
            <div key={line}>{line}</div>
          ))}
        </details>
      )}
    </div>
  );
}
