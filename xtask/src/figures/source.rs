//! One source file, read line by line. The sources are formatted, so the end of an item is the line
//! with its brace at the indentation of its beginning.
//!
//! The text is not parsed. A wrong guess about the end of an item would make a figure a little
//! wrong, nothing else; that is worth less than a dependency on a parser.

use std::path::{Path, PathBuf};

/// What is counted of a file, without its tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// All lines, also blank ones and comments.
    pub(super) lines: usize,
    pub(super) code: usize,
    pub(super) docs: usize,
    pub(super) functions: Vec<Function>,
    /// Public types and traits.
    pub(super) names: Vec<String>,
    /// Doc comments that say no more than the name below them.
    pub(super) fillers: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) lines: usize,
}

/// Words that add nothing to a name. A comment that has only these and words of the name is
/// reported.
const EMPTY_WORDS: [&str; 20] = [
    "a", "an", "the", "its", "it", "is", "of", "to", "this", "that", "these", "which", "what",
    "who", "why", "how", "where", "in", "for", "one",
];

const TYPES: [&str; 4] = ["struct", "enum", "trait", "type"];

impl Source {
    /// `path` is for messages. Modules under `#[cfg(test)]` are skipped with all their lines.
    pub(super) fn read(path: &Path, text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        let mut source = Self {
            path: path.to_path_buf(),
            ..Self::default()
        };
        let mut at = 0;
        let mut doc = String::new();
        while let Some(line) = lines.get(at) {
            if line.trim() == "#[cfg(test)]"
                && let Some(end) = module_end(&lines, at + 1)
            {
                at = end + 1;
                continue;
            }
            source.count(line.trim(), &mut doc);
            if let Some(name) = function_name(line) {
                source.functions.push(Function {
                    name: name.to_owned(),
                    line: at + 1,
                    lines: end_of(&lines, at) - at + 1,
                });
            }
            at += 1;
        }
        source
    }

    /// `doc` collects the comment above the next item. Attributes between the two do not end it.
    fn count(&mut self, line: &str, doc: &mut String) {
        self.lines += 1;
        if let Some(text) = line.strip_prefix("///") {
            self.docs += 1;
            doc.push_str(text);
            return;
        }
        if line.starts_with("//!") {
            self.docs += 1;
            return;
        }
        if line.is_empty() || line.starts_with("//") {
            return;
        }
        self.code += 1;
        if line.starts_with("#[") {
            return;
        }
        let doc = std::mem::take(doc);
        if !doc.is_empty() && repeats_name(&doc, line) {
            self.fillers.push(format!("{} ({})", doc.trim(), line));
        }
        self.names.extend(public_type(line).map(str::to_owned));
    }
}

/// The last line of the inline module that begins at `start`.
fn module_end(lines: &[&str], start: usize) -> Option<usize> {
    let begin = (start..lines.len()).find(|at| !lines[*at].trim().starts_with("#["))?;
    let line = lines[begin].trim();
    (line.contains("mod ") && line.ends_with('{')).then(|| end_of(lines, begin))
}

/// The last line of the item that begins at `start`. A signature over several lines may end at a
/// line that begins with `)`.
fn end_of(lines: &[&str], start: usize) -> usize {
    let indent = indent_of(lines[start]);
    for (at, line) in lines.iter().enumerate().skip(start) {
        let is_same = at == start || indent_of(line) == indent;
        let ends = line.ends_with(';') || line.ends_with('}');
        let continues = line.trim_start().starts_with([')', '{', ']']);
        if is_same && ends && (at == start || line.trim() == "}" || continues) {
            return at;
        }
    }
    lines.len() - 1
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The name of the function that a line begins.
fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub") {
        rest = match after.strip_prefix('(') {
            Some(scope) => scope.split_once(')')?.1,
            None => after,
        };
        rest = rest.trim_start();
    }
    for word in ["const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix("fn ")?;
    Some(&name[..name.find(['(', '<'])?])
}

/// Only `pub`, not `pub(crate)`: names within a crate may repeat.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let (kind, rest) = rest.split_once(' ')?;
    let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    TYPES.contains(&kind).then(|| name.into_iter().next())?
}

/// Whether every word of a comment is in the line it documents, or says nothing. The whole comment
/// must be so: one new word is enough to pass.
fn repeats_name(doc: &str, line: &str) -> bool {
    let known = words(line);
    words(doc)
        .iter()
        .all(|word| EMPTY_WORDS.contains(&word.as_str()) || known.contains(word))
}

/// The words of a text; `CamelCase` and `snake_case` are several, and an `s` at the end is dropped.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in text.chars() {
        if letter.is_uppercase() || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    let bare = |word: String| match word.strip_suffix('s') {
        Some(bare) if bare.len() > 2 => bare.to_owned(),
        _ => word,
    };
    words.into_iter().map(bare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//! A file.\n\n/// The name.\npub struct Name {\n    /// Which one of two.\n    \
                        side: Side,\n}\n\nimpl Name {\n    pub(crate) async fn one(\n        \
                        &self,\n    ) -> Result<()> {\n        if true {\n        }\n        \
                        Ok(())\n    }\n\n    fn two(&self) -> u8 { 2 }\n}\n\ntrait T {\n    fn \
                        three(&self);\n}\n\n#[cfg(test)]\nmod tests {\n    fn long() {\n    }\n}\n";

    #[test]
    fn functions_names_and_comments_are_found_and_tests_are_left_out() {
        let source = Source::read(Path::new("a.rs"), TEXT);
        let functions: Vec<(&str, usize, usize)> = source
            .functions
            .iter()
            .map(|one| (one.name.as_str(), one.line, one.lines))
            .collect();
        assert_eq!(
            functions,
            [("one", 10, 7), ("two", 18, 1), ("three", 22, 1)]
        );
        assert_eq!(source.names, ["Name"]);
        assert_eq!(source.fillers, ["The name. (pub struct Name {)"]);
        assert_eq!((source.lines, source.docs, source.code), (24, 3, 16));
    }
}
