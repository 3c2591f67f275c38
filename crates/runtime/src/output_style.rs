//! Output styles: how the agent of a session speaks and works, in a markdown file.
//!
//! `output-styles/NAME.md` in `.codespar` or `.claude` of the user or the project; the setting
//! `outputStyle` names one. Those of the user come first, so that a repository cannot put its own in
//! the place of one that the user chose. Without `keep-coding-instructions: true` the text stands in
//! the place of our own about who the agent is.

use codespar_tools::{files::read_text, frontmatter};

use crate::{ProjectDir, ProjectOptions};

/// A style is a page or two.
const MAX_BYTES: u64 = 64 * 1024;
/// The field that says whether a style adds to our own words.
const KEEPS: &str = "keep-coding-instructions";
/// The style that is none.
const USUAL: &str = "default";

/// A style that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputStyle {
    pub name: String,
    pub text: String,
    /// Whether it adds to our own words or replaces them.
    pub adds: bool,
}

impl OutputStyle {
    /// The style of this name, by the field `name` or the name of the file; case does not count.
    /// `None` for the usual one. The error lists those there are.
    pub(crate) fn find(
        dir: &ProjectDir,
        options: &ProjectOptions,
        name: &str,
    ) -> Result<Option<Self>, String> {
        if name.eq_ignore_ascii_case(USUAL) {
            return Ok(None);
        }
        let mut known = Vec::new();
        for style in Self::all(dir, options) {
            if style.name.eq_ignore_ascii_case(name) {
                return Ok(Some(style));
            }
            known.push(style.name);
        }
        Err(match known.is_empty() {
            true => format!("there is no output style `{name}`"),
            false => format!(
                "there is no output style `{name}`; there are: {}",
                known.join(", ")
            ),
        })
    }

    /// The names of all there are, the usual one first.
    pub fn names(dir: &ProjectDir, options: &ProjectOptions) -> Vec<String> {
        let mut names = vec![USUAL.to_owned()];
        for style in Self::all(dir, options) {
            if !names
                .iter()
                .any(|name| style.name.eq_ignore_ascii_case(name))
            {
                names.push(style.name);
            }
        }
        names
    }

    /// Those of the user first.
    fn all(dir: &ProjectDir, options: &ProjectOptions) -> impl Iterator<Item = Self> {
        let mut dirs: Vec<_> = options.wanted_dirs(dir, "output-styles").collect();
        dirs.sort_by_key(|(_, origin)| *origin != "user");
        let files = dirs
            .into_iter()
            .flat_map(|(dir, _)| crate::trust::nested_files(&dir, "md"));
        files.filter_map(|path| {
            let text = read_text(&path, MAX_BYTES).ok()?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            Some(Self::parse(&text, &stem))
        })
    }

    fn parse(text: &str, stem: &str) -> Self {
        let (fields, body) = match frontmatter::parse_loosely(text, &["name", KEEPS]) {
            Ok((fields, body, _)) => (fields, body),
            Err(_) => (frontmatter::Fields::new(), text),
        };
        let name = fields.get("name").and_then(|name| name.as_str());
        let keeps = fields.get(KEEPS);
        Self {
            name: name.unwrap_or(stem).to_owned(),
            text: body.trim().to_owned(),
            adds: keeps.is_some_and(|keeps| keeps == true || keeps == "true"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_has_a_name_and_says_whether_it_adds() {
        let style = OutputStyle::parse(
            "---\nname: Terse\nkeep-coding-instructions: true\n---\nBe short.",
            "x",
        );
        assert_eq!((style.name.as_str(), style.adds), ("Terse", true));
        let plain = OutputStyle::parse("Be short.", "terse");
        assert_eq!(
            (plain.name.as_str(), plain.text.as_str(), plain.adds),
            ("terse", "Be short.", false)
        );
    }
}
