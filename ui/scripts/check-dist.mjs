// Checks that ui/dist is up to date: builds into a temporary directory and compares byte by byte.
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

async function files(directory) {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    .sort();
}

async function differences(expected, actual) {
  const [wanted, found] = [await files(expected), await files(actual)];
  const all = [...new Set([...wanted, ...found])].sort();
  const results = await Promise.all(
    all.map(async (name) => {
      if (!found.includes(name)) return `missing: ${name}`;
      if (!wanted.includes(name)) return `not built from the sources: ${name}`;
      const [a, b] = await Promise.all([readFile(join(expected, name)), readFile(join(actual, name))]);
      return a.equals(b) ? null : `differs: ${name}`;
    }),
  );
  return results.filter((result) => result !== null);
}

const fresh = await mkdtemp(join(tmpdir(), 'tachograph-ui-'));
try {
  await build({ root, logLevel: 'error', build: { outDir: fresh, emptyOutDir: true } });
  const wrong = await differences(fresh, join(root, 'dist'));
  if (wrong.length > 0) {
    console.error(`ui/dist is not up to date; run "npm run build" in ui/ and commit:\n  ${wrong.join('\n  ')}`);
    process.exitCode = 1;
  } else {
    console.log('ui/dist is up to date');
  }
} finally {
  await rm(fresh, { recursive: true, force: true });
}
