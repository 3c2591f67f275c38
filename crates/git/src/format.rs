//! How a repository is stored: the few facts of its configuration that git cannot do without.
//!
//! Read by ourselves, from the one file that git reads them from, without includes. The values
//! go into a configuration of our own; a mistake here cannot make git run anything.

use std::{io, path::Path};

use crate::{GitError, small};

/// A larger configuration file is an error, not read in part.
const CONFIG_BYTES: u64 = 4 << 20;

/// What a view has to have in common with its repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Format {
    /// `core.repositoryFormatVersion`; extensions need at least 1.
    version: u32,
    /// What the repository says of itself. A view is never bare by this, see [`Format::config`].
    pub(crate) is_bare: bool,
    /// `core.sharedRepository`: the mode of new files, in repositories that several users write to.
    shared: Option<String>,
    /// `core.logAllRefUpdates`; without it git's own default for the kind of repository is written
    /// out.
    log_all: Option<String>,
    /// Lower-case name and value.
    extensions: Vec<(String, String)>,
    /// Objects may be missing that a remote has promised.
    pub(crate) is_partial: bool,
}

impl Format {
    /// A missing file is an empty one. References in tables are refused: a view shares references
    /// by links to files.
    pub(crate) fn read(common_dir: &Path) -> Result<Self, GitError> {
        let file = common_dir.join("config");
        let text = match small::read(&file, CONFIG_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(GitError::file(file)(error)),
        };
        let format = Self::of(&String::from_utf8_lossy(&text));
        let unsupported = |reason: &str| GitError::Unsupported {
            path: common_dir.to_owned(),
            reason: reason.to_owned(),
        };
        match format.extension("refstorage") {
            None | Some("files") => Ok(format),
            Some(_) => Err(unsupported(
                "its references are not stored as files; convert it with `git refs migrate \
                 --ref-format=files`",
            )),
        }
    }

    /// What a configuration file says.
    pub(crate) fn of(text: &str) -> Self {
        let mut format = Self::default();
        for (key, value) in entries(text) {
            format.take(&key, value);
        }
        format
    }

    /// Takes over what describes storage and drops every other key. Extensions are kept by shape,
    /// not by name: git itself refuses those that it does not know.
    fn take(&mut self, key: &str, value: String) {
        let is_yes = || {
            !matches!(
                value.to_ascii_lowercase().as_str(),
                "false" | "no" | "off" | "0" | ""
            )
        };
        match key {
            "core.repositoryformatversion" => self.version = value.parse().unwrap_or_default(),
            "core.bare" => self.is_bare = is_yes(),
            "core.sharedrepository" => self.shared = plain(value),
            "core.logallrefupdates" => self.log_all = plain(value),
            // What it adds is in a file that a view does not have.
            "extensions.worktreeconfig" => {}
            "extensions.partialclone" => self.is_partial = true,
            _ => {
                if let Some(name) = key.strip_prefix("extensions.")
                    && let (Some(name), Some(value)) =
                        (plain(name.to_owned()), plain(value.clone()))
                {
                    self.extensions.retain(|(known, _)| *known != name);
                    self.extensions.push((name, value));
                } else if key.starts_with("remote.") && key.ends_with(".promisor") {
                    self.is_partial |= is_yes();
                }
            }
        }
    }

    fn extension(&self, name: &str) -> Option<&str> {
        let mut all = self.extensions.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// As the beginning of a configuration.
    pub(crate) fn config(&self) -> String {
        let log_all = self.log_all.as_deref();
        let log_all = log_all.unwrap_or(if self.is_bare { "false" } else { "true" });
        let has_extensions = self.is_partial || !self.extensions.is_empty();
        let version = self.version.max(u32::from(has_extensions));
        let mut text = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tlogallrefupdates = {log_all}\n"
        );
        if let Some(shared) = &self.shared {
            text += &format!("\tsharedrepository = {shared}\n");
        }
        if has_extensions {
            text += "[extensions]\n";
        }
        for (name, value) in &self.extensions {
            text += &format!("\t{name} = {value}\n");
        }
        if self.is_partial {
            // Git then knows which objects may be missing. Nothing is fetched from it.
            text += "\tpartialclone = promised\n[remote \"promised\"]\n\tpromisor = true\n\turl = /dev/null\n";
        }
        text
    }
}

/// A value that means the same without quotes. Anything else is dropped: it is written into our
/// configuration without quotes.
fn plain(value: String) -> Option<String> {
    let ok = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (!value.is_empty() && value.len() < 64 && value.chars().all(ok)).then_some(value)
}

/// Keys in lower case (`section.subsection.name`) and values of a configuration file.
///
/// Simpler than git's own parser: no continued lines, no escapes, and a `#` or `;` ends a value
/// even in quotes. Git writes the values that are looked for here in none of these forms.
pub(crate) fn entries(text: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let Some((name, after)) = rest.split_once(']') else {
                continue;
            };
            section = match name.split_once('"') {
                Some((name, sub)) => format!("{}.{}", name.trim(), sub.trim_end_matches('"')),
                None => name.trim().to_owned(),
            };
            line = after.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, "true"));
        let value = value.split(['#', ';']).next().unwrap_or_default();
        let value = value.trim().trim_matches('"').to_owned();
        let key = format!("{section}.{}", name.trim()).to_ascii_lowercase();
        found.push((key, value));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(text: &str) -> Result<Format, GitError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config"), text).unwrap();
        Format::read(dir.path())
    }

    #[test]
    fn only_facts_about_storage_are_taken() {
        let text = "[core] bare = TRUE ; yes\n\trepositoryFormatVersion = 1\n\tfsmonitor = touch x\n\
                    [extensions]\n\tobjectFormat = sha256 # new\n\tworktreeConfig = true\n\
                    \tevil = a\"]\\n[core]\n[Remote \"up.stream\"]\n\tpromisor\n\
                    [include]\n\tpath = other\n";
        let found = format(text).unwrap();
        assert_eq!(
            found.config(),
            "[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tlogallrefupdates = false\n\
             [extensions]\n\tobjectformat = sha256\n\tpartialclone = promised\n\
             [remote \"promised\"]\n\tpromisor = true\n\turl = /dev/null\n"
        );
        assert!(found.is_bare);
    }

    #[test]
    fn references_in_tables_are_refused_with_a_way_out() {
        let error = format("[extensions]\n\trefStorage = reftable\n").unwrap_err();
        assert!(error.to_string().contains("git refs migrate"), "{error}");
    }
}
