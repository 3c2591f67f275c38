// The pages in Chromium: flows, widths, colour schemes, keys, accessibility, reconnecting.

import assert from "node:assert/strict";
import { join } from "node:path";
import { check, end, looks, page, problems, step } from "./browser.mjs";

const { BASE, TOKEN, READER, ASKING, LONG, SHOTS } = process.env;

async function signIn(token) {
  await page.goto(BASE + "/login");
  await page.fill("#token", token);
  await page.click("button.primary");
}

try {
  step("sign in");
  await page.goto(BASE + "/board");
  assert.ok(page.url().includes("/login?next="), page.url());
  await check("sign-in");
  await page.screenshot({ path: join(SHOTS, "sign-in.png") });
  await page.fill("#token", "cspr_wrong");
  await page.click("button.primary");
  await page.waitForSelector(".problem");
  await page.goto(BASE + "/login?next=%2Fboard");
  await page.fill("#token", TOKEN);
  await page.keyboard.press("Enter");
  await page.waitForURL(BASE + "/board");

  step("keys");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]");
  await page.keyboard.press("Escape");
  await page.keyboard.press("i");
  await page.waitForURL(BASE + "/");
  await page.waitForSelector(".question");
  await looks("inbox", "/");

  step("answer a question, with the keyboard alone");
  await page.goto(`${BASE}/tasks/${ASKING}`);
  await page.waitForSelector(".question");
  assert.ok((await page.textContent(".question")).includes("note.txt"));
  await page.locator("text=Allow once").focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector(".question", { state: "detached" });
  await page.waitForSelector("#transcript >> text=The note is there");
  await page.waitForSelector("#head .status.completed");
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await page.locator("#transcript details.call summary").first().click();
  await looks("agent", `/tasks/${ASKING}`);

  step("all commands, and a search with the keyboard alone");
  await page.goto(BASE + "/board");
  await page.keyboard.press("/");
  await page.keyboard.type("The **note**");
  await page.keyboard.press("Enter");
  await page.waitForSelector("mark >> text=The **note**");
  await looks("search", "/search?q=note");

  step("start a task and watch it");
  await page.goto(BASE + "/");
  await page.keyboard.press("n");
  await page.waitForURL(BASE + "/board#instruction");
  await page.fill("#instruction", "fix the greeting: make it say hi");
  await page.click("button:text-is(\"Start\")");
  await page.waitForURL(/\/tasks\/w-/);
  const run = new URL(page.url()).pathname;
  await page.waitForSelector("#head .status.completed", { timeout: 60_000 });
  await page.waitForSelector("#report >> text=Pull request #1");
  await page.waitForSelector("#steps .steps li");
  await looks("run", run);
  await looks("board", "/board");

  step("reconnect after the server was killed");
  await page.goto(BASE + run);
  await page.waitForFunction(() => document.documentElement.dataset.stream === "open");
  console.log("restart the server");
  await page.waitForFunction(() => document.documentElement.dataset.stream === "lost", null, { timeout: 60_000 });
  await page.waitForFunction(() => document.documentElement.dataset.stream === "open", null, { timeout: 60_000 });
  assert.equal(await page.textContent("#connection"), "");

  step("see the pull request and merge it");
  await page.click("#report >> text=Pull request #1");
  await page.waitForSelector(".diff .add >> text=greeting=hi");
  const pull = new URL(page.url()).pathname;
  await looks("pull", pull);
  await page.goto(BASE + pull);
  await page.click("#merge button");
  await page.waitForSelector("#head .status.merged");

  step("a long conversation");
  await page.goto(`${BASE}/sessions/${LONG}`);
  await page.waitForSelector("text=entry number 10000 of");
  for (let count = 0; count < 12; count += 1) {
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.waitForTimeout(150);
  }
  const state = await page.evaluate(() => ({
    entries: document.querySelectorAll(".entry").length,
    first: Number(document.querySelector(".chunk").dataset.index),
    last: Number([...document.querySelectorAll(".chunk")].at(-1).dataset.index),
  }));
  assert.ok(state.entries <= 450, JSON.stringify(state));
  assert.ok(state.first < 195, JSON.stringify(state));
  assert.ok(state.last < 199, `those at the end were dropped: ${JSON.stringify(state)}`);
  const newest = state.last;
  for (let count = 0; count < 40; count += 1) {
    await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
    await page.waitForTimeout(100);
  }
  await page.waitForSelector("text=entry number 10000 of");
  assert.ok(newest < 199);
  await check("long conversation");

  step("usage, health and pull requests");
  await looks("usage", "/usage");
  await looks("health", "/health");
  await looks("audit", "/audit");
  await page.waitForSelector("#audit >> text=dev");
  await page.goto(BASE + "/pulls?state=all");
  await check("pulls");

  step("the switch of colours is kept");
  await page.click("[data-theme-switch]");
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(theme, "dark");
  await page.goto(BASE + "/board");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");

  step("a reader has no buttons");
  await page.click("button:text-is(\"Sign out\")");
  await signIn(READER);
  await page.goto(BASE + "/board");
  assert.equal(await page.locator("form[data-api]").count(), 0);

  assert.deepEqual(problems, []);
  console.log("all done");
} finally {
  await end();
}
