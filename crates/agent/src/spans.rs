//! Runs and tool calls in a trace, in the terms of OpenTelemetry's conventions for generative AI.

use codespar_protocol::{SessionId, TRACE_TARGET, ToolUse};
use codespar_tools::ToolOutput;
use tracing::{Span, field::Empty};

/// A prompt, from its record to the end of its answer.
pub(crate) fn run(session: SessionId) -> Span {
    tracing::info_span!(
        target: TRACE_TARGET,
        "invoke_agent",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = %session,
    )
}

/// A tool call that was permitted. A name that no tool has never comes here.
pub(crate) fn tool(call: &ToolUse) -> Span {
    tracing::info_span!(
        target: TRACE_TARGET,
        "execute_tool",
        otel.name = format!("execute_tool {}", call.name),
        otel.status_code = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name,
        gen_ai.tool.call.id = %call.id,
    )
}

pub(crate) fn tell_output(span: &Span, output: &ToolOutput) {
    if output.is_error {
        span.record("otel.status_code", "ERROR");
    }
}
