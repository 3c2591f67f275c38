//! What the best files say about others: whom they mention, and where they are.

use std::collections::HashMap;

use crate::{
    evidence::rareness,
    index::Index,
    signal::{FileEvidence, Signal},
    words::{self, Term},
};

/// Files further back come too rarely to the front to be worth the time.
const CLOSE: usize = 95;
/// So many of the best say which directory it is about.
const GATHERED: usize = 20;

/// Marks the files of `order` whose names stand in the text of the `first`: what these use is often
/// changed with them. Both hold scores and files, the best first.
pub(crate) fn mentioned(
    index: &Index,
    first: &[(f32, usize)],
    order: &[(f32, usize)],
    all: &mut [FileEvidence],
) {
    for (_, file) in order.iter().take(CLOSE) {
        if let Some(name) = name_of(&index.files[*file].listed.path) {
            all[*file][Signal::Mentioned] = mentions(index, name, *file, first);
        }
    }
}

/// Marks files by the scores of the best in their directory, themselves left out.
pub(crate) fn siblings(index: &Index, order: &[(f32, usize)], all: &mut [FileEvidence]) {
    let directory = |file: usize| {
        let path = index.files[file].listed.path.as_str();
        path.rsplit_once('/').map_or("", |(directory, _)| directory)
    };
    let mut sums: HashMap<&str, f32> = HashMap::new();
    for (score, file) in order.iter().take(GATHERED) {
        *sums.entry(directory(*file)).or_default() += score;
    }
    for (place, (score, file)) in order.iter().enumerate() {
        let own = if place < GATHERED { *score } else { 0.0 };
        let sum = sums.get(directory(*file)).copied().unwrap_or(0.0);
        all[*file][Signal::Siblings] = (sum - own).max(0.0);
    }
}

/// The scores of the files that mention a name, for as much as it says. The fewer files mention it,
/// the more it counts.
fn mentions(index: &Index, name: Term, file: usize, first: &[(f32, usize)]) -> f32 {
    let mut having = 0;
    let mut scores = 0.0;
    for posting in index.postings.get(name).filter(|one| one.body > 0) {
        having += 1;
        let own = first
            .iter()
            .find(|(_, seed)| *seed == posting.file as usize && *seed != file);
        scores += own.map_or(0.0, |(score, _)| *score);
    }
    let count = index.files.len();
    scores * rareness(having, count) / rareness(0, count)
}

/// The base name up to its first dot, whole.
fn name_of(path: &str) -> Option<Term> {
    let base = path.rsplit('/').next()?;
    let name = base.split('.').next()?;
    let mut whole = None;
    // The whole of a compound comes after its parts.
    words::expand(name.as_bytes(), |term, _| whole = Some(term));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_is_what_a_text_would_call_it() {
        let whole = |identifier: &str| {
            let mut terms = Vec::new();
            words::expand(identifier.as_bytes(), |term, _| terms.push(term));
            terms.pop()
        };
        assert_eq!(name_of("ui/prompt-input.d.ts"), whole("PromptInput"));
        assert_eq!(name_of("src/sessions.rs"), whole("session"));
        assert_eq!(name_of(".x"), None);
    }
}
