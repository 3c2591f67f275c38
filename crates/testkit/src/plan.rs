//! Decides what goes over the wire for a turn or a fault, before any of it is sent.
//!
//! A plan is a list of bytes to send and pauses between them, and what becomes of the connection.
//! Everything is decided before the first byte goes out, so a fault can cut at any place and the
//! sending code (`serve.rs`) knows nothing of turns or formats.
//!
//! Bodies are written by hand. Streams use chunked encoding, so that an early close is seen as an
//! error and not as an end; an answer in one piece has its length in the head, also when less of it
//! is sent.

use std::time::Duration;

use serde_json::json;

use crate::{
    Fault, Garbage, Gate, Turn,
    answer::{Answer, Wire},
    asked::{Asked, Delivery, Refused},
    fault::{StatusFault, error_kind},
    sse::{EventKind, Events},
};

/// What is sent, in order.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) ending: Ending,
}

#[derive(Debug)]
pub(crate) enum Step {
    Pause(Duration),
    /// Waits for a test to open it.
    Hold(Gate),
    Send(Vec<u8>),
}

/// What becomes of the connection afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ending {
    /// The answer is complete, and the connection takes the next request.
    #[default]
    KeepAlive,
    /// Closed with the body unfinished.
    Cut,
    /// Nothing more is sent until the client goes away.
    Hang,
    /// Keep-alive events until the client goes away.
    Ping,
    /// Closed so that the client gets an error at once.
    Reset,
}

const PAGE: &[u8] = b"<html><body><h1>502 Bad Gateway</h1></body></html>\n";
/// Neither UTF-8, nor events, nor JSON.
const NOT_SSE: &[u8] = b"\xff\xfe\x00 this is no event stream \x00\n{]\n\n";

impl Plan {
    /// A turn as it should be, or as the fault has it. Latency and gate come first, for faults as
    /// well. `fault` is what this attempt meets.
    pub(crate) fn new(wire: Wire, turn: &Turn, asked: &Asked, fault: Option<&Fault>) -> Self {
        let mut plan = Self::default();
        if !turn.latency.is_zero() {
            plan.steps.push(Step::Pause(turn.latency));
        }
        if let Some(gate) = &turn.gate {
            plan.steps.push(Step::Hold(gate.clone()));
        }
        match fault {
            Some(Fault::Reset) => return plan.ending(Ending::Reset),
            Some(Fault::HangBeforeHeaders) => return plan.ending(Ending::Hang),
            Some(Fault::Status(fault)) => return plan.with_status(wire, fault),
            Some(Fault::Garbage(Garbage::Page)) => {
                return plan.with_whole(200, "text/html", &[], PAGE);
            }
            _ => {}
        }
        let answer = Answer::new(turn, asked);
        match asked.delivery {
            Delivery::Streamed => {
                let events = wire.events(&answer);
                plan.with_events(wire, events, turn, fault)
            }
            Delivery::Whole => plan.with_whole_faulty(wire, &wire.whole(&answer), fault),
        }
    }

    /// A request turned down. Not a fault of the script: the request broke a rule, or there is no
    /// turn for it.
    pub(crate) fn refusal(wire: Wire, refused: &Refused) -> Self {
        let error = json!({"type": error_kind(refused.status), "message": refused.message});
        Self::default().with_whole(
            refused.status,
            "application/json",
            &[],
            &wire.error_body(&error),
        )
    }

    fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.steps.push(Step::Send(bytes));
    }

    fn with_status(self, wire: Wire, fault: &StatusFault) -> Self {
        let kind = error_kind(fault.status);
        let default = || json!({"type": kind, "message": format!("scripted: {kind}")});
        let error = fault.error.clone().unwrap_or_else(default);
        let mut headers = Vec::new();
        if let Some(milliseconds) = fault.retry_after_ms {
            headers.push(("retry-after-ms", milliseconds.to_string()));
        }
        if let Some(value) = &fault.retry_after {
            headers.push(("retry-after", value.clone()));
        }
        if let Some(worth) = fault.should_retry {
            headers.push(("x-should-retry", worth.to_string()));
        }
        let body = wire.error_body(&error);
        self.with_whole(fault.status, "application/json", &headers, &body)
    }

    /// Head and body of an answer in one piece.
    fn with_whole(
        mut self,
        status: u16,
        content_type: &str,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> Self {
        let mut bytes = whole_head(status, content_type, headers, body.len());
        bytes.extend_from_slice(body);
        self.send(bytes);
        self
    }

    /// An answer that is not streamed, perhaps broken on its way. Counts of events have no meaning
    /// here: 0 breaks before the body, anything else half-way through it.
    fn with_whole_faulty(mut self, wire: Wire, body: &[u8], fault: Option<&Fault>) -> Self {
        let half_after = |events: usize| if events == 0 { 0 } else { body.len() / 2 };
        let (kept, ending) = match fault {
            Some(Fault::CutAfterBytes(bytes)) => ((*bytes).min(body.len()), Ending::Cut),
            Some(Fault::CutAfterEvents(events)) => (half_after(*events), Ending::Cut),
            Some(Fault::HangAfterEvents(events) | Fault::PingAfterEvents(events)) => {
                (half_after(*events), Ending::Hang)
            }
            Some(Fault::EndAfterEvents(events)) => {
                let body = &body[..half_after(*events)];
                return self.with_whole(200, "application/json", &[], body);
            }
            Some(Fault::Garbage(_)) => {
                return self.with_whole(200, "application/json", &[], NOT_SSE);
            }
            Some(Fault::ErrorAfterEvents { kind, message, .. }) => {
                let error = wire.error_body(&json!({"type": kind, "message": message}));
                return self.with_whole(200, "application/json", &[], &error);
            }
            _ => return self.with_whole(200, "application/json", &[], body),
        };
        let mut bytes = whole_head(200, "application/json", &[], body.len());
        bytes.extend_from_slice(&body[..kept]);
        self.send(bytes);
        self.ending(ending)
    }

    /// The stream as far as the fault lets it come, with what the fault adds at its end.
    fn with_events(
        mut self,
        wire: Wire,
        mut events: Events,
        turn: &Turn,
        fault: Option<&Fault>,
    ) -> Self {
        let mut tail = None;
        let mut ending = Ending::KeepAlive;
        match fault {
            Some(Fault::CutAfterBytes(bytes)) => {
                let kept = events.bytes.get(..*bytes).unwrap_or(&events.bytes).to_vec();
                events.truncate(0);
                tail = Some(kept);
                ending = Ending::Cut;
            }
            Some(Fault::CutAfterEvents(count)) => {
                events.truncate(*count);
                ending = Ending::Cut;
            }
            Some(Fault::HangAfterEvents(count)) => {
                events.truncate(*count);
                ending = Ending::Hang;
            }
            Some(Fault::PingAfterEvents(count)) => {
                events.truncate(*count);
                ending = Ending::Ping;
            }
            Some(Fault::EndAfterEvents(count)) => events.truncate(*count),
            Some(Fault::Garbage(Garbage::Sse(count))) => {
                events.truncate(*count);
                tail = Some(NOT_SSE.to_vec());
            }
            Some(Fault::Garbage(Garbage::Json(count))) => {
                events.truncate(*count);
                let name = wire.event_name("content_block_delta");
                events.push(name, EventKind::Frame, |out| {
                    out.extend_from_slice(br#"{"type": "content_block_delta", "index": "#);
                });
            }
            Some(Fault::ErrorAfterEvents {
                events: count,
                kind,
                message,
            }) => {
                events.truncate(*count);
                let error = wire.error_body(&json!({"type": kind, "message": message}));
                events.push(wire.event_name("error"), EventKind::Frame, |out| {
                    out.extend_from_slice(&error);
                });
            }
            _ => {}
        }
        self.send_events(&events, tail.as_deref(), turn, ending);
        self.ending(ending)
    }

    /// In one piece when nothing is to be waited for.
    fn send_events(&mut self, events: &Events, tail: Option<&[u8]>, turn: &Turn, ending: Ending) {
        let mut bytes = stream_head();
        if turn.delay.is_zero() && turn.hold.is_none() {
            push_chunk(&mut bytes, &events.bytes);
        } else {
            let mut deltas = 0;
            for (kind, event) in events.iter() {
                if kind == EventKind::Delta {
                    self.send(std::mem::take(&mut bytes));
                    self.steps.push(Step::Pause(turn.delay));
                    if let Some((gate, _)) = turn.hold.as_ref().filter(|(_, at)| *at == deltas) {
                        self.steps.push(Step::Hold(gate.clone()));
                    }
                    deltas += 1;
                }
                push_chunk(&mut bytes, event);
            }
        }
        push_chunk(&mut bytes, tail.unwrap_or_default());
        if ending == Ending::KeepAlive {
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        self.send(bytes);
    }
}

/// A keep-alive event, as one chunk of a body.
pub(crate) fn ping() -> Vec<u8> {
    let mut bytes = Vec::new();
    push_chunk(&mut bytes, b"event: ping\ndata: {\"type\": \"ping\"}\n\n");
    bytes
}

/// One chunk of HTTP: its size in hexadecimal, its data.
fn push_chunk(out: &mut Vec<u8>, data: &[u8]) {
    // A chunk of no length would end the body.
    if data.is_empty() {
        return;
    }
    out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
      cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        .to_vec()
}

/// `length` is that of the whole body, whether or not all of it is sent.
fn whole_head(
    status: u16,
    content_type: &str,
    headers: &[(&str, String)],
    length: usize,
) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n",
        reason(status)
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        _ => "Scripted",
    }
}
