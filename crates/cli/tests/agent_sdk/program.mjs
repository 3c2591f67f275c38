// A program of the Agent SDK for TypeScript: each part prints its name when it went as it should.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [cli, work, packages] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(packages, "node_modules", name)));
const { query, tool, createSdkMcpServer } = await load("@anthropic-ai/claude-agent-sdk/sdk.mjs");
const { z } = await load("zod/index.js");

const options = (more) => ({
  pathToClaudeCodeExecutable: cli,
  cwd: work,
  stderr: (text) => process.stderr.write(text),
  ...more,
});

async function ask(prompt, more) {
  const messages = [];
  for await (const message of query({ prompt, options: options(more) })) messages.push(message);
  return messages;
}

const result = (messages) => {
  const last = messages.filter((message) => message.type === "result").at(-1);
  assert.ok(last, JSON.stringify(messages));
  return last;
};
const init = (messages) => messages.find((message) => message.subtype === "init");
const results = (messages) =>
  messages
    .filter((message) => message.type === "user")
    .flatMap((message) => message.message.content)
    .map((block) => JSON.stringify(block.content));

// Prompts that are sent one by one, each when the one before was answered.
function prompts() {
  const waiting = [];
  let wake = () => {};
  let over = false;
  return {
    send: (text) => {
      const message = { role: "user", content: text };
      waiting.push({ type: "user", message, parent_tool_use_id: null, session_id: "" });
      wake();
    },
    end: () => {
      over = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length) yield waiting.shift();
        if (over) return;
        await new Promise((resolve) => (wake = resolve));
      }
    },
  };
}

const parts = {
  async one_shot() {
    const messages = await ask("one shot");
    assert.equal(init(messages).claude_code_version.split(".").length, 3);
    const end = result(messages);
    assert.equal(end.result, "hello");
    assert.ok(end.total_cost_usd > 0);
    for (const usage of Object.values(end.modelUsage)) assert.ok(usage.contextWindow > 0);
  },

  async turns() {
    const input = prompts();
    const session = query({ prompt: input, options: options() });
    const next = async () => {
      const messages = [];
      for (;;) {
        const { value } = await session.next();
        messages.push(value);
        if (value.type === "result") return messages;
      }
    };
    input.send("several turns");
    assert.equal(result(await next()).result, "one");
    assert.ok((await session.supportedCommands()).length > 0);
    assert.ok((await session.supportedModels()).length > 0);
    await session.setModel("haiku");
    await session.setPermissionMode("plan");
    await session.setMaxThinkingTokens(2000);
    input.send("another");
    const messages = await next();
    assert.equal(init(messages).model, "claude-haiku-5-5");
    assert.equal(init(messages).permissionMode, "plan");
    assert.equal(result(messages).result, "two");
    const usage = await session.getContextUsage();
    assert.ok(usage.totalTokens > 0);
    assert.deepEqual(await session.mcpServerStatus(), []);
    input.end();
    assert.equal((await session.next()).done, true);
  },

  async interrupt() {
    const input = prompts();
    const session = query({ prompt: input, options: options({ allowedTools: ["Bash"] }) });
    input.send("to be interrupted");
    for await (const message of session) {
      if (message.type === "assistant") await session.interrupt();
      if (message.type === "result") {
        assert.equal(message.subtype, "error_during_execution");
        input.end();
      }
    }
  },

  async permissions() {
    const input = prompts();
    input.send("permission");
    const canUseTool = async (name, given, { suggestions, toolUseID }) => {
      assert.ok(suggestions.length && toolUseID);
      if (given.file_path.endsWith("no.txt")) return { behavior: "deny", message: "not that file" };
      return { behavior: "allow", updatedInput: { ...given, content: "changed" } };
    };
    const messages = [];
    for await (const message of query({ prompt: input, options: options({ canUseTool }) })) {
      messages.push(message);
      if (message.type === "result") input.end();
    }
    assert.equal(fs.readFileSync(path.join(work, "yes.txt"), "utf8"), "changed");
    assert.ok(!fs.existsSync(path.join(work, "no.txt")));
    assert.equal(result(messages).permission_denials.length, 1);
  },

  async hooks() {
    const seen = [];
    const before = async (given, id) => {
      seen.push([given.hook_event_name, given.tool_name, typeof id]);
      const output = { hookEventName: "PreToolUse", permissionDecision: "deny" };
      return { hookSpecificOutput: { ...output, permissionDecisionReason: "the hook says no" } };
    };
    const hooks = { PreToolUse: [{ matcher: "Bash", hooks: [before] }] };
    const messages = await ask("hooks", { hooks, allowedTools: ["Bash"] });
    assert.deepEqual(seen, [["PreToolUse", "Bash", "string"]]);
    assert.ok(results(messages)[0].includes("the hook says no"));
  },

  async servers() {
    const add = tool("add", "Adds", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
      content: [{ type: "text", text: `sum ${a + b}` }],
    }));
    const calc = createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] });
    const more = { mcpServers: { calc }, allowedTools: ["mcp__calc__add"] };
    const messages = await ask("servers", more);
    assert.ok(results(messages)[0].includes("sum 5"), JSON.stringify(messages));
  },

  async agents() {
    const poet = { description: "Writes poems", prompt: "You write poems.", tools: ["Read"] };
    const messages = await ask("agents", { agents: { poet } });
    assert.ok(init(messages).agents.includes("poet"));
    const ended = messages.find((message) => message.subtype === "task_notification");
    assert.equal(ended.status, "completed");
    assert.ok(messages.some((it) => it.type === "assistant" && it.parent_tool_use_id));
  },

  async sessions() {
    const first = result(await ask("sessions"));
    const second = result(await ask("more", { resume: first.session_id }));
    assert.deepEqual([second.result, second.session_id], ["second", first.session_id]);
    const fork = result(await ask("more", { resume: first.session_id, forkSession: true }));
    assert.equal(fork.result, "third");
    assert.notEqual(fork.session_id, first.session_id);
  },

  async structured() {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const end = result(await ask("structured", { outputFormat: { type: "json_schema", schema } }));
    assert.deepEqual(end.structured_output, { n: 7 });
  },

  async partial() {
    const messages = await ask("partial", { includePartialMessages: true });
    const events = messages.filter((it) => it.type === "stream_event").map((it) => it.event.type);
    assert.equal(events[0], "message_start");
    assert.equal(events.at(-1), "message_stop");
  },
};

for (const [name, part] of Object.entries(parts)) {
  const late = setTimeout(() => {
    console.error(`${name} took too long`);
    process.exit(1);
  }, 120_000);
  await part();
  clearTimeout(late);
  console.log(`ok ${name}`);
}
