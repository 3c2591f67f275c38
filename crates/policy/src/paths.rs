//! Path safety by text alone: normal form, containment, and the paths that are always protected.

use std::path::{Component, Path, PathBuf};

/// The path without `.`, `..` and doubled separators. `..` at the root stays at the root; in a
/// relative path, `..` that has nothing to undo is kept. Symlinks are not looked at.
pub fn normalise(path: &Path) -> PathBuf {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match parts.last() {
                Some(Component::Normal(_)) => {
                    parts.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                _ => parts.push(component),
            },
            other => parts.push(other),
        }
    }
    if parts.is_empty() {
        PathBuf::from(".")
    } else {
        parts.into_iter().collect()
    }
}

/// Whether `path` is `dir` or below it, both taken in their normal form.
pub fn is_inside(path: &Path, dir: &Path) -> bool {
    normalise(path).starts_with(normalise(dir))
}

/// `path` as seen from `cwd`, in normal form.
pub(crate) fn resolve(path: &Path, cwd: &Path) -> PathBuf {
    normalise(&cwd.join(path))
}

/// Start-up files by a name that means nothing else.
const START_UP: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    "bash.bashrc",
    "microsoft.powershell_profile.ps1",
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

/// Why a write to `path` is always asked about, or `None` when it is an ordinary path. Names are
/// compared without case, because macOS and Windows file systems do so.
pub fn protected(path: &Path, home: Option<&Path>) -> Option<&'static str> {
    let path = normalise(path);
    let names: Vec<String> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(plain_name(&name.to_string_lossy())),
            _ => None,
        })
        .collect();
    let pairs = || names.iter().zip(names.iter().skip(1));
    let in_settings = |(dir, file): (&String, &String)| {
        matches!(dir.as_str(), ".codespar" | ".claude") && file.starts_with("settings")
    };
    if names.iter().any(|name| name == ".git" || name == "git~1") {
        return Some("it is inside `.git`, where hooks and configuration run commands");
    }
    if pairs().any(in_settings) {
        return Some("it is a settings file, which decides what is permitted");
    }
    if names.iter().any(|name| name == ".ssh") {
        return Some("it is inside `.ssh`, which gives access to other machines");
    }
    let last = names.last().map_or("", String::as_str);
    if last == ".gitconfig" || pairs().any(|(a, b)| a == ".config" && b == "git") {
        return Some("it is git's configuration, which can run commands");
    }
    let below_config = |shell: &str| pairs().any(|(a, b)| a == ".config" && b == shell);
    let system_wide = path.starts_with("/etc")
        && (["profile", "zshrc", "zshenv", "zprofile", "environment"].contains(&last)
            || names.iter().any(|name| name == "profile.d"));
    let in_home = START_UP_IN_HOME.contains(&last)
        && home.is_some_and(|home| path.parent() == Some(normalise(home).as_path()));
    if START_UP.contains(&last)
        || below_config("fish")
        || below_config("powershell")
        || system_wide
        || in_home
    {
        return Some("it is a shell start-up file");
    }
    None
}

/// A name as a forgiving file system sees it: without case, invisible characters (HFS+) and
/// trailing dots or spaces (NTFS).
fn plain_name(name: &str) -> String {
    let visible: String = name
        .chars()
        .filter(|c| {
            !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        })
        .collect();
    let trimmed = visible.trim_end_matches(['.', ' ']);
    if trimmed.is_empty() {
        visible
    } else {
        trimmed.to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/a/./b//c", "/a/b/c")]
    #[case("/a/b/../c", "/a/c")]
    #[case("/../../a", "/a")]
    #[case("a/../../b", "../b")]
    #[case("a/..", ".")]
    #[case("/", "/")]
    fn a_path_is_brought_to_its_normal_form(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(normalise(Path::new(path)), Path::new(expected));
    }

    #[rstest]
    #[case("/w/a", "/w", true)]
    #[case("/w", "/w", true)]
    #[case("/w/../x", "/w", false)]
    #[case("/wider", "/w", false)]
    #[case("/w/a/../../w/b", "/w/", true)]
    fn inside_is_by_whole_components(#[case] path: &str, #[case] dir: &str, #[case] inside: bool) {
        assert_eq!(is_inside(Path::new(path), Path::new(dir)), inside);
    }

    #[rstest]
    #[case("/w/.git/hooks/pre-commit")]
    #[case("/w/.GIT/config")]
    #[case("/w/.git")]
    #[case("/w/.git./config")]
    #[case("/w/.g\u{200c}it/config")]
    #[case("/w/a/../.git/config")]
    #[case("/home/ann/.bashrc")]
    #[case("/home/ann/.ZSHRC")]
    #[case("/home/ann/.config/fish/conf.d/x.fish")]
    #[case("/home/ann/.login")]
    #[case("/home/ann/.ssh/authorized_keys")]
    #[case("/home/ann/.gitconfig")]
    #[case("/w/.codespar/settings.json")]
    #[case("/w/.codespar/settings.local.json")]
    #[case("/w/sub/.Claude/Settings.json")]
    #[case("/etc/profile.d/x.sh")]
    fn what_runs_or_rules_later_is_protected(#[case] path: &str) {
        assert!(protected(Path::new(path), Some(Path::new("/home/ann"))).is_some());
    }

    #[rstest]
    #[case("/w/.gitignore")]
    #[case("/w/.github/workflows/ci.yml")]
    #[case("/w/src/git/mod.rs")]
    #[case("/w/.codespar/CODESPAR.md")]
    #[case("/w/.claude/agents/x.md")]
    #[case("/w/settings.json")]
    #[case("/w/.login")]
    #[case("/w/profile")]
    #[case("/w/.sshx/a")]
    fn ordinary_names_are_not_protected(#[case] path: &str) {
        assert_eq!(
            protected(Path::new(path), Some(Path::new("/home/ann"))),
            None
        );
    }
}
