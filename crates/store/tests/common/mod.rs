//! Entries and sessions to try a store with.

use codespar_protocol::{
    ContentBlock, Cost, EntryBody, Message, SessionId, SessionMode, StopReason, ToolUseId, Usage,
    Usd,
};
use codespar_store::{NewSession, Store};

pub(crate) fn new_session(cwd: &str) -> NewSession {
    NewSession {
        id: SessionId::new(),
        cwd: cwd.into(),
        model: "claude-haiku-4-5".to_owned(),
        mode: SessionMode::Normal,
    }
}

pub(crate) async fn started(store: &dyn Store) -> SessionId {
    let session = store.create_session(new_session("/work")).await;
    session.expect("a new session").id
}

pub(crate) fn said(text: &str) -> EntryBody {
    EntryBody::User {
        message: Message::user(text),
        synthetic: false,
    }
}

pub(crate) fn tokens(input_tokens: u64) -> Usage {
    Usage {
        web_search_requests: 0,
        input_tokens,
        output_tokens: 2,
        cache_creation_input_tokens: 30,
        cache_read_input_tokens: 4,
        cache_creation_1h_input_tokens: 5,
    }
}

pub(crate) fn answered(input_tokens: u64, cost: Cost) -> EntryBody {
    EntryBody::Assistant {
        message: Message::assistant(vec![ContentBlock::text("yes")]),
        message_id: Some("msg_1".to_owned()),
        model: "claude-haiku-4-5".to_owned(),
        stop_reason: StopReason::EndTurn,
        usage: tokens(input_tokens),
        cost,
    }
}

pub(crate) fn nanos(nanos: u64) -> Cost {
    Cost::Known(Usd::from_nanos(nanos))
}

pub(crate) fn tool_answer(text: &str) -> EntryBody {
    EntryBody::ToolResult {
        result: ContentBlock::tool_result(ToolUseId::from("t1"), text, false),
        files: Vec::new(),
    }
}
