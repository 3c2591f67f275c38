//! Server-sent events as text.

use bytes::Bytes;

/// How long a browser waits before it connects again.
const RETRY_MS: u32 = 1_000;

/// One event. `id` is what a client sends as `Last-Event-ID` when it connects again.
pub(super) fn event(id: Option<u64>, name: &str, data: &str) -> Bytes {
    let mut text = String::with_capacity(data.len() + name.len() + 40);
    if let Some(id) = id {
        text.push_str(&format!("id: {id}\n"));
    }
    text.push_str(&format!("event: {name}\n"));
    // JSON on one line has no line ends; others would end the event.
    for line in data.lines() {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    Bytes::from(text)
}

/// The first event of a stream.
pub(super) fn first(id: u64, name: &str, data: &str) -> Bytes {
    let mut bytes = format!("retry: {RETRY_MS}\n").into_bytes();
    bytes.extend_from_slice(&event(Some(id), name, data));
    Bytes::from(bytes)
}

/// A sign of life that moves the client's place without an event.
pub(super) fn heartbeat(id: u64) -> Bytes {
    Bytes::from(format!(": still here\nid: {id}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_with_an_empty_line_and_nothing_in_it_does() {
        assert_eq!(
            event(Some(7), "task", "{}"),
            "id: 7\nevent: task\ndata: {}\n\n"
        );
        assert_eq!(
            event(None, "agent", "a\n\nid: 9"),
            "event: agent\ndata: a\ndata: \ndata: id: 9\n\n"
        );
        assert_eq!(heartbeat(3), ": still here\nid: 3\n\n");
    }
}
