// A Chromium with a fresh profile, and pages that report their errors.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const PICTURES = fileURLToPath(new URL('pictures/', import.meta.url));

export const URL_BASE = process.env.TACHO_URL ?? 'http://127.0.0.1:7070';

function executable() {
  const known = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  const found = known.find((path) => path !== undefined && existsSync(path));
  if (found === undefined)
    throw new Error('no Chromium found; install the package chromium or set CHROMIUM to its path');
  return found;
}

export async function launch() {
  return chromium.launch({ executablePath: executable(), headless: true, args: FLAGS });
}

/** Opens an address of the page. `faults` collects console errors, exceptions, responses with a status from 500 on,
 *  and violations of the security policy. */
export async function open(
  browser,
  place,
  { base = URL_BASE, theme = 'light', width = 1440, height = 900, prepare = async () => undefined } = {},
) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const faults = [];
  page.on('console', (message) => message.type() === 'error' && faults.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`));
  page.on('response', (response) => response.status() >= 500 && faults.push(`${response.status()} ${response.url()}`));
  await page.exposeFunction('tellFault', (text) => {
    faults.push(text);
  });
  await page.addInitScript(() =>
    document.addEventListener('securitypolicyviolation', (event) =>
      window.tellFault(`policy: ${event.violatedDirective} ${event.blockedURI}`),
    ),
  );
  await prepare(page);
  await page.goto(`${base}/${place}`);
  return { page, faults, close: () => context.close() };
}

/** A screenshot for manual review; never compared. */
export async function picture(page, name) {
  mkdirSync(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

/** Number of different opaque colours of a canvas; 0 if it is empty. */
export function colorsOf(page, selector) {
  return page
    .locator(selector)
    .first()
    .evaluate((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const colors = new Set();
      for (let at = 0; at < data.length; at += 4)
        if (data[at + 3] > 200) colors.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
      return colors.size;
    });
}

/** Texts of all elements that match the selector, trimmed. */
export async function texts(page, selector) {
  return (await page.locator(selector).allTextContents()).map((text) => text.trim());
}

/** Waits until a condition on the page is true. Throws an exception if it is still false after `milliseconds`. */
export async function until(what, check, milliseconds = 15_000) {
  const deadline = Date.now() + milliseconds;
  while (Date.now() < deadline) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`did not happen: ${what}`);
}
