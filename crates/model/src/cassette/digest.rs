//! What a request is recognised by: its conversation, without secrets and without spacing.

use std::sync::Arc;

use codespar_protocol::{Message, Role};
use serde_json::Value;

use super::Redaction;
use crate::Request;

/// A stable digest of a conversation, secrets taken out: FNV-1a over its JSON, 128 bits. It tells
/// conversations apart; it is no protection against forgery.
pub(super) fn digest(messages: &[Arc<Message>], redact: &Redaction) -> serde_json::Result<String> {
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for message in messages {
        let mut json = serde_json::to_value(&**message)?;
        redact_strings(&mut json, redact);
        let text = json.to_string();
        for byte in text.bytes().chain([b'\n']) {
            hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
    Ok(format!("{hash:032x}"))
}

/// Which answer of the conversation is asked for, from 1.
pub(super) fn turn(request: &Request) -> usize {
    let answers = request.messages.iter();
    answers.filter(|it| it.role == Role::Assistant).count() + 1
}

/// Takes secrets out of every string, so that whatever is put in their place, the JSON stays JSON;
/// says whether there were any. Names of fields are left alone.
pub(super) fn redact_strings(json: &mut Value, redact: &Redaction) -> Found {
    match json {
        Value::String(text) => {
            let clean = redact(text);
            let found = if clean == *text {
                Found::Nothing
            } else {
                Found::Secrets
            };
            *text = clean;
            found
        }
        Value::Array(items) => items.iter_mut().fold(Found::Nothing, |found, item| {
            found.or(redact_strings(item, redact))
        }),
        Value::Object(fields) => fields.values_mut().fold(Found::Nothing, |found, item| {
            found.or(redact_strings(item, redact))
        }),
        _ => Found::Nothing,
    }
}

/// What a search for secrets found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Secrets,
}

impl Found {
    fn or(self, other: Self) -> Self {
        if self == Self::Nothing { other } else { self }
    }
}
