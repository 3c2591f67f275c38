// A browser for the tests of the pages: Chromium, with what every view is checked for.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { BASE, PACKAGES, SHOTS } = process.env;
const installed = (name) => join(PACKAGES, name, "node_modules", name);
const { chromium } = createRequire(import.meta.url)(installed("playwright-core"));
const axe = readFileSync(join(installed("axe-core"), "axe.min.js"), "utf8");
const profile = mkdtempSync(join(tmpdir(), "pages-"));

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags, viewport: { width: 1440, height: 900 },
});
browser.setDefaultTimeout(20_000);
export const page = await browser.newPage();

/** What the pages complained about; empty at the end. */
export const problems = [];
page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
page.on("console", (message) => {
  const text = message.text();
  if (message.type() === "error" && !/Failed to load resource|ERR_/.test(text)) problems.push(`console: ${text}`);
});
page.on("request", (request) => { if (!request.url().startsWith(BASE) && !request.url().startsWith("data:")) problems.push(`request to ${request.url()}`); });

export const step = (name) => console.log(`- ${name}`);

export async function check(name) {
  // Outside of the page's own policy: axe is injected by the debugger.
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  assert.deepEqual(serious.map((one) => `${name}: ${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`), []);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
}

/** A view at two widths in two colour schemes. */
export async function looks(name, address) {
  for (const width of [1440, 375]) {
    for (const scheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height: width === 375 ? 800 : 900 });
      await page.emulateMedia({ colorScheme: scheme });
      await page.goto(BASE + address);
      await page.waitForSelector("main");
      await check(`${name} ${width} ${scheme}`);
      await page.screenshot({ path: join(SHOTS, `${name}-${width}-${scheme}.png`) });
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
}

export async function end() {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
