//! The program and the environment that every git gets.
//!
//! The environment of our own process does not reach git, with these exceptions: `PATH` without
//! directories of the repository; `TZ`; what `PERSON` lists, for reading settings and for a fetch;
//! `HOME` for files of a trusted repository; what `fetch.rs` lists for reaching the network; and
//! what `signing.rs` and `credential.rs` list for the user's own programs.
//! Variables such as `GIT_SSH_COMMAND` or `GIT_DIR` that our own process was started with have no
//! effect.

use std::{
    env,
    ffi::OsString,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{GitCall, GitError};

/// Nothing that starts a program, reads a person's settings, asks, fetches or replaces objects.
///
/// An empty `GIT_ALLOW_PROTOCOL` allows none. Without `GIT_LITERAL_PATHSPECS` a file named
/// `:(top)x` would be taken for a pattern.
const FIXED: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
    ("GIT_EDITOR", ":"),
    ("GIT_PAGER", "cat"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_LITERAL_PATHSPECS", "1"),
];

/// Over any configuration, also that of repositories within the work tree, should git look there.
const GUARDS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.quotePath=false",
    "core.sshCommand=/bin/false",
    "core.alternateRefsCommand=:",
    "credential.helper=",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "diff.ignoreSubmodules=all",
    "log.showSignature=false",
    "commit.gpgSign=false",
    "gpg.program=/bin/false",
    "index.sparse=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "advice.detachedHead=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Where a person's own settings are; only for calls that read them.
pub(crate) const PERSON: &[&str] = &[
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
];

/// The git program and the search path for what it starts itself. Relative directories and those
/// within `repository` are left out: the repository could put its own `git` there.
pub(crate) fn program(repository: Option<&Path>) -> Result<(PathBuf, OsString), GitError> {
    let (program, path) = find_program("git", repository);
    Ok((program.ok_or(GitError::NotInstalled)?, path))
}

/// The same for another program.
pub(crate) fn find_program(name: &str, repository: Option<&Path>) -> (Option<PathBuf>, OsString) {
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let inside = |dir: &Path| repository.is_some_and(|root| dir.starts_with(root));
    let dirs: Vec<PathBuf> = env::split_paths(&path)
        .filter(|dir| dir.is_absolute() && !inside(dir))
        .collect();
    let runs = |program: &PathBuf| {
        let facts = program.metadata();
        facts.is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    let program = dirs.iter().map(|dir| dir.join(name)).find(runs);
    (program, env::join_paths(dirs).unwrap_or_default())
}

/// What every call has. The time zone is the one thing a commit shows of the user's own.
pub(crate) fn fixed() -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = FIXED
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    all.extend(env::var_os("TZ").map(|zone| ("TZ".into(), zone)));
    all
}

/// The arguments before the subcommand. `-c` wins over every configuration file. Those in `lifted`
/// are left out, by their key.
pub(crate) fn guards(lifted: &[&str]) -> impl Iterator<Item = OsString> {
    let is_lifted = |guard: &str| {
        let key = guard.split_once('=').map_or(guard, |(key, _)| key);
        lifted.contains(&key)
    };
    let guards = GUARDS.iter().filter(move |guard| !is_lifted(guard));
    let pairs = guards.flat_map(|guard| ["-c", guard]);
    ["--no-pager"].into_iter().chain(pairs).map(OsString::from)
}

/// What git calls itself: `git version 2.47.3`.
pub fn version() -> Result<String, GitError> {
    let output = GitCall::detached(["version"], Path::new("/")).run()?;
    Ok(output.checked()?.text())
}
