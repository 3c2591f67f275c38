//! The words of an instruction that say where to look.

use crate::{kind, stopwords};

/// The subjects of an instruction: in order, each once, in lower case, without stop words, task
/// verbs and file extensions.
///
/// ```
/// let found = codespar_locate::keywords("add a health check endpoint at /api/health");
/// assert_eq!(found, ["health", "check", "endpoint", "api"]);
/// ```
pub fn keywords(instruction: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\'' | '’');
    for run in instruction.split(|c: char| !is_inside(c)) {
        let run = run.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        for word in without_extension(run).split(['.', '\'', '’']) {
            let word = word.trim_matches('-').to_lowercase();
            let is_subject = word.chars().count() > 1 && !stopwords::is_no_keyword(&word);
            if is_subject && !found.contains(&word) {
                found.push(word);
            }
        }
    }
    found
}

fn without_extension(run: &str) -> &str {
    match run.rsplit_once('.') {
        Some((name, extension))
            if !name.is_empty() && kind::is_known(&extension.to_ascii_lowercase()) =>
        {
            name
        }
        _ => run,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::keywords;

    #[test]
    fn what_the_specification_says_holds() {
        for (instruction, expected) in [
            (
                "fix the auth timeout in login.ts — sessions expire too fast",
                "auth timeout login sessions expire",
            ),
            ("add a health check endpoint", "health check endpoint"),
            (
                "add a health check endpoint at /api/health",
                "health check endpoint api",
            ),
        ] {
            assert_eq!(keywords(instruction).join(" "), expected);
        }
    }

    #[test]
    fn names_keep_their_shape() {
        assert_eq!(
            keywords("Don't drop `src/auth/session.test.ts` from SQLCompiler.get_order_by()!"),
            [
                "drop",
                "src",
                "auth",
                "session",
                "test",
                "sqlcompiler",
                "get_order_by"
            ]
        );
        assert_eq!(keywords(""), [""; 0]);
        assert_eq!(keywords("fix it"), [""; 0]);
    }

    proptest! {
        #[test]
        fn any_text_gives_words_that_are_not_empty_and_differ(text in "\\PC*") {
            let found = keywords(&text);
            let mut once = found.clone();
            once.sort();
            once.dedup();
            prop_assert_eq!(once.len(), found.len());
            prop_assert!(found.iter().all(|word| word.chars().count() > 1));
        }
    }
}
