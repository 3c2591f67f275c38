// The demo in Chromium: the whole story on the chat page.

import assert from "node:assert/strict";
import { end, looks, page, problems, step } from "./browser.mjs";

const { BASE, LINK } = process.env;
// Runs of the dev agent, with their tests, on a machine that may be busy.
const LONG = { timeout: 120_000 };
const log = (text) => `#log >> text=${text}`;

async function say(text) {
  await page.fill("#instruction", text);
  await page.keyboard.press("Enter");
}

try {
  step("sign in by the printed link");
  await page.goto(LINK);
  await page.click("button.primary");
  await page.waitForURL((url) => !url.pathname.startsWith("/login"));

  step("pictures go with a line, chosen and pasted, if they are pictures");
  await page.goto(BASE + "/chat?thread=pictures");
  await page.waitForFunction(() => document.documentElement.dataset.stream === "open");
  const picture = Buffer.from("89504e470d0a1a0a", "hex");
  const chosen = (name, buffer) => page.setInputFiles("#images", { name, mimeType: "image/png", buffer });
  await chosen("page.png", Buffer.from("<svg onload=alert(1)>"));
  await say("whoami");
  await page.waitForSelector(".problem >> text=page.png is not a PNG");
  await chosen("screen.png", picture);
  await page.evaluate((bytes) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], "pasted.png", { type: "image/png" }));
    const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    document.querySelector("#instruction").dispatchEvent(paste);
  }, [...picture]);
  await page.waitForSelector("#chosen >> text=screen.png, pasted.png");
  await page.focus("#instruction");
  await page.keyboard.press("Enter");
  await page.waitForSelector(log("Picture: pasted.png"));
  await page.waitForFunction(() => document.querySelector("#chosen").textContent === "");
  await looks("chat-pictures", "/chat?thread=pictures");
  await page.goto(BASE + "/");

  step("an instruction becomes a pull request, told in one message");
  await page.keyboard.press("c");
  await page.waitForURL(BASE + "/chat");
  await page.waitForFunction(() => document.documentElement.dataset.stream === "open");
  await say("add the maximum of the numbers");
  await page.waitForSelector("#log article[data-state=progress]");
  await page.waitForSelector("#log article[data-state=result]", LONG);
  const result = await page.textContent("#log article[data-state=result] .said");
  const number = /PR #(\d+)/.exec(result)[1];
  assert.ok(result.includes("the tests do not pass with it"), result);
  await page.waitForSelector("#log article[data-state=progress] >> text=edited");
  assert.equal(await page.locator("#log article[data-state=progress]").count(), 1);

  step("a merge is refused with reasons");
  await page.locator("#log article[data-state=result] button:text-is(\"Merge\")").click();
  await page.waitForSelector(log("it is a draft"));

  step("a follow-up in the thread adds a commit");
  await say("also fix the median");
  await page.waitForSelector(log("the tests pass with it"), LONG);
  assert.ok((await page.locator("#log article[data-state=result] .said").last().textContent()).includes(`PR #${number}`));

  step("a review");
  await page.locator("#log article[data-state=result] button:text-is(\"Review\")").last().click();
  await page.waitForSelector(log("1e3"), LONG);

  step("the draft is made ready, and merged from the chat");
  await page.locator(`#log a:text-is("PR #${number}")`).first().click();
  await page.waitForSelector("#ready button");
  await page.click("#ready button");
  await page.waitForSelector("#head .status.open");
  await page.goto(BASE + "/chat");
  await say(`merge PR #${number} squash`);
  await page.waitForSelector(log(`into main by squash`), LONG);

  step("a question is answered by a button");
  await page.goto(BASE + "/chat?thread=report");
  await page.waitForSelector("#log article[data-state=question] button", LONG);
  await looks("chat", "/chat?thread=report");
  await page.goto(BASE + "/chat?thread=report");
  await page.locator("#log article[data-state=question] button:text-is(\"add the maximum of the numbers\")").click();
  await page.waitForSelector("#log article[data-state=settled]", LONG);
  await page.waitForSelector("#log article[data-state=result]", LONG);

  step("what was said before is there");
  await page.goto(BASE + "/chat?thread=numbers");
  await page.waitForSelector(log("This model is a recording"));
  await page.waitForSelector("#log article[data-state=result]", LONG);

  step("the box of the board completes verbs and shows short answers");
  await page.goto(BASE + "/board");
  assert.ok(await page.locator("datalist#verbs option[value=\"merge \"]").count());
  await say("whoami");
  await page.waitForSelector("[data-replies] >> text=role admin");

  assert.deepEqual(problems, []);
  console.log("all done");
} finally {
  await end();
}
