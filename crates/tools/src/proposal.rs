//! A change to a file before it is made: its hunks, and the file with only some of them.
//!
//! The text with the accepted hunks is made once, here, from the very texts that were compared. The
//! tool then writes that text, and only if the file is still the one it was made from
//! ([`ApprovedText`]); nothing is matched or compared a second time.

use crate::{
    ledger::ContentHash,
    line_diff::{self, LineRange, lines},
};

/// Unchanged lines that belong to a hunk on each side.
const CONTEXT: usize = 1;

/// What a call would make of a file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    before: String,
    after: String,
    hunks: Vec<LineRange>,
}

/// A part of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProposalHunk<'a> {
    /// Of the old text, from 1.
    pub first_line: usize,
    pub old: &'a str,
    pub new: &'a str,
}

/// A text that the user approved for a file, if the file is still as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedText {
    pub(crate) before: String,
    pub(crate) after: String,
}

impl Proposal {
    /// `None` for a change that is one hunk.
    pub(crate) fn new(before: String, after: String) -> Option<Self> {
        let hunks = line_diff::hunks(&lines(&before), &lines(&after), CONTEXT);
        (hunks.len() > 1).then_some(Self {
            before,
            after,
            hunks,
        })
    }

    /// Differs for every other text before or after, and if the change is divided otherwise.
    pub fn id(&self) -> String {
        let mut hash = ContentHash::default();
        hash.update(&(self.before.len() as u64).to_le_bytes());
        hash.update(self.before.as_bytes());
        hash.update(self.after.as_bytes());
        for hunk in &self.hunks {
            for place in [hunk.old.start, hunk.old.end, hunk.new.start, hunk.new.end] {
                hash.update(&place.to_le_bytes());
            }
        }
        format!("{:032x}", hash.finish())
    }

    pub fn hunks(&self) -> Vec<ProposalHunk<'_>> {
        let (old, new) = (Spans::of(&self.before), Spans::of(&self.after));
        let hunks = self.hunks.iter().map(|hunk| ProposalHunk {
            first_line: hunk.old.start + 1,
            old: old.text(hunk.old.start, hunk.old.end),
            new: new.text(hunk.new.start, hunk.new.end),
        });
        hunks.collect()
    }

    /// The file with all hunks but these, numbered from 1. Numbers that are no hunk are ignored.
    pub fn without(&self, refused: &[usize]) -> ApprovedText {
        let (old, new) = (Spans::of(&self.before), Spans::of(&self.after));
        let mut text = String::with_capacity(self.before.len());
        let mut at = 0;
        for (index, hunk) in self.hunks.iter().enumerate() {
            if refused.contains(&(index + 1)) {
                continue;
            }
            text.push_str(old.text(at, hunk.old.start));
            text.push_str(new.text(hunk.new.start, hunk.new.end));
            at = hunk.old.end;
        }
        text.push_str(old.text(at, old.count()));
        ApprovedText {
            before: self.before.clone(),
            after: text,
        }
    }
}

/// A text with the places where its lines begin.
struct Spans<'a> {
    text: &'a str,
    /// One more than there are lines: the last is the end of the text.
    starts: Vec<usize>,
}

impl<'a> Spans<'a> {
    fn of(text: &'a str) -> Self {
        let mut starts = vec![0];
        let mut at = 0;
        for line in lines(text) {
            at += line.len();
            starts.push(at);
        }
        Self { text, starts }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The lines from one number to before another, from zero.
    fn text(&self, from: usize, to: usize) -> &'a str {
        &self.text[self.starts[from]..self.starts[to]]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn single_hunks_can_be_refused() {
        let old = "a\nb\nc\nd\ne\nf\n";
        let new = "A\nb\nc\nd\nE\nf";
        let proposal = Proposal::new(old.to_owned(), new.to_owned()).unwrap();
        let shown = proposal.hunks();
        assert_eq!((shown[0].first_line, shown[0].old), (1, "a\nb\n"));
        assert_eq!((shown[1].first_line, shown[1].new), (4, "d\nE\nf"));
        assert_eq!(proposal.without(&[2]).after, "A\nb\nc\nd\ne\nf\n");
        assert_eq!(proposal.without(&[1]).after, "a\nb\nc\nd\nE\nf");
        assert_eq!(proposal.without(&[1, 2]).after, old);
    }

    #[test]
    fn a_change_without_parts_is_no_choice() {
        let proposal = |old: &str, new: &str| Proposal::new(old.to_owned(), new.to_owned());
        assert_eq!(proposal("a\nb\nc\n", "A\nb\nC\n"), None);
        let long: String = (0..50_000).map(|n| format!("{n}\n")).collect();
        let changed = format!("first\n{long}last\n");
        assert_eq!(proposal(&long, &changed).unwrap().hunks().len(), 2);
    }

    #[test]
    fn the_id_tells_texts_apart() {
        let id = |old: &str, new: &str| Proposal::new(old.into(), new.into()).unwrap().id();
        let first = id("a\nb\nc\n\nd\n", "A\nb\nc\n\nD\n");
        assert_eq!(first, id("a\nb\nc\n\nd\n", "A\nb\nc\n\nD\n"));
        assert_ne!(first, id("a\nb\nc\n\nd\n", "A\nb\nc\n\nE\n"));
        assert_ne!(first, id("x\nb\nc\n\nd\n", "A\nb\nc\n\nD\n"));
    }

    fn text() -> impl Strategy<Value = String> {
        let parts = prop::sample::select(vec!["a\n", "b\n", "c\r\n", "\n", "a", "é\t\n"]);
        prop::collection::vec(parts, 0..30).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn all_hunks_make_the_new_text_and_none_the_old(old in text(), new in text()) {
            if let Some(proposal) = Proposal::new(old.clone(), new.clone()) {
                let all: Vec<usize> = (1..=proposal.hunks().len()).collect();
                prop_assert_eq!(proposal.without(&[]).after, new);
                prop_assert_eq!(proposal.without(&all).after, old);
            }
        }
    }
}
