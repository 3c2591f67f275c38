//! How usual the words of an instruction are in the messages of past commits.
//!
//! A word that is rare in code may still say nothing about a place: "avoid", "properly", the name
//! of the project, whatever people there write in every other message. Messages are written like
//! instructions, so a word that many of them have, whichever files they changed, counts for less.

use std::collections::HashMap;

use crate::{
    evidence::rareness,
    history::{Commit, History},
    query::Query,
    table::BuildIdentity,
    words::Term,
};

/// With fewer commits nobody can tell what is usual.
const FEWEST: usize = 100;
/// One of so many messages may have a word that counts in full: what a project is about is spoken
/// of again and again, too.
const USUAL: usize = 50;

/// In how many messages each term of a query is.
pub(crate) struct Spoken {
    having: HashMap<Term, usize, BuildIdentity>,
    /// The commits that say anything.
    commits: usize,
}

impl Spoken {
    pub(crate) fn count(history: &History, query: &Query) -> Self {
        let terms = query.terms.iter();
        let mut having: HashMap<_, _, _> = terms.map(|one| (one.term, 0)).collect();
        for term in history.commits.iter().flat_map(|commit| &commit.terms) {
            if let Some(having) = having.get_mut(term) {
                *having += 1;
            }
        }
        let says = |commit: &&Commit| !commit.files.is_empty();
        Self {
            having,
            commits: history.commits.iter().filter(says).count(),
        }
    }

    /// How rare a term of the query is in messages; nothing for other terms.
    pub(crate) fn rareness(&self, term: Term) -> Option<f32> {
        let having = self.having.get(&term)?;
        Some(rareness(*having, self.commits))
    }

    /// What is left of the weight of a term, at most one.
    pub(crate) fn share(&self, term: Term) -> f32 {
        if self.commits < FEWEST {
            return 1.0;
        }
        let usual = rareness(self.commits / USUAL, self.commits);
        self.rareness(term)
            .map_or(1.0, |own| (own / usual).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    /// `usual` of `all` messages have "avoid", the others have "session".
    fn share(usual: usize, all: usize, word: &str) -> f32 {
        let commit = |number: usize| Commit {
            id: number as u64,
            terms: vec![words::term(match number < usual {
                true => b"avoid",
                false => b"session",
            })],
            files: vec![7],
        };
        let history = History {
            tip: "tip".to_owned(),
            commits: (0..all).map(commit).collect(),
        };
        let query = Query::read("avoid a loop");
        Spoken::count(&history, &query).share(words::term(word.as_bytes()))
    }

    #[test]
    fn a_word_of_many_messages_counts_for_less() {
        let often = share(300, 1000, "avoid");
        let sometimes = share(100, 1000, "avoid");
        assert!(
            0.0 < often && often < sometimes && sometimes < 1.0,
            "{often} {sometimes}"
        );
    }

    #[test]
    fn a_word_of_few_messages_counts_in_full() {
        assert_eq!(share(20, 1000, "avoid"), 1.0);
        assert_eq!(share(300, 1000, "loop"), 1.0);
    }

    #[test]
    fn a_short_history_does_not_say_what_is_usual() {
        assert_eq!(share(99, 99, "avoid"), 1.0);
        assert!(share(100, 100, "avoid") < 1.0);
    }

    #[test]
    fn a_term_that_the_query_does_not_have_is_not_counted() {
        assert_eq!(share(300, 1000, "session"), 1.0);
    }
}
