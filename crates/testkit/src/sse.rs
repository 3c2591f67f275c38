//! A body of server-sent events that remembers where each one ends.
//!
//! ```text
//! event: NAME          only in the Anthropic format
//! data: ONE LINE OF JSON
//! (empty line)
//! ```
//!
//! The ends are remembered so that a fault can keep the first so many events, and a delay can be
//! put before each delta, without writing the stream a second time.

/// Events, written out in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) bytes: Vec<u8>,
    marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    end: usize,
    kind: EventKind,
}

/// Whether an event is one of the many small ones that a delay applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A piece of a text, of thinking or of an input.
    Delta,
    /// Everything that frames the deltas; sent without delay.
    Frame,
}

impl Events {
    /// Adds an event; `write` puts its data, on one line, into the buffer.
    pub(crate) fn push(
        &mut self,
        name: Option<&str>,
        kind: EventKind,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        if let Some(name) = name {
            self.bytes.extend_from_slice(b"event: ");
            self.bytes.extend_from_slice(name.as_bytes());
            self.bytes.push(b'\n');
        }
        self.bytes.extend_from_slice(b"data: ");
        write(&mut self.bytes);
        self.bytes.extend_from_slice(b"\n\n");
        self.marks.push(Mark {
            end: self.bytes.len(),
            kind,
        });
    }

    /// Keeps the first `events` and forgets the others.
    pub(crate) fn truncate(&mut self, events: usize) {
        self.marks.truncate(events);
        let end = self.marks.last().map_or(0, |mark| mark.end);
        self.bytes.truncate(end);
    }

    /// The events one by one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EventKind, &[u8])> {
        let mut start = 0;
        self.marks.iter().map(move |mark| {
            let event = &self.bytes[start..mark.end];
            start = mark.end;
            (mark.kind, event)
        })
    }
}

/// Pieces of at most `characters` characters. An empty text is one empty piece.
pub(crate) fn pieces(text: &str, characters: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let cut = text
            .char_indices()
            .nth(characters)
            .map_or(text.len(), |(at, _)| at);
        let (piece, tail) = text.split_at(cut);
        rest = (!tail.is_empty()).then_some(tail);
        Some(piece)
    })
}

/// Writes a text as a JSON string.
pub(crate) fn quote(out: &mut Vec<u8>, text: &str) {
    // Writing a string into a Vec cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_are_cut_between_characters_and_make_up_the_whole() {
        let all = |text, size| pieces(text, size).collect::<Vec<_>>();
        assert_eq!(all("äöüß€", 2), ["äö", "üß", "€"]);
        assert_eq!(all("abcd", 2), ["ab", "cd"]);
        assert_eq!(all("", 2), [""]);
    }
}
