//! Rules to offer when a person is asked: as narrow as is still of use.
//!
//! A suggested rule matches the call that was asked about, and it should not allow what the user
//! has not seen: interpreters, commands that delete or publish, and anything that looks like it
//! contains a secret get either the exact command or no offer. Each function returns `None` when no
//! rule is both possible and reasonable.

use std::path::Path;

use url::Url;

use crate::{
    Rule, Scope, looks_secret,
    paths::is_inside,
    rule::Specifier,
    shell::{Part, base_name, is_interpreter, is_wrapper},
};

/// Commands whose first word says what they do. For these the rule names the verb too: `git log *`
/// rather than `git *`.
const WITH_VERBS: &[&str] = &[
    "git",
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "go",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "make",
    "just",
    "gh",
    "glab",
    "terraform",
    "gradle",
    "mvn",
    "dotnet",
    "rustup",
    "brew",
    "apt",
    "apt-get",
    "dnf",
    "systemctl",
    "composer",
    "bundle",
    "rails",
    "mix",
    "swift",
    "flutter",
    "nx",
    "turbo",
    "conda",
    "aws",
    "gcloud",
    "az",
];

/// Verbs that take another: `npm run test`, `docker compose up`.
const TWO_VERBS: &[(&str, &str)] = &[
    ("npm", "run"),
    ("pnpm", "run"),
    ("yarn", "run"),
    ("uv", "run"),
    ("poetry", "run"),
    ("docker", "compose"),
    ("gh", "pr"),
    ("gh", "issue"),
    ("gh", "run"),
    ("gh", "repo"),
    ("git", "stash"),
    ("git", "remote"),
    ("git", "worktree"),
    ("git", "submodule"),
];

/// Verbs that run anything, or that undo or publish: only the very command is offered.
const GRAVE_VERBS: &[&str] = &[
    "push",
    "reset",
    "clean",
    "config",
    "rebase",
    "filter-branch",
    "exec",
    "publish",
    "delete",
    "destroy",
    "apply",
    "rm",
    "uninstall",
    "x",
    "dlx",
    "eval",
    "api",
    "yank",
    "login",
    "logout",
];

/// Commands besides interpreters and wrappers that run anything, or that cannot be undone: only the
/// very command is offered.
const GRAVE: &[&str] = &[
    "awk", "gawk", "sed", "find", "fd", "rm", "rmdir", "mv", "cp", "dd", "ln", "tee", "install",
    "truncate", "shred", "unlink", "chmod", "chown", "kill", "pkill", "killall", "curl", "wget",
    "nc", "ncat", "socat", "ssh", "scp", "sftp", "rsync", "mkfs", "mount", "umount", "reboot",
    "shutdown", "crontab", "at", "tmux", "screen", "vi", "vim", "nvim", "nano", "emacs", "ed",
    "gdb", "lldb", "[", "[[", "test", "cd", "pushd", "popd", "set",
];

/// For a simple command that no rule allows. From wide to narrow: the name (`ls *`), the name and
/// its verbs (`npm run build *`), the exact text. The exact text cannot contain `*` or a newline,
/// since a rule would read the one as a pattern and the other as a blank.
pub(crate) fn command(part: &Part) -> Option<Rule> {
    let text = part.text();
    let name = part.name().unwrap_or_default();
    // A bare interpreter runs whatever it is fed; a rule with a secret in it would keep it.
    let fed = is_interpreter(name)
        && part
            .words
            .iter()
            .skip(1)
            .all(|word| word.bare.starts_with('-'));
    if fed || looks_secret(&text) {
        return None;
    }
    let verb = |at: usize| {
        part.words
            .get(at)
            .map(|word| word.source.as_str())
            .filter(|word| is_verb(word))
    };
    let plain = part.assignments.is_empty()
        && part.words.first().is_some_and(|word| word.source == name)
        && !GRAVE.contains(&base_name(name))
        && !is_wrapper(name)
        && !is_interpreter(name);
    let pattern = match (plain, WITH_VERBS.contains(&name), verb(1)) {
        (false, ..) => exact(&text),
        (true, true, None) => exact(&text),
        (true, true, Some(first)) => match verb(2) {
            _ if GRAVE_VERBS.contains(&first) => exact(&text),
            // `uv run python` and the like run anything.
            Some(second) if TWO_VERBS.contains(&(name, first)) && is_interpreter(second) => {
                exact(&text)
            }
            Some(second) if TWO_VERBS.contains(&(name, first)) => {
                Some(format!("{name} {first} {second} *"))
            }
            None if TWO_VERBS.contains(&(name, first)) => exact(&text),
            _ => Some(format!("{name} {first} *")),
        },
        // A program of the project may be anything by tomorrow.
        (true, false, _) if name.contains('/') => exact(&text),
        (true, false, _) => Some(format!("{name} *")),
    }?;
    let rule = Rule::parse(&format!("Bash({pattern})")).ok()?;
    match &rule.specifier {
        Specifier::Command(pattern) if pattern.matches(&text) => Some(rule),
        _ => None,
    }
}

/// For a simple command that does more than its name says: the very command.
pub(crate) fn very_command(part: &Part) -> Option<Rule> {
    let text = part.text();
    if looks_secret(&text) {
        return None;
    }
    let rule = Rule::parse(&format!("Bash({})", exact(&text)?)).ok()?;
    match &rule.specifier {
        Specifier::Command(pattern) if pattern.matches(&text) => Some(rule),
        _ => None,
    }
}

/// The very command; none when a star in it would make it more than that.
fn exact(text: &str) -> Option<String> {
    (!text.contains(['*', '\n'])).then(|| text.to_owned())
}

/// A word in lower case without a path or an option in it. Anything else could be an argument that
/// differs next time.
fn is_verb(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
}

/// The directory of the file, unless that would include the whole project or home; then the file
/// alone. Inside the project the rule is relative to its root, so that it means the same on another
/// machine.
pub(crate) fn write(path: &Path, scope: &Scope) -> Option<Rule> {
    let parent = path.parent()?;
    let (anchor, dir, file) = match (
        parent.strip_prefix(&scope.root),
        path.strip_prefix(&scope.root),
    ) {
        (Ok(dir), Ok(file)) => ("/", dir, file),
        _ => (
            "//",
            parent.strip_prefix("/").ok()?,
            path.strip_prefix("/").ok()?,
        ),
    };
    let text = match is_too_wide(parent, scope) {
        true => format!("Edit({anchor}{})", escaped(file)?),
        // Below the root, a path with a slash in it needs no anchor.
        false if anchor == "/" && !dir.starts_with("~") => format!("Edit({}/**)", escaped(dir)?),
        false => format!("Edit({anchor}{}/**)", escaped(dir)?),
    };
    Rule::parse(&text).ok()
}

/// For a read outside the workspace.
pub(crate) fn read(tool: &str, path: &Path, scope: &Scope) -> Option<Rule> {
    // Search tools name a directory, the others a file.
    let dir = match tool {
        "Grep" | "Glob" | "LS" => path,
        _ => path.parent()?,
    };
    let text = match is_too_wide(dir, scope) {
        true => format!("Read(//{})", escaped(path.strip_prefix("/").ok()?)?),
        false => format!("Read(//{}/**)", escaped(dir.strip_prefix("/").ok()?)?),
    };
    Rule::parse(&text).ok()
}

/// The exact host, not its parent domain. An address is kept by its host alone: paths and queries
/// differ from call to call.
pub(crate) fn fetch(url: &Url) -> Option<Rule> {
    let host = url.host_str()?.trim_end_matches('.');
    Rule::parse(&format!("WebFetch(domain:{host})")).ok()
}

/// For something with a name. A star in the name would make it a pattern.
pub(crate) fn named(tool: &str, name: &str) -> Option<Rule> {
    if name.contains('*') {
        return None;
    }
    Rule::parse(&format!("{tool}({name})")).ok()
}

/// Directories that hold the project or the home would permit far more than was asked for.
fn is_too_wide(dir: &Path, scope: &Scope) -> bool {
    is_inside(&scope.root, dir)
        || scope
            .home
            .as_deref()
            .is_some_and(|home| is_inside(home, dir))
}

/// The path as a pattern that matches only itself. `None` for paths that a rule cannot hold: not
/// UTF-8, empty, with blanks at the ends, or with a newline, a backslash or `!` in them.
fn escaped(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let fit = !text.is_empty() && text == text.trim() && !text.contains(['\n', '\\', '!']);
    fit.then(|| globset::escape(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{Script, all_interpreters};

    /// What is offered for a command line of one simple command.
    fn offered(text: &str) -> Option<String> {
        let script = Script::read(text);
        let [part] = script.parts.as_slice() else {
            panic!("`{text}` is not one command");
        };
        command(part).map(|rule| rule.to_string())
    }

    #[test]
    fn no_rule_for_every_use_of_an_interpreter_is_offered() {
        for name in all_interpreters() {
            assert_eq!(offered(name), None, "{name}");
            for arguments in ["build", "run build", "a.txt"] {
                let text = format!("{name} {arguments}");
                assert_eq!(offered(&text), Some(format!("Bash({text})")), "{text}");
            }
        }
        for text in [
            "python3.12 a.py",
            "uv run python a",
            "fakeroot make",
            "npm run bash x",
        ] {
            assert_eq!(offered(text), Some(format!("Bash({text})")), "{text}");
        }
    }
}
