//! Places of a file that an instruction points at: names that are defined there, and lines of a
//! stack trace.

use std::{collections::HashSet, ops::Range};

use crate::{symbols, words};

/// What a unit gains that defines a name of the instruction, as a share of the best score,
const NAMED: f32 = 0.6;
/// if the name could also be a word,
const WORD: f32 = 0.15;
/// and one that a stack trace goes through.
const TRACED: f32 = 0.5;
/// A name without capitals and underscores that is this long is no usual word.
const LONG: usize = 10;

/// What an instruction mentions of one file.
pub(crate) struct Mentioned<'i> {
    names: HashSet<&'i [u8]>,
    /// From 1.
    traced: Vec<usize>,
}

impl<'i> Mentioned<'i> {
    pub(crate) fn read(path: &str, instruction: &'i str) -> Self {
        let names = words::identifiers(instruction.as_bytes());
        Self {
            names: names.map(|(_, name)| name).collect(),
            traced: traced(path, instruction),
        }
    }

    /// What lines gain by it; `place` is where they are in the file.
    pub(crate) fn share(&self, lines: &[&str], place: &Range<usize>) -> f32 {
        let mut share: f32 = 0.0;
        for line in lines {
            symbols::definitions(line.as_bytes(), |_, name| {
                if self.names.contains(name) {
                    share = share.max(if is_distinct(name) { NAMED } else { WORD });
                }
            });
        }
        let is_traced = self.traced.iter().any(|line| place.contains(&(line - 1)));
        share + if is_traced { TRACED } else { 0.0 }
    }
}

/// Whether a name is spelled as no word is.
fn is_distinct(name: &[u8]) -> bool {
    name.len() >= LONG || name.contains(&b'_') || name.iter().skip(1).any(u8::is_ascii_uppercase)
}

/// The lines after the name of the file: `File "a/b.py", line 12`, `b.js:12:7`, `b.rb:12:in`.
fn traced(path: &str, instruction: &str) -> Vec<usize> {
    let base = path.rsplit('/').next().unwrap_or(path);
    let mut found = Vec::new();
    for (at, _) in instruction.match_indices(base) {
        let rest = &instruction[at + base.len()..];
        let rest = rest.trim_start_matches(['"', '\'', ',', ' ', '`', ')']);
        let number = ["line ", ":", "#L", "(", "L"]
            .iter()
            .find_map(|mark| rest.strip_prefix(mark));
        let digits: String = number
            .unwrap_or_default()
            .chars()
            .take_while(char::is_ascii_digit)
            .take(7)
            .collect();
        found.extend(digits.parse::<usize>().ok().filter(|line| *line > 0));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_stack_trace_are_those_of_the_file() {
        let text = "  File \"/usr/lib/a/store.py\", line 12, in get\n  at run (x/store.py:40:7)\n\
                    see store.py#L7 and other.py:99, store.py alone, store.py:0";
        assert_eq!(traced("a/store.py", text), [12, 40, 7]);
    }

    #[test]
    fn a_name_that_is_defined_counts_more_than_a_word() {
        let mentioned = Mentioned::read("a.py", "fix `get_user` and get, a.py:31");
        let share = |line: &str, first: usize| mentioned.share(&[line], &(first..first + 1));
        assert_eq!(share("def get_user(x):", 0), NAMED);
        assert_eq!(share("def get(x):", 0), WORD);
        assert_eq!(share("get_user(1)", 0), 0.0);
        assert_eq!(share("pass", 30), TRACED);
    }
}
