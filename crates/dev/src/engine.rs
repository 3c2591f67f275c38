//! `engine = "auto"`: one answer of the model for small changes, the agent for those that one
//! answer would not do.
//!
//! The agent costs several times as much, so the rules are few and can be checked by hand: the
//! files that matter do not fit, or the instruction is a list of things in different places. A
//! change whose tests still fail after the repairs goes to the agent as well; that is decided where
//! they are run.

use std::collections::BTreeSet;

/// Different places in a list from which on the agent does it.
const MANY: usize = 3;

/// Why the agent should do it, in words for people; `None` for one answer. `wanted` files were
/// named or picked, and the context has no room for `left_out` of them.
pub(crate) fn reason_for_agent(
    instruction: &str,
    wanted: usize,
    left_out: usize,
) -> Option<String> {
    if left_out > 0 {
        return Some(format!(
            "{left_out} of the {wanted} files that matter do not fit into the context \
             (`dev.contextBytes`)"
        ));
    }
    let places = places_of_list(instruction);
    (places >= MANY).then(|| format!("the instruction lists changes in {places} places"))
}

/// How many different places the items of a list name. Zero for a list of fewer than `MANY` items:
/// names in running text are often only mentioned.
fn places_of_list(instruction: &str) -> usize {
    let mut places = BTreeSet::new();
    let mut items = 0;
    for line in instruction.lines() {
        let Some(item) = item(line.trim_start()) else {
            continue;
        };
        items += 1;
        places.extend(item.split_whitespace().filter_map(place));
    }
    if items < MANY { 0 } else { places.len() }
}

/// The text of `- …`, `* …`, `1. …` or `2) …`.
fn item(line: &str) -> Option<&str> {
    if let Some(rest) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some(rest);
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.len() {
        return None;
    }
    rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))
}

/// The directory of a path in the text, or the name of a file in none. Files in one directory are
/// one place. A word with a single slash and no ending, such as `and/or`, is none.
fn place(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !"_./".contains(c));
    let word = word.trim_end_matches('.');
    if word.contains("://") {
        return None;
    }
    let (dir, name) = word.rsplit_once('/').unwrap_or(("", word));
    let is_file = name.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty() && (1..=5).contains(&end.len()) && end.chars().all(char::is_alphanumeric)
    });
    let is_file = is_file && name.chars().any(char::is_alphabetic);
    match (dir, is_file) {
        ("", true) => Some(name.to_owned()),
        (dir, false) if !dir.contains('/') => None,
        (dir, _) => Some(dir.trim_start_matches("./").to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_are_one_answer() {
        for instruction in [
            "fix the auth timeout in login.ts — sessions expire too fast",
            "- one and/or two\n- client/server\n- read/write\n- four",
            "do this:\n1. read src/a.rs\n2. then src/b.rs\n3. run version 1.2.3",
            "- https://a.example/x.html\n- https://b.example/y.html\n- https://c.example/z.html",
        ] {
            assert_eq!(reason_for_agent(instruction, 4, 0), None, "{instruction}");
        }
    }

    #[test]
    fn files_that_do_not_fit_and_lists_of_places_are_for_the_agent() {
        assert_eq!(
            reason_for_agent("fix it", 4, 1).unwrap(),
            "1 of the 4 files that matter do not fit into the context (`dev.contextBytes`)"
        );
        let list =
            "Rename the option:\n- in crates/cli/src/args.rs\n* `docs/usage.md`\n3. and setup.py";
        assert_eq!(
            reason_for_agent(list, 1, 0).unwrap(),
            "the instruction lists changes in 3 places"
        );
    }
}
