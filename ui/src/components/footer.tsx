// The server's version and the amount of its data.
import { api, type Status } from '../lib/api';
import { useResource } from '../lib/resource';
import { fromNanos } from '../lib/time';
import { bytes, duration, number } from '../lib/units';

/** Reloads when `end` changes. */
export function Footer({ end }: { end: number }) {
  const status = useResource(`status|${end}`, (signal) => api.status(signal));
  return (
    <footer class="footer">
      {status.data !== null && <Facts status={status.data} end={end} />}
      <a href="licenses.txt">Licences</a>
    </footer>
  );
}

function Facts({ status, end }: { status: Status; end: number }) {
  const { records } = status;
  return (
    <>
      <span>Tachograph {status.version}</span>
      <span>up {duration(Math.max(end - fromNanos(status.started), 0) * 1e9)}</span>
      <span>
        {number(records.execution)} calls, {number(records.sample)} samples, {number(records.entry)} entries received
      </span>
      <span title={status.data_dir}>
        {bytes(status.chunk_bytes)} in chunks, {bytes(status.journal_bytes)} in the journal ({status.driver})
      </span>
    </>
  );
}
