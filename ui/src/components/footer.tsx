// The server's version and the amount of its data.
import type { Status } from '../lib/api';
import { fromNanos } from '../lib/time';
import { bytes, duration, number } from '../lib/units';

export function Footer({ status, end }: { status: Status | null; end: number }) {
  return (
    <footer class="footer">
      {status !== null && <Facts status={status} end={end} />}
      <a href="licenses.txt">Licences</a>
    </footer>
  );
}

function Facts({ status, end }: { status: Status; end: number }) {
  const { records, chunk_bytes: chunks, journal_bytes: journal } = status;
  return (
    <>
      <span>Tachograph {status.version}</span>
      <span>up {duration(Math.max(end - fromNanos(status.started), 0) * 1e9)}</span>
      {records !== undefined && (
        <span>
          {number(records.execution)} calls, {number(records.sample)} samples, {number(records.entry)} entries received
        </span>
      )}
      {chunks !== undefined && journal !== undefined && (
        <span title={status.data_dir}>
          {bytes(chunks)} in chunks, {bytes(journal)} in the journal ({status.driver})
        </span>
      )}
    </>
  );
}
