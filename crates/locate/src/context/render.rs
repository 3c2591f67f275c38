//! The request in words: instruction, surroundings, files.

use std::fmt;

/// What a file is shown for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextKind {
    /// It probably has to change.
    Source,
    /// Tests that go with it.
    Test,
    /// How the project wants to be changed.
    Rules,
    Changelog,
}

/// A file as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownFile<'a> {
    pub path: &'a str,
    pub text: &'a str,
    pub kind: ContextKind,
    /// Lines are left out.
    pub is_partial: bool,
    /// There are marks in place of secrets.
    pub is_redacted: bool,
}

/// What a model is shown. Its text is what [`fmt::Display`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextText<'a> {
    pub instruction: &'a str,
    pub files: &'a [ShownFile<'a>],
    /// The directories, as [`super::tree`] writes them; may be empty.
    pub tree: &'a str,
    /// The command that tests a change.
    pub verify: Option<&'a str>,
    /// Files that seem to matter and that the budget did not reach.
    pub left_out: &'a [&'a str],
}

impl fmt::Display for ContextText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "<instruction>\n{}\n</instruction>",
            self.instruction.trim()
        )?;
        if !self.tree.is_empty() {
            write!(f, "\n<tree>\n{}</tree>\n", self.tree)?;
        }
        if let Some(command) = self.verify {
            writeln!(f, "\n<verify>{command}</verify>")?;
        }
        for kind in [
            ContextKind::Rules,
            ContextKind::Source,
            ContextKind::Test,
            ContextKind::Changelog,
        ] {
            for file in self.files.iter().filter(|file| file.kind == kind) {
                write_file(f, file)?;
            }
        }
        if !self.left_out.is_empty() {
            let paths = self.left_out.join("\n");
            write!(f, "\n<not_shown>\n{paths}\n</not_shown>\n")?;
        }
        if !self
            .files
            .iter()
            .any(|file| file.kind == ContextKind::Source)
        {
            f.write_str(
                "\nNo file of the repository seems to fit the instruction; new files can be made.\n",
            )?;
        }
        Ok(())
    }
}

fn write_file(f: &mut fmt::Formatter<'_>, file: &ShownFile<'_>) -> fmt::Result {
    let kind = match file.kind {
        ContextKind::Source => "",
        ContextKind::Test => " kind=\"tests\"",
        ContextKind::Rules => " kind=\"project instructions\"",
        ContextKind::Changelog => " kind=\"changelog\"",
    };
    let shown = match (file.is_partial, file.is_redacted) {
        (false, false) => "",
        (true, false) => " shown=\"in part; change it with SEARCH and REPLACE only\"",
        (_, true) => {
            " shown=\"without its secrets: `[redacted]` stands for each of them; change it with \
             SEARCH and REPLACE only, and have the same marks in both or leave them out\""
        }
    };
    let end = if file.text.ends_with('\n') { "" } else { "\n" };
    writeln!(
        f,
        "\n<file path=\"{}\"{kind}{shown}>\n{}{end}</file>",
        file.path, file.text
    )
}
