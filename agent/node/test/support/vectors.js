// Reads `testdata/*/*.vec` (format: testdata/README.md): frames that all implementations must encode or decode alike, and
// decisions of rules.

import { readFileSync } from 'node:fs';

/**
 * @param {string} name of the file
 * @param {string} folder
 * @returns {{ name: string, lines: [string, string][], hex: string }[]}
 */
export function vectors(name, folder = 'wire') {
  const text = readFileSync(new URL(`../../../../testdata/${folder}/${name}`, import.meta.url), 'utf8');
  return text
    .split(/\n{2,}/)
    .map((block) => block.split('\n').filter((line) => line !== '' && !line.startsWith('#')))
    .filter((lines) => lines.length > 0)
    .map(([head, ...lines]) => {
      const pairs = lines.map((line) => {
        const at = line.indexOf(' =');
        return /** @type {[string, string]} */ ([line.slice(0, at), line.slice(at + 3)]);
      });
      const hex = pairs.find(([key]) => key === 'hex')?.[1] ?? '';
      return { name: head.replace(/^case /, ''), lines: pairs.filter(([key]) => key !== 'hex'), hex };
    });
}
