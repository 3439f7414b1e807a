// The address that agents send records to, for the commands of empty states.
import type { Status } from '../lib/api';

/** Port of servers that do not report theirs. */
const PORT_DEFAULT = 7071;

/** `host` is the host name of the page; the port for records differs from the page's port. */
export function recordsAddress(host: string, status: Pick<Status, 'records_port'> | null): string {
  return `${host === '' ? '127.0.0.1' : host}:${status?.records_port ?? PORT_DEFAULT}`;
}
