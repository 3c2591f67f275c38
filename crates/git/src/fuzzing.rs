//! Entry points for fuzz targets. Each checks what must hold for any bytes.
//!
//! Compiled with the feature `fuzzing` only; the targets in `fuzz/` call these because the parsers
//! are private.

use crate::{
    Trust,
    format::{Format, entries},
    is_branch_name,
    settings::GitSettings,
    zero_separated,
};

/// Keys that a view's configuration may have.
const STORAGE: [&str; 4] = [
    "core.repositoryformatversion",
    "core.bare",
    "core.logallrefupdates",
    "core.sharedrepository",
];

/// Reads a repository's configuration file. What is made of it names nothing that git could run.
pub fn format(text: &str) {
    let format = Format::of(text);
    for (key, value) in entries(&format.config()) {
        let is_known = STORAGE.contains(&key.as_str())
            || key.starts_with("extensions.")
            || key == "remote.promised.promisor"
            || (key == "remote.promised.url" && value == "/dev/null");
        assert!(is_known, "{key} = {value}");
    }
}

/// Reads what `git config --list -z --show-scope` says. An entry stays one entry, under its key.
pub fn settings(out: &[u8]) {
    let settings = GitSettings::parse(out, Trust::Untrusted);
    let mut values = 0;
    for (key, _) in entries(&settings.config()) {
        values += 1;
        let is_known = key.starts_with("core.") || key == "user.name" || key == "user.email";
        let can_run = [
            "core.fsmonitor",
            "core.hookspath",
            "core.pager",
            "core.editor",
        ];
        assert!(is_known && !can_run.contains(&key.as_str()), "{key}");
    }
    assert!(values <= zero_separated(out).count() + 1);
}

/// A name that we take for a branch's is no option, range or path outside.
pub fn branch_name(name: &str) {
    if is_branch_name(name) {
        assert!(!name.starts_with(['-', '/', '.']) && !name.contains(".."));
        assert!(!name.contains(|c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c)));
    }
}
