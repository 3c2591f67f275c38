//! Repositories inside the workspace besides its own: submodules, clones, ones a command makes.
//!
//! Those that exist have their configuration and hooks protected like the workspace's own
//! ([`find`], before a command). One that a command makes stays if nothing in it runs a command;
//! otherwise what would is moved away ([`defuse`], after it), before somebody calls git in it.
//!
//! Configuration is judged by a list of what is known to be harmless: git gains new settings that
//! name programs, and an unknown one counts as harmful. What was there before the command is not
//! touched; only files whose change time is later than its start are looked at.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{git_config, git_dirs, keep::move_away, order::Restored, policy::Neutral};

/// Sections in which nothing runs a command. All their keys, but for [`HARMFUL_KEYS`].
const HARMLESS_SECTIONS: &[&str] = &[
    "advice",
    "branch",
    "color",
    "column",
    "feature",
    "gc",
    "index",
    "init",
    "pack",
    "pull",
    "push",
    "remote",
    "submodule",
    "user",
];

/// Keys in which nothing runs a command, of sections that have others too.
const HARMLESS_KEYS: &[(&str, &str)] = &[
    ("core", "abbrev"),
    ("core", "autocrlf"),
    ("core", "bare"),
    ("core", "compression"),
    ("core", "eol"),
    ("core", "filemode"),
    ("core", "ignorecase"),
    ("core", "logallrefupdates"),
    ("core", "precomposeunicode"),
    ("core", "repositoryformatversion"),
    ("core", "sharedrepository"),
    ("core", "symlinks"),
    ("core", "worktree"),
    ("extensions", "objectformat"),
    ("extensions", "refstorage"),
    ("merge", "conflictstyle"),
    ("merge", "ff"),
];

/// Keys of harmless sections that name a program after all.
const HARMFUL_KEYS: &[(&str, &str)] = &[
    ("gc", "recentobjectshook"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("remote", "vcs"),
    ("submodule", "update"),
];

/// Directories that package managers and compilers fill with thousands of others. Nobody calls git
/// in them; the workspace's own git does only if its index says so.
const FILLED_BY_TOOLS: &[&str] = &["node_modules", "target", ".venv", "venv", "__pycache__"];

/// How much is looked at. A walk of everything is slow in a tree with dependencies, so it is made
/// only when the index was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// Not what tools fill.
    Usual,
    /// Every directory.
    Everything,
}

/// Every `.git` below a tree but its own, and directories that are a repository without one.
/// Sorted. Symlinks are not followed, and a repository without a work tree is not searched further;
/// names are compared without case, as file systems without it would find `.GIT` too. Entries that
/// vanish meanwhile and directories that cannot be read are passed over.
pub(super) fn find(tree: &Path, search: Search) -> Vec<PathBuf> {
    let is_skipped = |name: &std::ffi::OsStr| {
        search == Search::Usual && FILLED_BY_TOOLS.iter().any(|skipped| name == *skipped)
    };
    let mut found = Vec::new();
    let mut open = vec![tree.to_path_buf()];
    while let Some(directory) = open.pop() {
        // What we may not look into, git may not either.
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        let mut below = Vec::new();
        let mut marks = 0;
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = entry.file_name();
            if name.eq_ignore_ascii_case(".git") {
                if directory != tree {
                    found.push(entry.path());
                }
                continue;
            }
            marks += usize::from(name == "HEAD" || name == "objects" || name == "refs");
            if kind.is_dir() && !is_skipped(&name) {
                below.push(entry.path());
            }
        }
        if marks == 3 && directory != tree && git_dirs::is_bare(&directory) {
            found.push(directory);
        } else {
            open.append(&mut below);
        }
    }
    found.sort();
    found
}

/// Moves away what commands since `since` have put into nested repositories and git would run.
/// Returns what was moved and where to. An error leaves the rest in place; the caller makes the
/// command fail for it.
pub(super) fn defuse(
    trees: &[PathBuf],
    since: SystemTime,
    quarantine: &Path,
) -> io::Result<Vec<Restored>> {
    let mut moved = Vec::new();
    for tree in trees {
        // Through an entry of the index, git status in the workspace goes into any directory.
        let index = fs::symlink_metadata(git_dir_of(tree).join("index"));
        let search = match index {
            Ok(index) if is_new(&index, since) => Search::Everything,
            Ok(_) | Err(_) => Search::Usual,
        };
        for repository in find(tree, search) {
            for harmful in harmful_in(&repository, trees, since) {
                let place = move_away(tree, &harmful, quarantine)?;
                moved.push(Restored {
                    path: harmful,
                    quarantined: Some(place),
                });
            }
        }
    }
    Ok(moved)
}

/// The directory that holds the index of a tree. For a linked worktree `.git` is a file that names
/// it; the file is protected, so no command has changed it.
fn git_dir_of(tree: &Path) -> PathBuf {
    let dot_git = tree.join(".git");
    let text = codespar_files::read(&dot_git, 4096).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    match text.strip_prefix("gitdir:") {
        Some(named) => tree.join(named.trim()),
        None => dot_git,
    }
}

/// What in a repository was changed since and would run or lead elsewhere. For a directory, the
/// files in it that would. A file or link in the place of `.git` is harmful as a whole if it leads
/// out of the workspace, to a worktree that its repository does not know, or to a directory with
/// something harmful in it.
fn harmful_in(repository: &Path, trees: &[PathBuf], since: SystemTime) -> Vec<PathBuf> {
    let Ok(kind) = fs::symlink_metadata(repository) else {
        return Vec::new();
    };
    if kind.is_dir() {
        return harmful_in_directory(repository, since);
    }
    if !is_new(&kind, since) {
        return Vec::new();
    }
    // A file or symlink that leads to the repository.
    let target = if kind.is_symlink() {
        fs::read_link(repository).ok()
    } else {
        let text = fs::read_to_string(repository).unwrap_or_default();
        text.strip_prefix("gitdir:").map(|path| path.trim().into())
    };
    let around = repository.parent().unwrap_or(repository);
    let target = target.and_then(|target| around.join(target).canonicalize().ok());
    let Some(target) = target.filter(|target| trees.iter().any(|tree| target.starts_with(tree)))
    else {
        return vec![repository.to_path_buf()];
    };
    let common = fs::read_to_string(target.join("commondir")).ok();
    let common = common.and_then(|common| target.join(common.trim()).canonicalize().ok());
    match common {
        // A linked worktree: of a repository whose `worktrees` it stands in, or of none.
        Some(common) if !target.starts_with(common.join("worktrees")) => {
            vec![repository.to_path_buf()]
        }
        Some(_) => Vec::new(),
        None if harmful_in_directory(&target, since).is_empty() => Vec::new(),
        None => vec![repository.to_path_buf()],
    }
}

/// Configuration that is no plain file is harmful without being read. Hooks count if they are
/// executable and not one of git's samples.
fn harmful_in_directory(git_dir: &Path, since: SystemTime) -> Vec<PathBuf> {
    let is_changed =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|kind| is_new(&kind, since));
    let neutral = Neutral::SameDirectory.text().as_bytes();
    let mut harmful = Vec::new();
    for name in ["config", "config.worktree"] {
        let path = git_dir.join(name);
        let is_plain = fs::symlink_metadata(&path).is_ok_and(|kind| kind.is_file());
        // One that cannot be read whole may hold anything.
        let runs = || git_config::read(&path).is_none_or(|all| all.iter().any(is_harmful));
        if is_changed(&path) && (!is_plain || runs()) {
            harmful.push(path);
        }
    }
    for name in ["commondir", "objects/info/alternates"] {
        let path = git_dir.join(name);
        // A placeholder of another command leads nowhere.
        let is_neutral = fs::read(&path).is_ok_and(|text| text == neutral);
        if is_changed(&path) && !is_neutral {
            harmful.push(path);
        }
    }
    let hooks = git_dir.join("hooks");
    let is_link = fs::symlink_metadata(&hooks).is_ok_and(|kind| kind.is_symlink());
    if is_link && is_changed(&hooks) {
        harmful.push(hooks);
        return harmful;
    }
    for entry in fs::read_dir(&hooks).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_sample = path.extension().is_some_and(|name| name == "sample");
        let runs = fs::metadata(&path).is_ok_and(|kind| kind.permissions().mode() & 0o111 != 0);
        if !is_sample && runs && is_changed(&path) {
            harmful.push(path);
        }
    }
    harmful
}

/// Whether a setting may name a program or lead to another file.
fn is_harmful(setting: &git_config::Setting) -> bool {
    let pair = (setting.section.as_str(), setting.key.as_str());
    let is_known = HARMLESS_SECTIONS.contains(&pair.0) || HARMLESS_KEYS.contains(&pair);
    !is_known || HARMFUL_KEYS.contains(&pair)
}

/// The time of the last change to the file itself cannot be set by a command.
fn is_new(kind: &fs::Metadata, since: SystemTime) -> bool {
    let since = since
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    // File systems tell the time in steps of some milliseconds.
    let since = since.saturating_sub(Duration::from_millis(50));
    let since = (
        since.as_secs().cast_signed(),
        i64::from(since.subsec_nanos()),
    );
    (kind.ctime(), kind.ctime_nsec()) >= since
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn repository(git_dir: &Path, config: &str) {
        for name in ["objects/x", "refs/x", "HEAD"] {
            write(&git_dir.join(name), "");
        }
        write(&git_dir.join("config"), config);
    }

    const PLAIN: &str = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n";
    const EVIL: &str = "[core]\n\tfsmonitor = touch pwned\n";

    #[test]
    fn repositories_are_found_at_any_depth_also_without_a_git_directory() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        repository(&root.join(".git"), PLAIN);
        repository(&root.join("a/b/.git"), PLAIN);
        repository(&root.join("bare"), PLAIN);
        write(&root.join("sub/.git"), "gitdir: ../.git/modules/sub\n");
        let names = ["a/b/.git", "bare", "sub/.git"].map(|name| root.join(name));
        assert_eq!(find(&root, Search::Usual), names);
        let deep = root.join("node_modules/x/.git");
        repository(&deep, PLAIN);
        assert_eq!(find(&root, Search::Usual), names);
        assert!(find(&root, Search::Everything).contains(&deep));
    }

    #[test]
    fn what_a_command_makes_stays_unless_git_would_run_it() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let (root, aside) = (base.join("w"), base.join("aside"));
        fs::create_dir_all(&aside).unwrap();
        let begun = SystemTime::now() - std::time::Duration::from_secs(60);
        repository(&root.join("good/.git"), PLAIN);
        write(&root.join("good/.git/hooks/pre-commit.sample"), "x");
        repository(&root.join("evil/.git"), EVIL);
        repository(&root.join("bare"), EVIL);
        repository(&root.join("hooked/.git"), PLAIN);
        let hook = root.join("hooked/.git/hooks/post-checkout");
        write(&hook, "evil");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        repository(&root.join("redirected/.git"), PLAIN);
        write(&root.join("redirected/.git/commondir"), "../../bare");
        write(&root.join("away/.git"), "gitdir: /somewhere/else\n");
        let trees = [root.clone()];
        let moved = defuse(&trees, begun, &aside).unwrap();
        let expected = [
            "away/.git",
            "bare/config",
            "evil/.git/config",
            "hooked/.git/hooks/post-checkout",
            "redirected/.git/commondir",
        ];
        let moved: Vec<PathBuf> = moved.into_iter().map(|one| one.path).collect();
        assert_eq!(moved, expected.map(|name| root.join(name)));
        assert!(root.join("good/.git/config").exists());
    }

    #[test]
    fn a_configuration_that_cannot_be_read_whole_is_taken_away() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let (root, aside) = (base.join("w"), base.join("aside"));
        fs::create_dir_all(&aside).unwrap();
        let begun = SystemTime::now() - Duration::from_secs(60);
        // What git would run stands after more than is worth reading.
        let filler = "# nothing to see here\n".repeat((17 << 20) / 22);
        repository(&root.join("long/.git"), &format!("{PLAIN}{filler}{EVIL}"));
        // One that a careless reader would wait for without end.
        repository(&root.join("fifo/.git"), PLAIN);
        let config = root.join("fifo/.git/config");
        fs::remove_file(&config).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&config).status();
        assert!(made.unwrap().success());
        let moved = defuse(std::slice::from_ref(&root), begun, &aside).unwrap();
        let moved: Vec<&Path> = moved.iter().map(|one| one.path.as_path()).collect();
        assert_eq!(moved, [config, root.join("long/.git/config")]);
    }

    #[test]
    fn a_new_index_of_a_linked_worktree_has_everything_searched() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let (root, aside) = (base.join("w"), base.join("aside"));
        let private = base.join("main/.git/worktrees/w");
        fs::create_dir_all(&aside).unwrap();
        write(
            &root.join(".git"),
            &format!("gitdir: {}\n", private.display()),
        );
        write(&private.join("index"), "entries");
        repository(&root.join("node_modules/x/.git"), EVIL);
        let begun = SystemTime::now() - Duration::from_secs(60);
        let moved = defuse(std::slice::from_ref(&root), begun, &aside).unwrap();
        assert_eq!(moved[0].path, root.join("node_modules/x/.git/config"));
    }

    #[test]
    fn what_was_there_before_the_command_is_not_touched() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        repository(&root.join("theirs/.git"), EVIL);
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        let trees = std::slice::from_ref(&root);
        assert_eq!(defuse(trees, later, &root).unwrap(), vec![]);
    }
}
