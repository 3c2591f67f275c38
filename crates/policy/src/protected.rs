//! Paths that decide what runs or what is permitted later. Writing one is asked about each time,
//! whatever the rules allow, and no change set of the dev agent contains one.
//!
//! This is the one list: the sandbox keeps the same paths read-only.
//!
//! The check is by text and deliberately broad: a path is protected if the names occur anywhere in
//! it, in any case, and also under names that some file system would treat as the same. Only
//! [`Mode::BypassPermissions`](crate::Mode::BypassPermissions) lets tools write such a path without
//! a question. Of a command only the redirections are compared with the list; other writes are left
//! to the sandbox.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

use crate::paths::{is_inside, normalise};

/// Why a path is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Git's own files: hooks and configuration run commands.
    Git,
    /// Settings of this program or another agent: they decide what is permitted.
    Settings,
    /// Agents, commands, skills and workflows that are obeyed later.
    Definition,
    /// A program runs it when the directory is opened or entered.
    RunsOnOpen,
    /// A definition of continuous integration.
    Ci,
    /// A shell reads it when it starts.
    ShellStartUp,
    /// Keys that give access to other machines.
    Keys,
    /// A hidden file of the home directory.
    HomeDotFile,
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Git => "git's hooks and configuration run commands",
            Self::Settings => "it is a settings file, which decides what is permitted",
            Self::Definition => "it defines an agent, a command or a workflow that is run later",
            Self::RunsOnOpen => "programs run it when the directory is opened",
            Self::Ci => "it defines what continuous integration runs",
            Self::ShellStartUp => "it is a shell start-up file",
            Self::Keys => "it is inside `.ssh`, which gives access to other machines",
            Self::HomeDotFile => "it is a hidden file of the home directory",
        })
    }
}

/// Protected files and directories (with everything below them), at any depth of a workspace.
/// Git's own files are not among them: some of those stay writable for `git commit`, so the
/// sandbox has its own list for them, and [`protected`] covers them all.
pub const PROTECTED: &[(&str, Protection)] = &[
    (".codespar/settings.json", Protection::Settings),
    (".codespar/settings.local.json", Protection::Settings),
    (".codespar/mcp.json", Protection::Settings),
    (".codespar/agents", Protection::Definition),
    (".codespar/commands", Protection::Definition),
    (".codespar/hooks", Protection::Definition),
    (".codespar/plugins", Protection::Definition),
    (".codespar/skills", Protection::Definition),
    (".codespar/workflows", Protection::Definition),
    (".claude/settings.json", Protection::Settings),
    (".claude/settings.local.json", Protection::Settings),
    (".claude/agents", Protection::Definition),
    (".claude/commands", Protection::Definition),
    (".claude/hooks", Protection::Definition),
    (".claude/plugins", Protection::Definition),
    (".claude/skills", Protection::Definition),
    (".claude/workflows", Protection::Definition),
    (".codex/config.toml", Protection::Settings),
    (".cursor/hooks.json", Protection::Settings),
    (".cursor/mcp.json", Protection::Settings),
    (".gemini/settings.json", Protection::Settings),
    (".opencode", Protection::Settings),
    ("opencode.json", Protection::Settings),
    (".aider.conf.yml", Protection::Settings),
    (".mcp.json", Protection::RunsOnOpen),
    (".vscode", Protection::RunsOnOpen),
    (".idea", Protection::RunsOnOpen),
    (".fleet", Protection::RunsOnOpen),
    (".zed", Protection::RunsOnOpen),
    (".husky", Protection::RunsOnOpen),
    (".devcontainer", Protection::RunsOnOpen),
    (".devcontainer.json", Protection::RunsOnOpen),
    (".envrc", Protection::RunsOnOpen),
    (".exrc", Protection::RunsOnOpen),
    (".nvim.lua", Protection::RunsOnOpen),
    (".dir-locals.el", Protection::RunsOnOpen),
    (".gdbinit", Protection::RunsOnOpen),
    (".lldbinit", Protection::RunsOnOpen),
    (".github/workflows", Protection::Ci),
    (".github/actions", Protection::Ci),
    (".gitea/workflows", Protection::Ci),
    (".forgejo/workflows", Protection::Ci),
    (".gitlab-ci.yml", Protection::Ci),
    (".circleci", Protection::Ci),
    (".buildkite", Protection::Ci),
    (".semaphore", Protection::Ci),
    (".woodpecker", Protection::Ci),
    (".woodpecker.yml", Protection::Ci),
    (".drone.yml", Protection::Ci),
    (".cirrus.yml", Protection::Ci),
    (".travis.yml", Protection::Ci),
    (".appveyor.yml", Protection::Ci),
    ("appveyor.yml", Protection::Ci),
    ("azure-pipelines.yml", Protection::Ci),
    ("bitbucket-pipelines.yml", Protection::Ci),
    ("Jenkinsfile", Protection::Ci),
    (".ssh", Protection::Keys),
    (".gitconfig", Protection::Git),
    (".config/git", Protection::Git),
    (".config/fish", Protection::ShellStartUp),
    (".config/powershell", Protection::ShellStartUp),
    (".bashrc", Protection::ShellStartUp),
    (".bash_profile", Protection::ShellStartUp),
    (".bash_login", Protection::ShellStartUp),
    (".bash_logout", Protection::ShellStartUp),
    (".bash_aliases", Protection::ShellStartUp),
    (".profile", Protection::ShellStartUp),
    (".zshrc", Protection::ShellStartUp),
    (".zprofile", Protection::ShellStartUp),
    (".zshenv", Protection::ShellStartUp),
    (".zlogin", Protection::ShellStartUp),
    (".zlogout", Protection::ShellStartUp),
    (".kshrc", Protection::ShellStartUp),
    (".cshrc", Protection::ShellStartUp),
    (".tcshrc", Protection::ShellStartUp),
    ("bash.bashrc", Protection::ShellStartUp),
    ("microsoft.powershell_profile.ps1", Protection::ShellStartUp),
];

/// Start-up files only directly in the home directory: elsewhere the names are ordinary.
const START_UP_IN_HOME: &[&str] = &[
    ".login",
    ".logout",
    ".xprofile",
    ".xinitrc",
    ".xsessionrc",
    ".pam_environment",
];

/// Start-up files of every user, in `/etc`.
const START_UP_IN_ETC: &[&str] = &[
    "profile",
    "profile.d",
    "zshrc",
    "zshenv",
    "zprofile",
    "environment",
];

/// Why a write to `path` is always asked about, or `None` when it is an ordinary path. Names are
/// compared as forgiving file systems do: without case, invisible characters, trailing dots and
/// spaces, and by their short form (`GIT~1`).
pub fn protected(path: &Path, home: Option<&Path>) -> Option<Protection> {
    let path = normalise(path);
    let names: Vec<String> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(plain_name(&name.to_string_lossy())),
            _ => None,
        })
        .collect();
    if names.iter().any(|name| is_name(name, ".git")) {
        return Some(Protection::Git);
    }
    let agent_settings = names.windows(2).any(|pair| {
        [".codespar", ".claude"]
            .iter()
            .any(|dir| is_name(&pair[0], dir))
            && pair[1].starts_with("settin")
    });
    if agent_settings {
        return Some(Protection::Settings);
    }
    let listed = PROTECTED.iter().find(|(entry, _)| contains(&names, entry));
    if let Some((_, protection)) = listed {
        return Some(*protection);
    }
    let last = names.last()?;
    if last.ends_with(".code-workspace") {
        return Some(Protection::RunsOnOpen);
    }
    let below = |dir: &Path| path.parent() == Some(normalise(dir).as_path());
    let in_home = START_UP_IN_HOME.contains(&last.as_str()) && home.is_some_and(below);
    let in_etc = names.first().is_some_and(|name| name == "etc")
        && names
            .get(1)
            .is_some_and(|name| START_UP_IN_ETC.contains(&name.as_str()));
    (in_home || in_etc).then_some(Protection::ShellStartUp)
}

/// Whether `path` is a hidden file of the home directory, or below one, in a workspace that holds
/// the home directory. Programs of every kind obey these files.
pub fn is_home_dot_file(path: &Path, home: &Path, workspace: &[PathBuf]) -> bool {
    let holds_home = workspace.iter().any(|dir| is_inside(home, dir));
    let path = normalise(path);
    let below = path.strip_prefix(normalise(home)).ok();
    let first = below.and_then(|below| below.components().next());
    let hidden = first.is_some_and(|first| first.as_os_str().as_encoded_bytes().starts_with(b"."));
    holds_home && hidden
}

/// Whether the components of `entry` follow one another somewhere in the path.
fn contains(names: &[String], entry: &str) -> bool {
    let wanted: Vec<&str> = entry.split('/').collect();
    names.windows(wanted.len()).any(|window| {
        let mut pairs = window.iter().zip(&wanted);
        pairs.all(|(name, wanted)| is_name(name, wanted))
    })
}

/// Whether a plain name stands for the wanted one, in full or as its short form on NTFS: six
/// letters, a tilde and a digit.
fn is_name(name: &str, wanted: &str) -> bool {
    if name.eq_ignore_ascii_case(wanted) {
        return true;
    }
    let Some((short, rest)) = name.split_once('~') else {
        return false;
    };
    let stem = wanted.trim_start_matches('.');
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    let mut long = stem.chars().filter(|c| !matches!(c, '.' | ' '));
    let is_short = short
        .chars()
        .all(|c| long.next().is_some_and(|l| l.eq_ignore_ascii_case(&c)));
    let is_cut = short.len() == 6 || long.next().is_none();
    is_short && is_cut && !short.is_empty() && rest.starts_with(|c: char| c.is_ascii_digit())
}

/// A name as a forgiving file system sees it: without case, invisible characters (HFS+), the name
/// of a stream, and trailing dots or spaces (NTFS).
fn plain_name(name: &str) -> String {
    let visible: String = name
        .chars()
        .filter(|c| {
            !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        })
        .collect();
    let file = match visible.split_once(':') {
        Some((file, _)) if !file.is_empty() => file,
        _ => visible.as_str(),
    };
    let trimmed = file.trim_end_matches(['.', ' ']);
    let name = if trimmed.is_empty() { file } else { trimmed };
    // By way of the upper case, in which the dotless and the long letters meet the plain ones.
    name.to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/w/.git/hooks/pre-commit", Protection::Git)]
    #[case("/w/.GIT/config", Protection::Git)]
    #[case("/w/.git", Protection::Git)]
    #[case("/w/.git./config", Protection::Git)]
    #[case("/w/.git . ./config", Protection::Git)]
    #[case("/w/.g\u{200c}it/config", Protection::Git)]
    #[case("/w/.g\u{131}t/config", Protection::Git)]
    #[case("/w/.git::$INDEX_ALLOCATION/config", Protection::Git)]
    #[case("/w/GIT~1/config", Protection::Git)]
    #[case("/w/a/../.git/config", Protection::Git)]
    #[case("/w/vendor/x/.git/config", Protection::Git)]
    #[case("/home/ann/.gitconfig", Protection::Git)]
    #[case("/home/ann/.config/git/config", Protection::Git)]
    #[case("/home/ann/.bashrc", Protection::ShellStartUp)]
    #[case("/home/ann/.ZSHRC", Protection::ShellStartUp)]
    #[case("/home/ann/.config/fish/conf.d/x.fish", Protection::ShellStartUp)]
    #[case("/home/ann/.login", Protection::ShellStartUp)]
    #[case("/etc/profile.d/x.sh", Protection::ShellStartUp)]
    #[case("/home/ann/.ssh/authorized_keys", Protection::Keys)]
    #[case("/w/.codespar/settings.json", Protection::Settings)]
    #[case("/w/.codespar/settings.local.json", Protection::Settings)]
    #[case("/w/.codespar/settings.new.json", Protection::Settings)]
    #[case("/w/CODESP~1/settings.json", Protection::Settings)]
    #[case("/w/.codespar/SETTIN~1.JSO", Protection::Settings)]
    #[case("/w/sub/.Claude/Settings.json", Protection::Settings)]
    #[case("/w/.claude/settings.json.", Protection::Settings)]
    #[case("/w/.cursor/mcp.json", Protection::Settings)]
    #[case("/w/.claude/agents/x.md", Protection::Definition)]
    #[case("/w/.claude/commands/x.md", Protection::Definition)]
    #[case("/w/.codespar/agents/x.md", Protection::Definition)]
    #[case("/w/.codespar/workflows/ship.toml", Protection::Definition)]
    #[case("/w/.codespar/skills/x/SKILL.md", Protection::Definition)]
    #[case("/w/.vscode/tasks.json", Protection::RunsOnOpen)]
    #[case("/w/packages/a/.vscode/settings.json", Protection::RunsOnOpen)]
    #[case("/w/VSCODE~1/tasks.json", Protection::RunsOnOpen)]
    #[case("/w/.idea/workspace.xml", Protection::RunsOnOpen)]
    #[case("/w/.husky/pre-commit", Protection::RunsOnOpen)]
    #[case("/w/.hu\u{17f}ky/pre-commit", Protection::RunsOnOpen)]
    #[case("/w/.devcontainer/devcontainer.json", Protection::RunsOnOpen)]
    #[case("/w/.devcontainer.json", Protection::RunsOnOpen)]
    #[case("/w/.envrc", Protection::RunsOnOpen)]
    #[case("/w/.ENVRC ", Protection::RunsOnOpen)]
    #[case("/w/.mcp.json", Protection::RunsOnOpen)]
    #[case("/w/x.code-workspace", Protection::RunsOnOpen)]
    #[case("/w/.github/workflows/ci.yml", Protection::Ci)]
    #[case("/w/.gitlab-ci.yml", Protection::Ci)]
    #[case("/w/Jenkinsfile", Protection::Ci)]
    fn what_runs_or_rules_later_is_protected(#[case] path: &str, #[case] expected: Protection) {
        let found = protected(Path::new(path), Some(Path::new("/home/ann")));
        assert_eq!(found, Some(expected));
    }

    #[rstest]
    #[case("/w/.gitignore")]
    #[case("/w/.gitattributes")]
    #[case("/w/.github/CONTRIBUTING.md")]
    #[case("/w/src/git/mod.rs")]
    #[case("/w/.codespar/CODESPAR.md")]
    #[case("/w/.codespar/memory/note.md")]
    #[case("/home/ann/.codespar/worktrees/t-1/agents/main.rs")]
    #[case("/w/.claude/CLAUDE.md")]
    #[case("/w/settings.json")]
    #[case("/w/agents/x.md")]
    #[case("/w/.login")]
    #[case("/w/profile")]
    #[case("/w/.sshx/a")]
    #[case("/w/g~1")]
    #[case("/w/src/etc/profile")]
    fn ordinary_names_are_not_protected(#[case] path: &str) {
        let found = protected(Path::new(path), Some(Path::new("/home/ann")));
        assert_eq!(found, None);
    }

    #[rstest]
    #[case("/home/ann/.npmrc", "/home/ann", true)]
    #[case("/home/ann/.local/bin/x", "/home/ann", true)]
    #[case("/home/ann/.npmrc", "/home", true)]
    #[case("/home/ann/notes/.x", "/home/ann", false)]
    #[case("/home/ann/notes", "/home/ann", false)]
    #[case("/home/ann/.config/nvim/init.lua", "/home/ann/.config/nvim", false)]
    #[case("/w/.npmrc", "/w", false)]
    fn hidden_files_of_the_home_count_when_the_workspace_holds_the_home(
        #[case] path: &str,
        #[case] workspace: &str,
        #[case] expected: bool,
    ) {
        let workspace = [PathBuf::from(workspace)];
        let found = is_home_dot_file(Path::new(path), Path::new("/home/ann"), &workspace);
        assert_eq!(found, expected);
    }
}
