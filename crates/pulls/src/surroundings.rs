//! The code around a line, by its layout alone: the function or class that encloses it, and the
//! outline of a file. Works on any language that indents its blocks; where the layout misleads, a
//! reader sees too little or too much, nothing else.

use std::ops::RangeInclusive;

/// How far up a definition is looked for.
const MOST_UP: usize = 2_000;
const MOST_ENTRIES: usize = 80;
const MOST_ENTRY: usize = 120;

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

/// The lines of the innermost function or class that a line (counted from 1) is in, or begins.
pub(crate) fn enclosing(lines: &[&str], at: u32) -> Option<RangeInclusive<u32>> {
    let at = usize::try_from(at).ok()?.checked_sub(1)?;
    let line = lines.get(at)?;
    if is_definition(line) {
        return numbers(at, end_of(lines, at).max(at));
    }
    let nearest = lines[..=at].iter().rev().find(|line| !is_blank(line))?;
    let mut level = reach(nearest);
    for index in (at.saturating_sub(MOST_UP)..at).rev() {
        let line = lines[index];
        if is_blank(line) || is_remark(line) || indent(line) >= level {
            continue;
        }
        let end = end_of(lines, index);
        if is_definition(line) && end >= at {
            return numbers(index, end);
        }
        level = reach(line);
    }
    None
}

/// A line to the left of this column may begin what the line is in. The line that ends a signature
/// of several lines is as far to the left as its first one.
fn reach(line: &str) -> usize {
    indent(line) + usize::from(is_continuation(line))
}

/// Definitions with their lines, counted from 1.
pub(crate) fn outline(lines: &[&str]) -> Vec<(u32, String)> {
    let defined = (1_u32..).zip(lines).filter(|(_, line)| is_definition(line));
    defined
        .take(MOST_ENTRIES)
        .map(|(number, line)| (number, line.trim_end().chars().take(MOST_ENTRY).collect()))
        .collect()
}

/// What a line defines: a name, with the word before it where that is no function.
pub(crate) fn name_of(line: &str) -> Option<String> {
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

fn numbers(from: usize, to: usize) -> Option<RangeInclusive<u32>> {
    Some(u32::try_from(from + 1).ok()?..=u32::try_from(to + 1).ok()?)
}

/// The last line of the block that a line begins.
fn end_of(lines: &[&str], start: usize) -> usize {
    let level = indent(lines[start]);
    let mut last = start;
    for (index, line) in lines.iter().enumerate().skip(start + 1) {
        if is_blank(line) {
            continue;
        }
        if indent(line) > level || is_continuation(line) && opens(line) {
            last = index;
            continue;
        }
        let closes = line.trim_start().starts_with(['}', ')', ']']) || line.trim() == "end";
        let is_own = closes && indent(line) == level;
        return if is_own { index } else { last };
    }
    last
}

/// Goes on with what the line to the left above it began.
fn is_continuation(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['{', '}', ')', ']']) || line == "where" || line.starts_with("where ")
}

/// Something follows that belongs to it.
fn opens(line: &str) -> bool {
    line.trim_end().ends_with(['{', ':', '(', ',', '[']) || line.trim() == "where"
}

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

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Preprocessor lines and comments stand in the first column wherever they are.
fn is_remark(line: &str) -> bool {
    line.starts_with("//") || line.starts_with('#') && !line.starts_with("#[")
}

/// Columns of white space.
fn indent(line: &str) -> usize {
    let white = line.chars().take_while(|c| c.is_whitespace());
    white.map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = "use x;\n\nimpl A {\n    #[test]\n    pub fn one(\n        a: u8,\n    ) -> u8 {\n        if a > 1 {\n            2\n        } else {\n            3\n        }\n    }\n\n    fn two() {}\n}\n\nstatic X: u8 = 1;\n";
    const PYTHON: &str = "import x\n\nclass A:\n    def one(self):\n        for y in x:\n            y()\n\n        return 1\n\n    def two(self):\n        pass\n\nx = 1\n";

    fn around(text: &str, at: u32) -> Option<(u32, u32)> {
        let lines: Vec<&str> = text.lines().collect();
        enclosing(&lines, at).map(|range| (*range.start(), *range.end()))
    }

    #[test]
    fn the_innermost_function_or_class_is_found_by_layout() {
        for at in [5, 6, 7, 8, 9, 10, 11, 12] {
            assert_eq!(around(RUST, at), Some((5, 13)), "{at}");
        }
        assert_eq!(around(RUST, 15), Some((15, 15)));
        assert_eq!(around(RUST, 14), Some((3, 16)));
        assert_eq!(around(RUST, 18), None);
        for at in [4, 5, 6, 7, 8] {
            assert_eq!(around(PYTHON, at), Some((4, 8)), "{at}");
        }
        assert_eq!(around(PYTHON, 11), Some((10, 11)));
        assert_eq!(around(PYTHON, 13), None);
        let script =
            "const f = (a) => {\n  return a\n}\nint main(void)\n{\n#if X\n\treturn 1;\n#endif\n}\n";
        assert_eq!(around(script, 2), Some((1, 3)));
        assert_eq!(
            around("func (s *S) Do(x int) error {\n\treturn nil\n}\n", 2),
            Some((1, 3))
        );
        assert_eq!(around("", 1), None);
        assert_eq!(around("x\n", 99), None);
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
