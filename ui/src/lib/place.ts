// Encodes the state of a page in the part of the address behind the #.
//
//   #/services/bulletin-board?range=15m&sort=p95
//     path                     params

export interface Place {
  /** Decoded segments: ['services', 'bulletin-board']. */
  path: string[];
  params: URLSearchParams;
}

/** Values to set; null, undefined or '' removes a parameter, and a list sets it once for each element. */
export type Changes = Record<string, string | number | null | undefined | string[]>;

export function parsePlace(hash: string): Place {
  const text = hash.replace(/^#?\/?/, '');
  const cut = text.indexOf('?');
  const path = (cut < 0 ? text : text.slice(0, cut)).split('/').filter((part) => part !== '');
  return { path: path.map(decodeSafely), params: new URLSearchParams(cut < 0 ? '' : text.slice(cut + 1)) };
}

function decodeSafely(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function formatPlace(path: string[], params: URLSearchParams): string {
  const query = params.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${query === '' ? '' : `?${query}`}`;
}

export function withChanges(params: URLSearchParams, changes: Changes): URLSearchParams {
  const result = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    result.delete(name);
    if (Array.isArray(value)) value.forEach((one) => result.append(name, one));
    else if (value !== null && value !== undefined && value !== '') result.set(name, String(value));
  }
  return result;
}
