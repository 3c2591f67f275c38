//! Which directories of a checkout hold installed dependencies.
//!
//! They are ignored by git, have a name that package managers and build tools use, and stand beside
//! the file that such a tool works from. A directory that is a symlink, or is reached through one,
//! is not taken: it may lead anywhere.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use codespar_git::{GitLimits, Repository, Trust, zero_separated};
use codespar_tools::sandbox::WithoutOverlay;

use super::tree::broken;
use crate::TreeError;

/// More directories than this are not looked at: each of them is a mount.
pub(super) const MOST: usize = 200;

/// How a directory of dependencies is told.
struct Known {
    name: &'static str,
    /// Any file of these names in the same directory tells it.
    beside: &'static [&'static str],
    /// Or one of these is in it.
    inside: &'static [&'static str],
    /// What commands see where they cannot have an overlay.
    otherwise: WithoutOverlay,
}

const fn installed(name: &'static str, beside: &'static [&'static str]) -> Known {
    Known {
        name,
        beside,
        inside: &[],
        otherwise: WithoutOverlay::ReadOnly,
    }
}

/// Builds write to it all the time: read-only it would be in the way.
const fn built(name: &'static str, beside: &'static [&'static str]) -> Known {
    Known {
        otherwise: WithoutOverlay::Nothing,
        ..installed(name, beside)
    }
}

const fn environment(name: &'static str) -> Known {
    Known {
        inside: &["pyvenv.cfg"],
        ..installed(name, &[])
    }
}

const GRADLE: &[&str] = &[
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
];

/// By ecosystem.
const KNOWN: &[Known] = &[
    installed("node_modules", &["package.json"]),
    installed("bower_components", &["bower.json"]),
    installed(".yarn", &["yarn.lock", ".yarnrc.yml"]),
    environment(".venv"),
    environment("venv"),
    environment("env"),
    environment(".env"),
    built(".tox", &["tox.ini", "pyproject.toml", "setup.cfg"]),
    built(".nox", &["noxfile.py"]),
    built(".eggs", &["setup.py"]),
    installed("__pypackages__", &["pyproject.toml"]),
    installed(
        "vendor",
        &["composer.json", "go.mod", "Gemfile", "Cargo.toml"],
    ),
    installed(".bundle", &["Gemfile"]),
    built("target", &["Cargo.toml", "pom.xml", "build.sbt"]),
    built(".gradle", GRADLE),
    built("deps", &["mix.exs"]),
    built("_build", &["mix.exs"]),
    installed("Pods", &["Podfile"]),
    built(".dart_tool", &["pubspec.yaml"]),
    built(".stack-work", &["stack.yaml"]),
    built("dist-newstyle", &["cabal.project"]),
    built("elm-stuff", &["elm.json"]),
];

/// A directory of dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Installed {
    /// Below the root of the checkout.
    pub(super) path: PathBuf,
    pub(super) otherwise: WithoutOverlay,
}

/// What a checkout has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) installed: Vec<Installed>,
    /// Directories that are links, and so are not used.
    pub(super) links: Vec<PathBuf>,
}

/// Looks for them. `root` is the root of a work tree, without symlinks.
pub(super) fn find(root: &Path) -> Result<Found, TreeError> {
    let repository = Repository::find(root, Trust::Untrusted).map_err(broken)?;
    let git = repository.git_with_files().map_err(broken)?;
    let args = [
        "ls-files",
        "-z",
        "--others",
        "--ignored",
        "--exclude-standard",
        "--directory",
    ];
    let limits = GitLimits {
        time: Duration::from_secs(60),
        ..GitLimits::default()
    };
    let call = git.call(args).env("GIT_OPTIONAL_LOCKS", "0");
    let listed = call.limits(limits).run();
    let listed = listed.and_then(codespar_git::Output::checked);
    let listed = listed.map_err(broken)?;
    let mut found = Found::default();
    for name in zero_separated(&listed.out) {
        // A link to a directory is listed like a file.
        let name = name.strip_suffix(b"/").unwrap_or(name);
        let path = PathBuf::from(OsStr::from_bytes(name));
        if found.installed.len() == MOST {
            break;
        }
        take(root, path, &mut found);
    }
    found.installed.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The same in a tree in which an installation was run: there git's rules do not matter, since
/// nothing else was put there. Hidden directories and those found are not entered.
pub(super) fn installed_in(root: &Path) -> Vec<Installed> {
    let mut found = Found::default();
    let mut open = vec![PathBuf::new()];
    while let Some(directory) = open.pop() {
        let entries = std::fs::read_dir(root.join(&directory)).into_iter();
        for entry in entries.flatten().flatten() {
            let path = directory.join(entry.file_name());
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || path == Path::new(".git") {
                continue;
            }
            let before = found.installed.len();
            take(root, path.clone(), &mut found);
            let is_hidden = entry.file_name().as_bytes().starts_with(b".");
            if found.installed.len() == before && !is_hidden {
                open.push(path);
            }
        }
    }
    found.installed.truncate(MOST);
    found.installed.sort_by(|a, b| a.path.cmp(&b.path));
    found.installed
}

/// The real path must be the path itself, so that no part of it is a link.
fn take(root: &Path, path: PathBuf, found: &mut Found) {
    let Some(known) = known(root, &path) else {
        return;
    };
    let full = root.join(&path);
    if full.canonicalize().is_ok_and(|real| real == full) && full.is_dir() {
        found.installed.push(Installed {
            path,
            otherwise: known.otherwise,
        });
    } else if full.symlink_metadata().is_ok_and(|kind| kind.is_symlink()) {
        found.links.push(path);
    }
}

fn known(root: &Path, path: &Path) -> Option<&'static Known> {
    let name = path.file_name()?;
    let (around, within) = (root.join(path.parent()?), root.join(path));
    let is_there = |dir: &Path, name: &&str| dir.join(name).symlink_metadata().is_ok();
    KNOWN
        .iter()
        .filter(|known| OsStr::new(known.name) == name)
        .find(|known| {
            known.beside.iter().any(|file| is_there(&around, file))
                || known.inside.iter().any(|file| is_there(&within, file))
        })
}

/// When a directory was installed: package managers write one of these files last. The latest of
/// these and of the directory itself, whose time changes with its entries only.
pub(super) fn installed_at(dir: &Path) -> Option<SystemTime> {
    let marks = [
        ".package-lock.json",
        ".modules.yaml",
        ".yarn-integrity",
        ".yarn-state.yml",
        "composer/installed.json",
    ];
    let marks = marks.iter().map(|name| dir.join(name));
    let written = |path: &Path| path.symlink_metadata().ok()?.modified().ok();
    marks
        .filter_map(|path| written(&path))
        .chain(written(dir))
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink, process::Command};

    fn checkout(ignored: &str, files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let made = Command::new("git")
            .args(["init", "--quiet"])
            .arg(dir.path())
            .status();
        assert!(made.unwrap().success());
        fs::write(dir.path().join(".gitignore"), ignored).unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        dir
    }

    fn paths(dir: &Path) -> Vec<PathBuf> {
        let root = dir.canonicalize().unwrap();
        let found = find(&root).unwrap();
        found.installed.into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn ignored_directories_are_found_by_name_and_by_what_is_beside_or_in_them() {
        let dir = checkout(
            "node_modules\n.venv\ntarget/\nvendor\nsecrets\nenv\n",
            &[
                "package.json",
                "node_modules/a/package.json",
                "node_modules/a/node_modules/b/index.js",
                "web/app/package.json",
                "web/app/node_modules/c/index.js",
                ".venv/pyvenv.cfg",
                "Cargo.toml",
                "target/debug/x",
                // Nothing says that these are dependencies.
                "env/key",
                "secrets/key",
                "docs/vendor/x",
                "docs/target/x",
                "docs/node_modules/x",
            ],
        );
        let expected = ["node_modules", "target", "web/app/node_modules"];
        let mut expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        expected.insert(0, ".venv".into());
        // `Cargo.toml` is beside none of the directories named `vendor`.
        assert_eq!(paths(dir.path()), expected);
    }

    #[test]
    fn what_git_does_not_ignore_and_what_is_a_link_is_not_taken() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("key"), "secret").unwrap();
        let dir = checkout(
            "node_modules\n.venv\n",
            &[
                "package.json",
                "vendor/x",
                "composer.json",
                "a/package.json",
            ],
        );
        symlink(home.path(), dir.path().join("node_modules")).unwrap();
        symlink("/", dir.path().join(".venv")).unwrap();
        fs::create_dir(home.path().join("node_modules")).unwrap();
        assert_eq!(paths(dir.path()), Vec::<PathBuf>::new());
        let root = dir.path().canonicalize().unwrap();
        assert_eq!(find(&root).unwrap().links, [PathBuf::from("node_modules")]);
    }
}
