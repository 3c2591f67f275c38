//! The ladder: how loosely lines are compared, and where a run of lines is found.
//!
//! Each rung is a function from a line to a key; two lines are the same on a rung if their keys
//! are. The rungs are tried from the tightest to the loosest. The first on which the text occurs
//! decides: one place is the answer, several are ambiguous, and a looser rung could only add more.

use std::{borrow::Cow, collections::HashMap, fmt};

use serde::{Deserialize, Serialize};

use super::{
    blanks::collapsed,
    lines::{Line, indentation, is_blank, trim, trim_end},
};

/// How closely the text that was found agrees with the text that was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The same, line by line.
    Exact,
    /// The same but for line endings and white space at line ends.
    TrailingSpace,
    /// The same but for tabs where the other has spaces in the indentation.
    TabsAndSpaces,
    /// The same but for the indentation.
    Trimmed,
    /// The same but for the indentation and for typographic quotes, dashes and spaces.
    Punctuation,
    /// All of this, and runs of blanks within lines that are longer or shorter.
    InnerBlanks,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::TrailingSpace => "white space at line ends ignored",
            Self::TabsAndSpaces => "tabs and spaces of the indentation equivalent",
            Self::Trimmed => "indentation ignored",
            Self::Punctuation => "typographic punctuation equivalent",
            Self::InnerBlanks => "runs of blanks within lines equivalent",
        })
    }
}

/// Where a run of lines is. Lines count from 0.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nowhere,
    Once { rung: Rung, at: usize },
    Often { rung: Rung, at: Vec<usize> },
}

/// Tab widths under which tabs and spaces may turn out to be the same indentation. All of them are
/// tried, and the places found under any of them count together, so that two widths which disagree
/// are ambiguous.
const TAB_WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// The tightest rung on which `wanted` occurs in `file`, and where.
pub(super) fn find(file: &[Line<'_>], wanted: &[&str]) -> Found {
    for rung in [
        Rung::Exact,
        Rung::TrailingSpace,
        Rung::TabsAndSpaces,
        Rung::Trimmed,
        Rung::Punctuation,
        Rung::InnerBlanks,
    ] {
        let at = places(file, wanted, rung);
        match at.as_slice() {
            [] => {}
            &[at] => return Found::Once { rung, at },
            _ => return Found::Often { rung, at },
        }
    }
    Found::Nowhere
}

fn places(file: &[Line<'_>], wanted: &[&str], rung: Rung) -> Vec<usize> {
    let by = |key: fn(&str) -> Key<'_>| occurrences(file, wanted, key);
    match rung {
        Rung::Exact => by(|line| Key::text(line)),
        Rung::TrailingSpace => by(|line| Key::text(trim_end(line))),
        Rung::TabsAndSpaces => tab_equivalent(file, wanted),
        Rung::Trimmed => by(|line| Key::text(trim(line))),
        Rung::Punctuation => by(|line| Key {
            column: 0,
            text: plain_punctuation(line),
        }),
        Rung::InnerBlanks => by(|line| Key {
            column: 0,
            text: collapsed(plain_punctuation(line)),
        }),
    }
}

/// Where neither side has a tab in an indentation there is nothing to convert, and the rung finds
/// nothing. Blank lines are equal whatever white space they have.
fn tab_equivalent(file: &[Line<'_>], wanted: &[&str]) -> Vec<usize> {
    let tabbed = |line: &str| indentation(line).contains('\t');
    if !wanted.iter().any(|line| tabbed(line)) && !file.iter().any(|line| tabbed(line.text)) {
        return Vec::new();
    }
    let mut all: Vec<usize> = TAB_WIDTHS
        .iter()
        .flat_map(|&width| {
            occurrences(file, wanted, move |line| Key {
                column: if is_blank(line) {
                    0
                } else {
                    column(indentation(line), width)
                },
                text: Cow::Borrowed(trim(line)),
            })
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What two lines must share to count as the same. `column` is 0 on every rung but the one for
/// tabs.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a> {
    column: usize,
    text: Cow<'a, str>,
}

impl<'a> Key<'a> {
    fn text(text: &'a str) -> Self {
        Self {
            column: 0,
            text: Cow::Borrowed(text),
        }
    }
}

/// Every place, overlapping ones too, where the keys of `wanted` occur in a row. Linear: lines
/// become numbers, and numbers are searched by Knuth, Morris and Pratt's automaton.
fn occurrences<'a>(
    file: &[Line<'a>],
    wanted: &[&'a str],
    key: impl Fn(&'a str) -> Key<'a>,
) -> Vec<usize> {
    const ELSEWHERE: usize = usize::MAX;
    if wanted.is_empty() || wanted.len() > file.len() {
        return Vec::new();
    }
    let mut numbers = HashMap::new();
    let pattern: Vec<usize> = wanted
        .iter()
        .map(|line| {
            let next = numbers.len();
            *numbers.entry(key(line)).or_insert(next)
        })
        .collect();
    let fallback = borders(&pattern);
    let mut matched = 0;
    let mut found = Vec::new();
    for (index, line) in file.iter().enumerate() {
        let number = numbers.get(&key(line.text)).copied().unwrap_or(ELSEWHERE);
        while matched > 0 && pattern[matched] != number {
            matched = fallback[matched - 1];
        }
        if pattern[matched] == number {
            matched += 1;
        }
        if matched == pattern.len() {
            found.push(index + 1 - matched);
            matched = fallback[matched - 1];
        }
    }
    found
}

/// For each prefix, the length of its longest proper border.
fn borders(pattern: &[usize]) -> Vec<usize> {
    let mut borders = vec![0; pattern.len()];
    let mut length = 0;
    for index in 1..pattern.len() {
        while length > 0 && pattern[length] != pattern[index] {
            length = borders[length - 1];
        }
        if pattern[length] == pattern[index] {
            length += 1;
        }
        borders[index] = length;
    }
    borders
}

/// The column where text after `indent` stands, tabs being `width` wide.
fn column(indent: &str, width: usize) -> usize {
    indent.bytes().fold(0, |column, byte| {
        if byte == b'\t' {
            (column / width + 1) * width
        } else {
            column + 1
        }
    })
}

/// Typographic quotes, dashes and spaces as ASCII ones, trimmed. Each character maps to one
/// character, so words are never joined or split.
fn plain_punctuation(line: &str) -> Cow<'_, str> {
    if line.is_ascii() {
        return Cow::Borrowed(trim(line));
    }
    let plain: String = line
        .chars()
        .map(|c| match c {
            '\u{2018}'..='\u{201b}' | '\u{2032}' => '\'',
            '\u{201c}'..='\u{201f}' | '\u{2033}' => '"',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
            other => other,
        })
        .collect();
    Cow::Owned(trim(&plain).to_owned())
}

#[cfg(test)]
mod tests {
    use super::{super::lines::file_lines, *};

    #[test]
    fn overlapping_places_are_all_found() {
        let file = file_lines("a\na\na\nb\na\na\n");
        assert_eq!(
            find(&file, &["a", "a"]),
            Found::Often {
                rung: Rung::Exact,
                at: vec![0, 1, 4]
            }
        );
    }

    #[test]
    fn a_tab_counts_as_the_spaces_it_stands_for() {
        let file = file_lines("\tif x {\n\t\ty();\n\t}\n");
        assert_eq!(
            find(&file, &["    if x {", "        y();", "    }"]),
            Found::Once {
                rung: Rung::TabsAndSpaces,
                at: 0
            }
        );
    }

    #[test]
    fn a_looser_rung_is_not_tried_when_a_tighter_one_is_ambiguous() {
        let file = file_lines("x\n  x\nx\n");
        assert_eq!(
            find(&file, &["x"]),
            Found::Often {
                rung: Rung::Exact,
                at: vec![0, 2]
            }
        );
        assert_eq!(
            find(&file, &["  x"]),
            Found::Once {
                rung: Rung::Exact,
                at: 1
            }
        );
    }
}
