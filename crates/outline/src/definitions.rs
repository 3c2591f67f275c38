//! The function or class that a line is in, what it is called, and the outline of a file.
//!
//! A definition is a block whose header reads like one in some language. Where that misleads, a
//! reader sees too little or too much, nothing else.
//!
//! Used where a change is shown: a review shows the function around a changed line, a pull request
//! names the functions that were changed.

use std::{collections::BTreeSet, ops::RangeInclusive};

use crate::blocks::{self, CodeBlock};

/// Of an outline; further definitions are left out without a word.
const MOST_ENTRIES: usize = 80;
/// Characters of a line of it.
const MOST_ENTRY: usize = 120;
/// Lines of a header that are looked at.
const HEADER_LINES: usize = 20;

/// Words before the one that says what is defined.
const MODIFIERS: &[&str] = &[
    "pub",
    "export",
    "default",
    "async",
    "static",
    "public",
    "private",
    "protected",
    "internal",
    "abstract",
    "final",
    "override",
    "virtual",
    "inline",
    "const",
    "unsafe",
    "extern",
    "open",
    "suspend",
    "data",
    "sealed",
    "partial",
    "readonly",
    "declare",
    "local",
];
/// A line that begins with one of these, after modifiers, defines what follows. `let`, `const` and
/// `var` are handled apart: they define a function only if one is assigned.
const DEFINING: &[&str] = &[
    "fn",
    "def",
    "defp",
    "class",
    "func",
    "function",
    "interface",
    "struct",
    "enum",
    "trait",
    "impl",
    "module",
    "defmodule",
    "mod",
    "namespace",
    "type",
    "object",
    "protocol",
    "extension",
    "union",
    "macro_rules!",
    "sub",
    "record",
];
/// What opens a block and defines nothing.
const CONTROL: &[&str] = &[
    "if", "else", "for", "while", "switch", "match", "try", "catch", "return", "do", "with",
    "loop", "elif", "unless", "case", "foreach", "using", "lock", "finally", "}",
];

/// The functions and classes of a text, found once.
pub struct Definitions {
    outermost: Vec<Definition>,
    /// Those of a single line. In ascending order, for a binary search.
    single: Vec<u32>,
}

struct Definition {
    /// From 1, both ends included.
    lines: RangeInclusive<u32>,
    inner: Vec<Definition>,
}

impl Definitions {
    /// The path tells the language.
    pub fn of(path: &str, lines: &[&str]) -> Self {
        let outermost = defined(lines, &blocks::find(path, lines));
        let mut begun = BTreeSet::new();
        note_first(&outermost, &mut begun);
        let numbered = (1_u32..).zip(lines);
        let single = numbered.filter(|(at, line)| is_definition(line) && !begun.contains(at));
        Self {
            single: single.map(|(at, _)| at).collect(),
            outermost,
        }
    }

    /// The lines of the innermost function or class that a line (counted from 1) is in, or begins.
    /// `None` for a line between definitions. A comment above a definition is not in it.
    pub fn enclosing(&self, at: u32) -> Option<RangeInclusive<u32>> {
        if self.single.binary_search(&at).is_ok() {
            return Some(at..=at);
        }
        let mut found = None;
        let mut inner = &self.outermost;
        while let Some(next) = inner.iter().find(|one| one.lines.contains(&at)) {
            found = Some(next.lines.clone());
            inner = &next.inner;
        }
        found
    }
}

fn note_first(definitions: &[Definition], begun: &mut BTreeSet<u32>) {
    for one in definitions {
        begun.insert(*one.lines.start());
        note_first(&one.inner, begun);
    }
}

/// Blocks that define nothing leave what is in them to the one around them.
fn defined(lines: &[&str], blocks: &[CodeBlock]) -> Vec<Definition> {
    let mut all = Vec::new();
    for block in blocks {
        let inner = defined(lines, &block.inner);
        match numbers(lines, block) {
            Some(lines) => all.push(Definition { lines, inner }),
            None => all.extend(inner),
        }
    }
    all
}

/// The lines of a block that defines something, without the blank ones at its end.
fn numbers(lines: &[&str], block: &CodeBlock) -> Option<RangeInclusive<u32>> {
    let header = lines.get(block.header..=block.opening)?;
    let header: Vec<&str> = header
        .iter()
        .take(HEADER_LINES)
        .map(|line| line.trim())
        .collect();
    if !is_definition(&header.join(" ")) {
        return None;
    }
    let body = lines.get(block.header..block.end)?;
    let length = body.iter().rposition(|line| !line.trim().is_empty())?;
    let first = u32::try_from(block.header + 1).ok()?;
    Some(first..=first + u32::try_from(length).ok()?)
}

/// Definitions with their lines, counted from 1. Line by line, without blocks, so a signature over
/// several lines is shown by its first. The indentation stays: it tells what is in what.
pub fn outline(lines: &[&str]) -> Vec<(u32, String)> {
    let defined = (1_u32..).zip(lines).filter(|(_, line)| is_definition(line));
    defined
        .take(MOST_ENTRIES)
        .map(|(number, line)| (number, line.trim_end().chars().take(MOST_ENTRY).collect()))
        .collect()
}

/// What a line defines: a name, with the word before it where that is no function. The line is one
/// that `Definitions` found, by its first line. `None` where no name can be read off.
pub fn name_of(line: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '#');
    let words: Vec<&str> = line
        .split(|c: char| !is_word(c))
        // `pub(crate)` is a modifier of two words.
        .filter(|word| !word.is_empty() && !MODIFIERS.contains(word) && *word != "crate")
        .collect();
    match words[..] {
        ["fn" | "def" | "defp" | "function" | "sub", name, ..] => Some(name.to_owned()),
        ["func", ..] => {
            // A receiver stands before the name: `func (s *Shop) Open(…`.
            let rest = line.trim_start().trim_start_matches("func").trim_start();
            let rest = match rest.strip_prefix('(') {
                Some(rest) => rest.split_once(')')?.1,
                None => rest,
            };
            let name = rest
                .split(|c: char| !is_word(c))
                .find(|word| !word.is_empty())?;
            Some(name.to_owned())
        }
        [word, name, ..] if DEFINING.contains(&word) => match word {
            "impl" => Some(line.trim().trim_end_matches('{').trim().to_owned()),
            _ => Some(format!("{word} {name}")),
        },
        ["let" | "var", name, ..] => Some(name.to_owned()),
        // `int main(…`: the last word before the parameters.
        _ => {
            let before = line.split_once('(')?.0;
            let before = before.split_once('=').map_or(before, |(name, _)| name);
            let name = before
                .split(|c: char| !is_word(c))
                .rfind(|word| !word.is_empty())?;
            Some(name.to_owned())
        }
    }
}

/// A heuristic over all languages at once. It accepts more than it should (a macro call with a
/// block) and misses what has no keyword and no parentheses; both are borne.
fn is_definition(line: &str) -> bool {
    let line = line.trim();
    let mut words = line.split_whitespace().map(|word| {
        let word = word.split_once('(').map_or(word, |(before, _)| before);
        let word = word.split_once('<').map_or(word, |(before, _)| before);
        word.trim_end_matches(['*', ':', '{'])
    });
    let Some(word) = words.find(|word| !MODIFIERS.contains(word) && !word.starts_with('"')) else {
        return false;
    };
    if DEFINING.contains(&word) {
        return words.next().is_some() || line.contains('(') || word == "impl";
    }
    if CONTROL.contains(&word) || line.starts_with(['}', ')', '#', '/', '*', '@']) {
        return false;
    }
    let is_value = ["const ", "let ", "var ", "export const "];
    if is_value.iter().any(|start| line.starts_with(start)) {
        return line.ends_with("=> {") || line.contains("= function");
    }
    // `int main(int argc) {`, `render() {`; a call has a semicolon or a comma behind it.
    line.ends_with('{') && line.contains('(') && !line.contains('=') && line.contains(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = "use x;\n\nimpl A {\n    #[test]\n    pub fn one(\n        a: u8,\n    ) -> u8 {\n        if a > 1 {\n            2\n        } else {\n            3\n        }\n    }\n\n    fn two() {}\n}\n\nstatic X: u8 = 1;\n";
    const PYTHON: &str = "import x\n\nclass A:\n    def one(self):\n        for y in x:\n            y()\n\n        return 1\n\n    def two(self):\n        pass\n\nx = 1\n";

    fn around(path: &str, text: &str, at: u32) -> Option<(u32, u32)> {
        let lines: Vec<&str> = text.lines().collect();
        let found = Definitions::of(path, &lines).enclosing(at);
        found.map(|range| (*range.start(), *range.end()))
    }

    #[test]
    fn the_innermost_function_or_class_is_found() {
        for at in 5..=13 {
            assert_eq!(around("a.rs", RUST, at), Some((5, 13)), "{at}");
        }
        assert_eq!(around("a.rs", RUST, 15), Some((15, 15)));
        assert_eq!(around("a.rs", RUST, 14), Some((3, 16)));
        assert_eq!(around("a.rs", RUST, 18), None);
        for at in [4, 5, 6, 7, 8] {
            assert_eq!(around("a.py", PYTHON, at), Some((4, 8)), "{at}");
        }
        assert_eq!(around("a.py", PYTHON, 11), Some((10, 11)));
        assert_eq!(around("a.py", PYTHON, 13), None);
        let script = "const f = (a) => {\n  return a\n}\n";
        assert_eq!(around("a.js", script, 2), Some((1, 3)));
        let c = "int main(void)\n{\n#if X\n\treturn 1;\n#endif\n}\n";
        assert_eq!(around("a.c", c, 4), Some((1, 6)));
        let go = "func (s *S) Do(x int) error {\n\treturn nil\n}\n";
        assert_eq!(around("a.go", go, 2), Some((1, 3)));
        assert_eq!(around("", "", 1), None);
        assert_eq!(around("a", "x\n", 99), None);
    }

    #[test]
    fn a_brace_in_a_string_and_a_line_at_the_margin_end_nothing() {
        let text =
            "fn a() {\n    let x = \"}\";\n    let y = r#\"\nat the margin\n\"#;\n    b(x, y)\n}\n";
        for at in 1..=7 {
            assert_eq!(around("a.rs", text, at), Some((1, 7)), "{at}");
        }
    }

    #[test]
    fn a_definition_is_named_as_people_would() {
        for (line, name) in [
            ("    pub(crate) async fn read(&self) {", "read"),
            ("def two(self):", "two"),
            ("export default function render(a) {", "render"),
            ("func (s *Shop) Open(x int) error {", "Open"),
            ("func Open(x int) error {", "Open"),
            ("class Shop(Base):", "class Shop"),
            ("impl Trait for Shop {", "impl Trait for Shop"),
            ("  const load = async (id) => {", "load"),
            ("static int main(int argc, char **argv) {", "main"),
            ("  render() {", "render"),
        ] {
            assert_eq!(name_of(line).as_deref(), Some(name), "{line}");
        }
    }

    #[test]
    fn an_outline_lists_definitions_with_their_lines() {
        let lines: Vec<&str> = RUST.lines().collect();
        let found = outline(&lines);
        let found: Vec<(u32, &str)> = found
            .iter()
            .map(|(at, text)| (*at, text.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                (3, "impl A {"),
                (5, "    pub fn one("),
                (15, "    fn two() {}")
            ]
        );
    }
}
