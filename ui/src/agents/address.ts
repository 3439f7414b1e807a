// The settings with which agents send records to this server, for the commands that the page shows while it has no data.
import type { Status } from '../lib/api';

/** Used if the server has not reported its port for records. */
const PORT_DEFAULT = 7071;

/** Variables of a command that starts a program with an agent. */
export function agentVariables(host: string, status: Pick<Status, 'records_port' | 'access'> | null): string {
  const needsToken = (status?.access?.tokens ?? 'none') !== 'none';
  return `TACHO_SERVER=${recordsAddress(host, status)}${needsToken ? ' TACHO_TOKEN_FILE=tacho.token' : ''}`;
}

/** `host` is the host name of the page; the port for records differs from the page's port. */
export function recordsAddress(host: string, status: Pick<Status, 'records_port'> | null): string {
  return `${host === '' ? '127.0.0.1' : host}:${status?.records_port ?? PORT_DEFAULT}`;
}
