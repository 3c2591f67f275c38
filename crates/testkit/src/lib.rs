//! A scripted model server over real HTTP, for tests and for trying things by hand.
//!
//! It speaks Anthropic Messages (`POST /v1/messages`) and OpenAI chat completions
//! (`POST /v1/chat/completions`), streamed or whole as the request asks; one script serves both.
//! Requests are held to the rules of the real API, so that a test finds a protocol mistake.
//!
//! ```
//! use codespar_testkit::{Script, ScriptedModel, Turn};
//! use serde_json::json;
//!
//! let script = Script::new()
//!     .turn(Turn::tool("Bash", &json!({"command": "ls"})))
//!     .turn(Turn::text("There you are."));
//! let server = ScriptedModel::start_blocking(script)?;
//! // Run something against server.url(), then look at what it sent:
//! for request in server.requests() {
//!     println!("{:?} {:?}", request.tool_names(), request.newest_tool_results());
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! By hand: `cargo run -p codespar-testkit -- script.json [--port N]`; examples are in `scripts/`.
//!
//! # Which turn is played
//! The number of assistant messages in the request is the index of the turn, so conversations run
//! side by side, are resumed and tried again without the server keeping anything. Numbers of turns
//! in scripts, ids and messages count from 1.
//!
//! # The JSON format
//! A list of turns, or an object:
//!
//! ```
//! # let script = codespar_testkit::Script::from_json(r#"
//! {
//!   "turns": [
//!     "A turn may be just a text.",
//!     {"content": "Or an object, here with a text and everything else that can be set.",
//!      "stop_reason": "max_tokens",
//!      "usage": {"input_tokens": 900, "output_tokens": 20, "cache_read_input_tokens": 800,
//!                "cache_creation_input_tokens": 50, "cache_creation_1h_input_tokens": 0},
//!      "latency_ms": 0, "delay_ms": 0, "chunk": 64},
//!     {"content": [
//!        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
//!        {"type": "redacted_thinking", "data": "b3BhcXVl"},
//!        "A text block may be just a text.",
//!        {"type": "tool_use", "name": "Bash", "input": {"command": "echo {{turn}}"}},
//!        {"type": "tool_use", "name": "Read", "id": "toolu_mine", "input_text": "{\"cut off"},
//!        {"type": "of_the_future", "sent": "as it stands"}]},
//!     {"repeat": 50, "turn": {"content": [
//!        {"type": "tool_use", "name": "Bash", "input": {"command": "echo turn {{turn}}"}}]}},
//!     {"repeat": 2, "turns": ["one", "two"]},
//!     {"content": "At last.", "faults": [{"status": 529}, {"cut_after_events": 3}]}
//!   ],
//!   "after_last": "error",
//!   "strict": true,
//!   "conversations": [
//!     {"name": "workers",
//!      "match": {"first_user_contains": "You are worker", "system_contains": "subagent",
//!                "model": "claude-haiku-4-5"},
//!      "turns": ["Done: {{last_user_text}}"], "after_last": "repeat"}
//!   ]
//! }
//! # "#)?;
//! # Ok::<(), codespar_testkit::ScriptError>(())
//! ```
//!
//! - `conversations`: the first whose `match` holds in all its parts answers; if none does, `turns`.
//! - `after_last`: `error` (status 400, the default), `repeat` (the last turn) or `end` (a text).
//! - `stop_reason`: by default `tool_use` if a tool is called, else `end_turn`.
//! - `usage`: what is not given is computed from sizes; cache counts are zero.
//! - `latency_ms` passes before the first byte, `delay_ms` before each delta; `chunk` is how many
//!   characters a delta carries.
//! - `input_text` instead of `input` is sent as written, JSON or not.
//! - A tool call without `id` gets one from [`tool_use_id`].
//! - Templates in texts, inputs and ids: `{{turn}}`, `{{last_tool_result}}`, `{{last_user_text}}`,
//!   `{{task_id}}` (the first in the last user text), `{{result_task_id}}` (in the last tool result).
//! - `longest_request`: a request with a larger body, in bytes, is refused as too long.
//! - `strict: false` turns the rules of the real API off.
//!
//! # Faults
//! The first attempt at a turn meets its first fault, the next the second, and so on; when they
//! are used up the turn is played well. Attempts are counted by conversation, turn and text of the
//! first user message.
//!
//! ```
//! # let script = codespar_testkit::Script::from_json(r#"
//! [{"content": "Well.", "faults": [
//!   {"status": 429, "retry_after_ms": 5},
//!   {"status": 503, "retry_after": "0", "should_retry": false},
//!   {"status": 400, "error": {"type": "invalid_request_error", "message": "prompt is too long"}},
//!   {"cut_after_bytes": 100},
//!   {"cut_after_events": 3},
//!   {"end_after_events": 3},
//!   {"error_after_events": 3, "error": {"type": "overloaded_error", "message": "Overloaded"}},
//!   {"hang_after_events": 3},
//!   {"ping_after_events": 3},
//!   {"hang": "before_headers"},
//!   {"garbage": "json", "after_events": 3},
//!   {"garbage": "sse", "after_events": 3},
//!   {"garbage": "page"},
//!   {"reset": "before_headers"}
//! ]}]
//! # "#)?;
//! # Ok::<(), codespar_testkit::ScriptError>(())
//! ```
//!
//! `cut` closes the connection in the middle of the body; `end` ends the body in good order, too
//! early.

mod answer;
mod anthropic_answer;
mod anthropic_request;
mod anthropic_rules;
mod asked;
mod capture;
pub mod chat;
mod collector;
pub mod discord;
mod discord_gateway;
mod fault;
mod gate;
pub mod github;
mod http;
pub mod identity;
pub mod mcp;
mod openai_answer;
mod openai_request;
mod parse;
mod plan;
pub mod process;
mod screen_emulator;
mod script;
mod sdk_client;
mod serve;
mod server;
pub mod slack;
mod sse;
pub mod telegram;
mod template;
mod turn;
pub mod whatsapp;

pub use asked::tool_use_id;
pub use capture::{CapturedRequest, RequestCapture, SeenToolResult};
pub use collector::{CollectedSpan, TraceCollector};
pub use fault::{Fault, Garbage, StatusFault};
pub use gate::Gate;
pub use parse::ScriptError;
pub use screen_emulator::ScreenEmulator;
pub use script::{AfterLast, Conversation, Matcher, Script, Validation};
pub use sdk_client::SdkClient;
pub use serve::Log;
pub use server::{ScriptedModel, Setup, WaitedTooLong};
pub use turn::Turn;
