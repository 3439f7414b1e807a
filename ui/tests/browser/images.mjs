// Takes the screenshots for the documentation from a running server: docs/images/overview.png and trace.png.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, open, URL_BASE } from './browser.mjs';

const IMAGES = fileURLToPath(new URL('../../../docs/images/', import.meta.url));

async function draw(browser, place, name, ready) {
  const { page, close } = await open(browser, place);
  await page.locator(ready).first().waitFor();
  await page.waitForLoadState('networkidle');
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(IMAGES, `${name}.png`) });
  await close();
}

/** Id of a trace of the request `GET /search`, which calls all layers of the bulletin board. Of up to 500 such traces of at least
 *  0.5 ms, it is the trace with the median duration: long enough to show the calls of all layers. */
async function goodTrace() {
  const answer = await fetch(
    `${URL_BASE}/api/traces?limit=500&min_duration=0.0005&operation=${encodeURIComponent('GET /search')}`,
  );
  const { traces } = await answer.json();
  const sorted = traces.sort((a, b) => a.duration_ns - b.duration_ns);
  return sorted[Math.floor(sorted.length / 2)].trace_id;
}

mkdirSync(IMAGES, { recursive: true });
const browser = await launch();
try {
  await draw(browser, '#/services?range=5m', 'overview', 'table[aria-label=Operations] tbody tr');
  await draw(browser, `#/traces/${await goodTrace()}?range=15m`, 'trace', '.waterfall .span-row');
} finally {
  await browser.close();
}
