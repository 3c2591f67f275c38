//! The dev agent's answer format: any text is parsed or refused, and a path that is accepted stays
//! in the repository.
#![no_main]

use codespar_change::answer::{AnswerContext, AnswerEnding, parse};
use codespar_protocol::RepoPath;

libfuzzer_sys::fuzz_target!(|text: &str| {
    for ending in [AnswerEnding::Unknown, AnswerEnding::Complete] {
        for shown in [&[][..], &["src/a.rs"]] {
            check(text, &AnswerContext { shown, ending });
        }
    }
});

fn check(text: &str, context: &AnswerContext<'_>) {
    let Ok(answer) = parse(text, context) else {
        return;
    };
    assert!(answer.title().is_none_or(|title| title.chars().count() <= 72));
    for path in answer.paths().into_iter().filter_map(|path| RepoPath::new(path).ok()) {
        let mut parts = path.as_str().split('/');
        assert!(!path.as_str().starts_with('/'));
        assert!(parts.all(|part| part != ".." && !part.eq_ignore_ascii_case(".git")));
    }
}
