//! What the user and the repository set that we go by. Git reads it (`git config` starts no
//! program); a few named keys are kept.
//!
//! The list is one of what is kept, not of what is removed: a key that a newer git gives a meaning
//! to is left out until somebody adds it here. Values go into the configuration of a view, each
//! quoted, so a value cannot add an entry (`entry`, `quoted`).

use std::{
    collections::HashMap,
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{GitCall, GitError, GitLimits, Location, Signing, Trust, lfs, signing, zero_separated};

/// How files are written and compared. None of these names a program or a file.
const FILES: &[&str] = &[
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.trustctime",
    "core.checkstat",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
];

/// Kept besides: the forge commits under this name.
const OTHERS: &[&str] = &["user.name", "user.email"];

/// A repository's effective settings, as far as we use them.
///
/// What the repository sets overrides what the user sets, as in git, except for the file of ignore
/// patterns: that is a path, and a repository must not choose which file of the user is read.
#[derive(Debug, Clone, Default)]
pub struct GitSettings {
    values: HashMap<String, String>,
    /// The user's own ignore patterns: `core.excludesFile`, or git's default place.
    excludes: Option<PathBuf>,
    /// Kept apart: they are for the calls that sign, and for no other.
    signing: Vec<(String, String)>,
}

impl GitSettings {
    pub(crate) fn read(location: &Location, trust: Trust) -> Result<Self, GitError> {
        let args = ["config", "--list", "-z", "--show-scope", "--includes"];
        let output = reading(location, &args).run()?.checked()?;
        let mut settings = Self::parse(&output.out, trust);
        if settings.excludes.is_none() {
            settings.excludes = usual_excludes();
        }
        Ok(settings)
    }

    /// What `git config --list -z --show-scope` said. Each entry is two parts; a key without a
    /// value means `true`:
    ///
    /// ```text
    /// local\0core.filemode\ntrue\0
    /// ```
    pub(crate) fn parse(out: &[u8], trust: Trust) -> Self {
        let mut settings = Self::default();
        let mut fields = zero_separated(out);
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let entry = String::from_utf8_lossy(entry);
            let (key, value) = entry.split_once('\n').unwrap_or((&entry, "true"));
            settings.take(scope, key, value, trust);
        }
        settings
    }

    /// Entries come in the order of precedence, so a later one replaces an earlier one. Where the
    /// repository is trusted, any `filter.lfs.*` key brings in the whole filter with our commands;
    /// its own value is dropped.
    fn take(&mut self, scope: &[u8], key: &str, value: &str, trust: Trust) {
        // Guards of our own.
        if scope == b"command" {
            return;
        }
        let is_persons = matches!(scope, b"system" | b"global");
        if key == "core.excludesfile" {
            if is_persons {
                self.excludes = expanded(value);
            }
            return;
        }
        signing::take(&mut self.signing, key, value, is_persons, trust);
        let is_kept = FILES.contains(&key)
            || OTHERS.contains(&key)
            || (trust == Trust::Trusted && lfs::says_where(key));
        if trust == Trust::Trusted && lfs::asks_for_filter(key) {
            let filter = lfs::FILTER.iter();
            self.values
                .extend(filter.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        } else if is_kept {
            self.values.insert(key.to_owned(), value.to_owned());
        }
    }

    /// A setting by its lower-case key, if it is one of those that are kept and not empty.
    pub fn get(&self, key: &str) -> Option<&str> {
        let value = self.values.get(key).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// How commits are to be signed; `None` if they are not.
    pub fn signing(&self) -> Option<Signing> {
        Signing::wanted(&self.signing)
    }

    /// As the end of a configuration.
    pub(crate) fn config(&self) -> String {
        let mut text = String::new();
        let mut entries: Vec<_> = self.values.iter().collect();
        entries.sort();
        for (key, value) in entries {
            text += &entry(key, value);
        }
        if let Some(path) = self.excludes.as_deref().and_then(Path::to_str) {
            text += &entry("core.excludesfile", path);
        }
        text
    }
}

/// A call that reads settings, of the user too.
fn reading(location: &Location, args: &[&str]) -> GitCall {
    let limits = GitLimits {
        bytes: 4 << 20,
        time: Duration::from_secs(20),
        ..GitLimits::default()
    };
    GitCall::detached(args, &location.git_dir)
        .of_repository(Some(location.root()), None)
        .env("GIT_DIR", &location.git_dir)
        .limits(limits)
        .with_person()
        // It is looked up here; reading a configuration runs no hook.
        .without_guard("core.hooksPath")
}

/// The address of a remote as git would use it: rewritten by the longest `url.<base>.insteadOf` that
/// it begins with. Of several addresses the first.
pub(crate) fn remote_url(location: &Location, remote: &str) -> Result<Option<String>, GitError> {
    let args = ["config", "--list", "-z", "--includes"];
    let output = reading(location, &args).run()?.checked()?;
    let text: Vec<String> = zero_separated(&output.out)
        .map(|entry| String::from_utf8_lossy(entry).into_owned())
        .collect();
    let entries = text.iter().filter_map(|entry| entry.split_once('\n'));
    let key = format!("remote.{remote}.url");
    let url = entries.clone().find(|(known, _)| *known == key);
    let Some((_, url)) = url.filter(|(_, url)| !url.is_empty()) else {
        return Ok(None);
    };
    let rules = entries.filter_map(|(key, prefix)| {
        let base = key.strip_prefix("url.")?.strip_suffix(".insteadof")?;
        (!prefix.is_empty() && url.starts_with(prefix)).then_some((prefix, base))
    });
    Ok(Some(match rules.max_by_key(|(prefix, _)| prefix.len()) {
        Some((prefix, base)) => format!("{base}{}", &url[prefix.len()..]),
        None => url.to_owned(),
    }))
}

/// A single effective value; `None` when it is not set, is empty, or git refused the key.
pub(crate) fn one(location: &Location, key: &str) -> Result<Option<String>, GitError> {
    let output = reading(location, &["config", "--get", key]).run()?;
    let value = output.text();
    Ok((output.code == Some(0) && !value.is_empty()).then_some(value))
}

/// As git expands a path of the user: `~/` is the home directory. `~name` and relative paths are
/// not supported and mean no file.
pub(crate) fn expanded(path: &str) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(Path::new(&env::var_os("HOME")?).join(rest)),
        None => Some(PathBuf::from(path)).filter(|path| path.is_absolute()),
    }
}

fn usual_excludes() -> Option<PathBuf> {
    let config = match env::var_os("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(&env::var_os("HOME")?).join(".config"),
    };
    Some(config.join("git/ignore")).filter(|file| file.is_file())
}

/// A key and a value as lines of a configuration.
fn entry(key: &str, value: &str) -> String {
    let (section, name) = key.rsplit_once('.').unwrap_or((key, ""));
    let section = match section.split_once('.') {
        Some((section, sub)) => format!("{section} {}", quoted(sub)),
        None => section.to_owned(),
    };
    format!("[{section}]\n\t{name} = {}\n", quoted(value))
}

/// In double quotes, with everything escaped that could end the quotes or the line.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_become_another_entry() {
        assert_eq!(
            entry("user.name", "a\"\n[core]\n\tfsmonitor = x\\"),
            "[user]\n\tname = \"a\\\"\\n[core]\\n\\tfsmonitor = x\\\\\"\n"
        );
        assert_eq!(
            entry("filter.lfs.clean", "git-lfs clean -- %f"),
            "[filter \"lfs\"]\n\tclean = \"git-lfs clean -- %f\"\n"
        );
    }
}
