//! What a client sends, line by line.
//!
//! ```text
//! {"type":"user","message":{"role":"user","content":"…"},"uuid":"…"}
//! {"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}
//! {"type":"control_response","response":{"subtype":"success","request_id":"…","response":{…}}}
//! ```
//!
//! A line that cannot be read is reported and the next one is read. Lines of other types are passed
//! over: clients of later versions send more.

use std::io::{BufRead, Read};

use codespar_protocol::{ContentBlock, Message, Role};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::sync::mpsc;

/// The longest line in bytes: pictures travel in them.
const LONGEST: usize = 64 << 20;
/// Lines that may wait to be looked at.
const WAITING: usize = 64;

/// A line, understood.
#[derive(Debug)]
pub(super) enum Incoming {
    Prompt(ClientPrompt),
    Request {
        id: String,
        request: Value,
    },
    Response {
        id: String,
        answer: Result<Value, String>,
    },
    /// Nothing to do; the client withdraws a request, which was answered when it came.
    Other,
    /// What is wrong with it.
    Malformed(String),
}

/// What the user of a client says.
#[derive(Debug, Clone)]
pub(super) struct ClientPrompt {
    pub(super) message: Message,
    pub(super) uuid: Option<String>,
    /// As it is: no commands in it.
    pub(super) is_verbatim: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    uuid: Option<String>,
    #[serde(default)]
    client_composed: bool,
    request_id: Option<String>,
    request: Option<Value>,
    response: Option<ResponseBody>,
}

#[derive(Deserialize)]
struct ResponseBody {
    subtype: String,
    request_id: String,
    response: Option<Value>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Said<'a> {
    role: Role,
    #[serde(borrow)]
    content: &'a RawValue,
}

impl Incoming {
    /// Understands a line.
    pub(super) fn read(text: &str) -> Self {
        let line: Line<'_> = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) => return Self::Malformed(error.to_string()),
        };
        match (line.kind.as_str(), line.request_id) {
            ("user", _) => match line.message.map(message) {
                Some(Ok(message)) => Self::Prompt(ClientPrompt {
                    message,
                    uuid: line.uuid,
                    is_verbatim: line.client_composed,
                }),
                Some(Err(error)) => Self::Malformed(error),
                None => Self::Malformed("a user message without `message`".to_owned()),
            },
            ("control_request", Some(id)) => Self::Request {
                id,
                request: line.request.unwrap_or_default(),
            },
            ("control_request", None) => {
                Self::Malformed("a control request without `request_id`".to_owned())
            }
            ("control_response", _) => match line.response {
                Some(body) => Self::Response {
                    id: body.request_id,
                    answer: match body.subtype.as_str() {
                        "success" => Ok(body.response.unwrap_or_default()),
                        _ => Err(body.error.unwrap_or_else(|| "no reason given".to_owned())),
                    },
                },
                None => Self::Malformed("a control response without `response`".to_owned()),
            },
            _ => Self::Other,
        }
    }
}

/// A text, or blocks. What only the model or a tool says does not come from a client.
fn message(raw: &RawValue) -> Result<Message, String> {
    let said: Said<'_> = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    if said.role != Role::User {
        return Err("a message of a client has the role `user`".to_owned());
    }
    if said.content.get().starts_with('"') {
        let text: String =
            serde_json::from_str(said.content.get()).map_err(|error| error.to_string())?;
        return Ok(Message::user(text));
    }
    let content: Vec<ContentBlock> =
        serde_json::from_str(said.content.get()).map_err(|error| error.to_string())?;
    let is_foreign = |block: &ContentBlock| {
        matches!(
            block,
            ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_) | ContentBlock::Thinking(_)
        )
    };
    if content.is_empty() || content.iter().any(is_foreign) {
        return Err("a message of a client has text, pictures or documents".to_owned());
    }
    Ok(Message {
        role: Role::User,
        content,
    })
}

/// Reads standard input on a thread of its own: a read that never returns must not hold the
/// runtime. The channel closes at the end of the input.
pub(super) fn lines() -> std::io::Result<mpsc::Receiver<Incoming>> {
    let (send, lines) = mpsc::channel(WAITING);
    std::thread::Builder::new().spawn(move || {
        let mut stdin = std::io::stdin().lock();
        for number in 1.. {
            let incoming = match next_line(&mut stdin) {
                Ok(None) | Err(_) => return,
                Ok(Some(line)) => line.map_or_else(Incoming::Malformed, |text| match text.trim() {
                    "" => Incoming::Other,
                    text => Incoming::read(text),
                }),
            };
            let incoming = match incoming {
                Incoming::Malformed(why) => {
                    Incoming::Malformed(format!("standard input, line {number}: {why}"))
                }
                other => other,
            };
            if send.blocking_send(incoming).is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}

/// The next line; none at the end. The inner error is a line that is too long, or no text: it is
/// read to its end and not kept.
fn next_line(input: &mut impl BufRead) -> std::io::Result<Option<Result<String, String>>> {
    let mut bytes = Vec::new();
    let mut limited = input.by_ref().take(LONGEST as u64 + 1);
    if limited.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() > LONGEST && bytes.last() != Some(&b'\n') {
        drop(bytes);
        skip_line(input)?;
        let told = format!("longer than {} MB, left out", LONGEST >> 20);
        return Ok(Some(Err(told)));
    }
    Ok(Some(
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()),
    ))
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => {
                input.consume(at + 1);
                return Ok(());
            }
            None => {
                let length = buffer.len();
                input.consume(length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> String {
        match Incoming::read(line) {
            Incoming::Malformed(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_message_is_a_text_or_blocks() {
        for content in [r#""hi""#, r#"[{"type": "text", "text": "hi"}]"#] {
            let line = format!(
                r#"{{"type": "user", "uuid": "u", "message": {{"role": "user", "content": {content}}}}}"#
            );
            match Incoming::read(&line) {
                Incoming::Prompt(prompt) => {
                    assert_eq!(prompt.message.text(), "hi");
                    assert_eq!(prompt.uuid.as_deref(), Some("u"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_only_a_model_or_a_tool_says_is_refused() {
        for message in [
            r#"{"role": "assistant", "content": "hi"}"#,
            r#"{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}"#,
            r#"{"role": "user", "content": []}"#,
        ] {
            told(&format!(r#"{{"type": "user", "message": {message}}}"#));
        }
        assert!(told("{\"type\": ").contains("EOF"));
        assert!(matches!(
            Incoming::read(r#"{"type": "keep_alive"}"#),
            Incoming::Other
        ));
    }

    #[test]
    fn a_line_without_end_is_left_out_and_the_next_is_read() {
        let mut input = vec![b'x'; LONGEST + 10];
        input.extend_from_slice(b"\nnext\n");
        let mut input = std::io::BufReader::new(&*input);
        assert!(next_line(&mut input).unwrap().unwrap().is_err());
        assert_eq!(
            next_line(&mut input).unwrap(),
            Some(Ok("next\n".to_owned()))
        );
        assert_eq!(next_line(&mut input).unwrap(), None);
    }
}
