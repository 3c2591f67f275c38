//! Answers are shown while they are written, where the platform has a way for it, and can be stopped.
//!
//! What is shown is harmless at every moment, not only at the end. Text is shown by whole lines, as
//! far as no secret can begin in them and end in what is still to come, and made harmless like any
//! other message; it is shown only if it continues what was shown before. Where the rest of a text
//! changes what its begin means (a link over two lines), nothing more is shown until the answer.

use std::{pin::pin, sync::Arc, time::Duration};

use codespar_policy::{RedactedStream, Redactor};
use codespar_runtime::{AnswerPiece, AnswerWatcher};
use codespar_store::{ChannelMessage, ThreadRef};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    ChannelCore,
    decide::Turn,
    reply::{MOST, addressee, reply_key},
};
use crate::{
    ChannelAdapter, Outbound, OutboundKind,
    message::KeptMessage,
    outgoing::{neutral, seen},
};

/// Between two drafts, and before the first: an answer that takes no longer needs none.
const PAUSE: Duration = Duration::from_secs(1);
/// Nobody reads on in a message that is so long; the rest comes with the answer.
const MOST_BYTES: usize = 4 * MOST;

/// An answer that a model is writing.
#[derive(Clone)]
pub(crate) struct AnswerUnderWay {
    /// Who asked.
    pub(crate) speaker: String,
    pub(crate) cancel: CancellationToken,
}

/// How the model that writes an answer is called.
pub(crate) struct AnswerCall {
    pub(crate) cancel: CancellationToken,
    pub(crate) watch: Option<AnswerWatcher>,
}

/// Takes the thread out of the list, whatever ends the answer.
struct Listed<'a> {
    core: &'a ChannelCore,
    at: &'a ThreadRef,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.core.answers.lock().remove(self.at);
    }
}

impl ChannelCore {
    /// Has a model write the answer to a message, and shows it meanwhile.
    pub(crate) async fn written<T, F>(&self, turn: &Turn, write: impl FnOnce(AnswerCall) -> F) -> T
    where
        F: Future<Output = T>,
    {
        let at = &turn.message.at;
        let cancel = CancellationToken::new();
        let under_way = AnswerUnderWay {
            speaker: turn.message.speaker.clone(),
            cancel: cancel.clone(),
        };
        self.answers.lock().insert(at.clone(), under_way);
        let _listed = Listed { core: self, at };
        let Some(adapter) = self.drafting(&turn.message).await else {
            return write(AnswerCall {
                cancel,
                watch: None,
            })
            .await;
        };
        let redactor = self.setup.home.redactor.clone();
        let text = Arc::new(Mutex::new(DraftText::new(redactor)));
        let watched = text.clone();
        let watch = AnswerWatcher::new(move |piece| watched.lock().push(piece));
        let call = AnswerCall {
            cancel,
            watch: Some(watch),
        };
        let mut writing = pin!(write(call));
        loop {
            tokio::select! {
                biased;
                written = &mut writing => return written,
                () = tokio::time::sleep(PAUSE) => {}
            }
            // Not beside the call: none may be put after the answer.
            let next = text.lock().next();
            if let Some(next) = next.filter(|_| adapter.shows_drafts(at)) {
                self.put_draft(&turn.message, &turn.kept, next).await;
            }
        }
    }

    /// The adapter that shows drafts of the answer. An answer that a process which has ended began to
    /// show is not shown again: another text may come of it.
    async fn drafting(&self, message: &ChannelMessage) -> Option<Arc<dyn ChannelAdapter>> {
        let adapter = self.adapters.lock().get(&message.at.channel).cloned()?;
        if !adapter.shows_drafts(&message.at) {
            return None;
        }
        let row = self.store().outbound(&reply_key(message)).await;
        matches!(row, Ok(None)).then_some(adapter)
    }

    async fn put_draft(&self, message: &ChannelMessage, kept: &KeptMessage, text: String) {
        let outbound = Outbound {
            kind: OutboundKind::Draft,
            mention: Some(addressee(kept)),
            text,
            choices: Vec::new(),
        };
        let row = self.outbound(reply_key(message), &message.at, outbound);
        if let Err(error) = self.store().put_outbound(row).await {
            tracing::debug!("a draft is left out: {error}");
        }
        self.reach("drafted");
    }
}

/// What may be shown of a text that comes in pieces.
struct DraftText {
    redactor: Arc<Redactor>,
    stream: RedactedStream,
    /// Whole lines without secrets.
    settled: String,
    shown: String,
}

impl DraftText {
    fn new(redactor: Arc<Redactor>) -> Self {
        Self {
            stream: RedactedStream::new(redactor.clone()),
            redactor,
            settled: String::new(),
            shown: String::new(),
        }
    }

    fn push(&mut self, piece: AnswerPiece) {
        match piece {
            AnswerPiece::Text(text) if self.settled.len() <= MOST_BYTES => {
                // Invisible characters within a secret would hide it from the search.
                self.stream.push(&seen(&text), &mut self.settled);
            }
            AnswerPiece::Text(_) => {}
            AnswerPiece::Anew => {
                self.stream = RedactedStream::new(self.redactor.clone());
                self.settled.clear();
            }
        }
    }

    /// The text to be shown now, if it is more than what is shown.
    fn next(&mut self) -> Option<String> {
        let text = neutral(self.settled.trim_end());
        let is_more = text.len() > self.shown.len() && text.starts_with(&self.shown);
        if !is_more || text.chars().count() > MOST {
            return None;
        }
        self.shown.clone_from(&text);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALUE: &str = "hunter22hunter22";
    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

    fn draft() -> DraftText {
        DraftText::new(Arc::new(Redactor::new([
            ("K", VALUE),
            ("M", "first line\nsecond line"),
        ])))
    }

    /// Everything that is shown of a text that comes in pieces of this size, looked at after each.
    fn shown(text: &str, size: usize) -> Vec<String> {
        let mut draft = draft();
        let chars: Vec<char> = text.chars().collect();
        let mut all = Vec::new();
        for piece in chars.chunks(size) {
            draft.push(AnswerPiece::Text(piece.iter().collect()));
            all.extend(draft.next());
        }
        all
    }

    #[test]
    fn whole_lines_are_shown_as_they_come() {
        assert_eq!(
            shown("one\ntwo\n\nthree\nfo", 1),
            ["one", "one\ntwo", "one\ntwo\n\nthree"]
        );
        assert_eq!(shown("a single line", 3), Vec::<String>::new());
    }

    #[test]
    fn no_part_of_a_secret_is_ever_shown() {
        let hidden = format!("{}\u{200b}{}", &TOKEN[..9], &TOKEN[9..]);
        let text = format!(
            "begin\nthe value {VALUE} and\n{TOKEN}\n{hidden}\nfirst line\nsecond line\n\
             -----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAMARKERxx\n-----END PRIVATE KEY-----\nend\n"
        );
        for size in [1, 2, 7, 1_000] {
            for shown in shown(&text, size) {
                for part in [
                    "hunter2",
                    "ghp_",
                    "0123456789abc",
                    "MARKER",
                    "second",
                    "first",
                ] {
                    assert!(!shown.contains(part), "{size}: {shown}");
                }
            }
        }
        let all = shown(&text, 3);
        assert!(all.last().unwrap().ends_with("end"), "{all:#?}");
    }

    #[test]
    fn links_pictures_and_mentions_are_never_shown_as_such() {
        let text = "look\n[the\nbank](https://evil.example)\n![x\ny](https://evil.example/?q=1)\n\
                    <!chan\nnel> @channel <@U2>\n[a]: https://evil.example\n";
        for size in [1, 3, 1_000] {
            for shown in shown(text, size) {
                for form in ["](h", "![", "<!", "<@", "@channel", "]:"] {
                    assert!(!shown.contains(form), "{size}: {shown}");
                }
            }
        }
        // The begin of a link was shown as text; what makes it one is not.
        let all = shown(text, 1);
        assert_eq!(all.last().unwrap(), "look\n[the", "{all:#?}");
    }

    #[test]
    fn an_answer_that_starts_anew_goes_on_where_it_is_the_same() {
        let mut draft = draft();
        let text = |text: &str| AnswerPiece::Text(text.to_owned());
        draft.push(text("one\ntwo\n"));
        assert_eq!(draft.next().as_deref(), Some("one\ntwo"));
        draft.push(AnswerPiece::Anew);
        draft.push(text("one\n"));
        assert_eq!(draft.next(), None);
        draft.push(text("two\nthree\n"));
        assert_eq!(draft.next().as_deref(), Some("one\ntwo\nthree"));
        draft.push(AnswerPiece::Anew);
        draft.push(text("other\nwords\nand more of them\n"));
        assert_eq!(draft.next(), None);
    }

    #[test]
    fn a_long_answer_is_shown_in_part_and_takes_no_memory() {
        let mut draft = draft();
        for _ in 0..10_000 {
            draft.push(AnswerPiece::Text("a line of some length\n".to_owned()));
            assert!(draft.next().is_none_or(|text| text.chars().count() <= MOST));
        }
        assert!(draft.settled.len() < 2 * MOST_BYTES);
        assert!(!draft.shown.is_empty());
    }

    proptest! {
        #[test]
        fn whatever_comes_it_grows_and_is_harmless(
            text in "[\\[\\]()!<>@:/ a-z\u{200b}\u{202e}\n]{0,80}", size in 1_usize..9,
        ) {
            let mut before = String::new();
            for shown in shown(&text, size) {
                prop_assert!(shown.starts_with(&before));
                prop_assert_eq!(&neutral(&shown), &shown);
                before = shown;
            }
        }
    }
}
