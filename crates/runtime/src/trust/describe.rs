//! What people are told about the trust of a project.
//!
//! Names, grants and differences are texts of the repository: they are made printable before they
//! are shown. The notice is also shortened; the details are complete.

use super::{ProjectFile, ProjectTrust, Standing, grants::one_line};
use codespar_policy::printable;

/// So many files are named in the one line; `codespar trust show` has all.
const NAMED: usize = 4;
/// And so much is said of each.
const LONGEST: usize = 160;

impl ProjectTrust {
    /// One line about what is ignored and how to change that; nothing if nothing is ignored. Used
    /// where nobody can be asked, and by `codespar doctor`.
    pub fn notice(&self) -> Option<String> {
        let ignored = self.ignored();
        if ignored.is_empty() {
            return None;
        }
        let named = ignored.iter().take(NAMED).map(|file| {
            let name = one_line(&file.name);
            format!("{name} ({})", cut(&file.grants.join("; ")))
        });
        let mut named: Vec<String> = named.collect();
        if let more @ 1.. = ignored.len().saturating_sub(NAMED) {
            named.push(format!("{more} more"));
        }
        let is_changed = |file: &&ProjectFile| matches!(file.standing, Standing::Changed(_));
        let why = if ignored.iter().any(is_changed) {
            "has changed since you decided about it"
        } else {
            "is not trusted"
        };
        let root = one_line(&self.root.display().to_string());
        let quoted = quoted(&root);
        let this_run = if self.is_home {
            ""
        } else {
            " (or --trust for this run)"
        };
        Some(format!(
            "{root} {why}: ignored {}; to use them: codespar trust add {quoted}{this_run}; details: \
             codespar trust show",
            named.join(", ")
        ))
    }

    /// Each file that grants something, and the difference where it has changed.
    pub fn details(&self) -> String {
        describe(self.files().iter().filter(|file| !file.grants.is_empty()))
    }

    /// The same for those files only that are ignored.
    pub fn details_of_ignored(&self) -> String {
        describe(self.ignored().into_iter())
    }
}

fn describe<'a>(files: impl Iterator<Item = &'a ProjectFile>) -> String {
    let mut out = String::new();
    for file in files {
        let state = match &file.standing {
            Standing::Trusted => "trusted",
            Standing::Declined => "declined",
            Standing::Changed(_) => "changed",
            Standing::New | Standing::NeedsNone => "not trusted",
        };
        out.push_str(&format!("{}  {state}\n", one_line(&file.name)));
        for grant in &file.grants {
            out.push_str(&format!("  {grant}\n"));
        }
        if let Some(diff) = file.difference() {
            out.push_str(&diff);
        }
    }
    out
}

/// A path as a shell takes it. The command in the notice can be copied as it is.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if path.chars().all(is_plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

/// In characters, so that no character is split.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

impl ProjectFile {
    /// How a changed file differs from what was decided about, as a unified diff.
    pub fn difference(&self) -> Option<String> {
        let (Standing::Changed(before), Ok(now)) = (&self.standing, &self.text) else {
            return None;
        };
        let name = one_line(&self.name);
        let text = codespar_tools::unified_diff(&name, before, now);
        Some(printable(&text).into_owned())
    }
}
