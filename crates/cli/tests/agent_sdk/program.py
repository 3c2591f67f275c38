"""A program of the Agent SDK for Python: each part prints its name when it went as it should."""

import asyncio
import os
import sys
from pathlib import Path

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)

CLI = sys.argv[1]
WORK = Path(sys.argv[2])


def options(**more):
    return ClaudeAgentOptions(cli_path=CLI, cwd=WORK, stderr=lambda line: print(line, file=sys.stderr), **more)


async def ask(prompt, **more):
    return [message async for message in query(prompt=prompt, options=options(**more))]


def result(messages):
    last = messages[-1]
    assert isinstance(last, ResultMessage), messages
    return last


async def one_shot():
    messages = await ask("one shot")
    init = messages[0]
    assert isinstance(init, SystemMessage) and init.subtype == "init", messages
    texts = [block.text for message in messages if isinstance(message, AssistantMessage) for block in message.content]
    assert texts == ["hello"], texts
    end = result(messages)
    assert not end.is_error and end.result == "hello" and end.total_cost_usd > 0, end
    assert all(usage["contextWindow"] for usage in end.model_usage.values()), end


async def turns():
    async with ClaudeSDKClient(options()) as client:
        info = await client.get_server_info()
        assert info["commands"] and info["models"], info
        await client.query("several turns")
        first = [message async for message in client.receive_response()]
        assert result(first).result == "one", first
        await client.set_model("haiku")
        await client.set_permission_mode("plan")
        await client.query("another")
        second = [message async for message in client.receive_response()]
        init = next(message for message in second if isinstance(message, SystemMessage) and message.subtype == "init")
        assert init.data["model"] == "claude-haiku-5-5" and init.data["permissionMode"] == "plan", init
        assert result(second).result == "two", second
        usage = await client.get_context_usage()
        assert usage["totalTokens"] > 0 and usage["maxTokens"] == 200000, usage
        assert (await client.get_mcp_status())["mcpServers"] == []


async def interrupt():
    async with ClaudeSDKClient(options(allowed_tools=["Bash"])) as client:
        await client.query("to be interrupted")
        messages = []
        async for message in client.receive_response():
            messages.append(message)
            if isinstance(message, AssistantMessage):
                await client.interrupt()
        assert result(messages).subtype == "error_during_execution", messages


async def permissions():
    async def decide(name, given, context):
        assert context.suggestions and context.tool_use_id, context
        if given["file_path"].endswith("no.txt"):
            return PermissionResultDeny(message="not that file")
        return PermissionResultAllow(updated_input={**given, "content": "changed"})

    async def prompts():
        yield {"type": "user", "message": {"role": "user", "content": "permission"}}

    messages = [message async for message in query(prompt=prompts(), options=options(can_use_tool=decide))]
    assert (WORK / "yes.txt").read_text() == "changed"
    assert not (WORK / "no.txt").exists()
    assert len(result(messages).permission_denials) == 1, messages


async def hooks():
    seen = []

    async def before(given, tool_use_id, context):
        seen.append((given["hook_event_name"], given["tool_name"], tool_use_id))
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "the hook says no"}}

    matchers = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[before], on_failure="block")]}
    messages = await ask("hooks", hooks=matchers, allowed_tools=["Bash"])
    assert [entry[:2] for entry in seen] == [("PreToolUse", "Bash")] and seen[0][2], seen
    texts = [block.content for message in messages if isinstance(message, UserMessage) for block in message.content]
    assert "the hook says no" in texts[0], texts


async def servers():
    @tool("add", "Adds two numbers", {"a": float, "b": float})
    async def add(given):
        return {"content": [{"type": "text", "text": f"sum {given['a'] + given['b']}"}]}

    server = create_sdk_mcp_server(name="calc", version="1.0.0", tools=[add])
    messages = await ask("servers", mcp_servers={"calc": server}, allowed_tools=["mcp__calc__add"])
    texts = [block.content for message in messages if isinstance(message, UserMessage) for block in message.content]
    assert "sum 5" in str(texts[0]), texts
    assert messages[0].data["mcp_servers"] == [{"name": "calc", "status": "connected"}], messages[0]


async def agents():
    poet = AgentDefinition(description="Writes poems", prompt="You write poems.", tools=["Read"])
    messages = await ask("agents", agents={"poet": poet})
    assert "poet" in messages[0].data["agents"], messages[0]
    assert any(isinstance(message, TaskStartedMessage) for message in messages), messages
    ended = next(message for message in messages if isinstance(message, TaskNotificationMessage))
    assert ended.status == "completed" and ended.usage["duration_ms"] >= 0, ended
    assert any(isinstance(message, AssistantMessage) and message.parent_tool_use_id for message in messages), messages


async def sessions():
    first = result(await ask("sessions"))
    second = result(await ask("more", resume=first.session_id))
    assert (second.result, second.session_id) == ("second", first.session_id), second
    fork = result(await ask("more", resume=first.session_id, fork_session=True))
    assert fork.result == "third" and fork.session_id != first.session_id, fork


async def structured():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    end = result(await ask("structured", output_format={"type": "json_schema", "schema": schema}))
    assert end.structured_output == {"n": 7}, end


async def partial():
    messages = await ask("partial", include_partial_messages=True)
    events = [message.event["type"] for message in messages if isinstance(message, StreamEvent)]
    assert events[0] == "message_start" and events[-1] == "message_stop", events
    assert "content_block_delta" in events, events


async def main():
    for part in [one_shot, turns, interrupt, permissions, hooks, servers, agents, sessions, structured, partial]:
        await asyncio.wait_for(part(), 120)
        print(f"ok {part.__name__}", flush=True)


asyncio.run(main())
