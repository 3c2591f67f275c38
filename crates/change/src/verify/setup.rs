//! Which command installs a project's dependencies, by its lock files.
//!
//! Only commands that install exactly what a lock file names, where the package manager has such a
//! mode. They run in the sandbox with the hosts of package managers in reach, and run scripts of
//! packages there, as any installation does.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use super::dependencies::{Found, installed_at};

/// How dependencies are installed by one package manager.
struct Manager {
    /// One of these is there; the first one that is counts.
    locks: &'static [&'static str],
    command: &'static str,
    /// Where they go, in the project. Nothing: into a cache of the user's.
    into: &'static [&'static str],
    /// Words of a test command that needs them.
    used_by: &'static [&'static str],
}

const NODE: &[&str] = &[
    "npm", "npx", "node", "yarn", "pnpm", "bun", "jest", "vitest", "mocha", "tsc",
];
const PYTHON: &[&str] = &[
    "python", "python3", "pytest", "tox", "nox", "uv", "poetry", "pipenv", "unittest",
];
const PIP: &str = "python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt";

/// Those of one ecosystem stand together, the most telling lock file first: of each ecosystem one
/// is used.
const MANAGERS: &[&[Manager]] = &[
    &[
        Manager {
            locks: &["pnpm-lock.yaml"],
            command: "pnpm install --frozen-lockfile",
            into: &["node_modules"],
            used_by: NODE,
        },
        Manager {
            locks: &["yarn.lock"],
            command: "yarn install --frozen-lockfile",
            into: &["node_modules", ".yarn"],
            used_by: NODE,
        },
        Manager {
            locks: &["bun.lock", "bun.lockb"],
            command: "bun install --frozen-lockfile",
            into: &["node_modules"],
            used_by: NODE,
        },
        Manager {
            locks: &["package-lock.json", "npm-shrinkwrap.json"],
            command: "npm ci",
            into: &["node_modules"],
            used_by: NODE,
        },
    ],
    &[
        Manager {
            locks: &["uv.lock"],
            command: "uv sync --frozen",
            into: &[".venv", "venv"],
            used_by: PYTHON,
        },
        Manager {
            locks: &["poetry.lock"],
            command: "poetry install --no-interaction",
            into: &[".venv", "venv"],
            used_by: PYTHON,
        },
        Manager {
            locks: &["Pipfile.lock"],
            command: "pipenv sync --dev",
            into: &[".venv", "venv"],
            used_by: PYTHON,
        },
        Manager {
            locks: &["requirements.txt"],
            command: PIP,
            into: &[".venv", "venv", "env"],
            used_by: PYTHON,
        },
    ],
    &[Manager {
        locks: &["Gemfile.lock"],
        command: "bundle install",
        into: &["vendor"],
        used_by: &["bundle", "rake", "rspec", "ruby"],
    }],
    &[Manager {
        locks: &["composer.lock"],
        command: "composer install --no-interaction",
        into: &["vendor"],
        used_by: &["composer", "php", "phpunit"],
    }],
    &[Manager {
        locks: &["mix.lock"],
        command: "mix deps.get",
        into: &["deps"],
        used_by: &["mix"],
    }],
    &[Manager {
        locks: &["Cargo.lock", "Cargo.toml"],
        command: "cargo fetch",
        into: &[],
        used_by: &["cargo"],
    }],
    &[Manager {
        locks: &["go.sum", "go.mod"],
        command: "go mod download",
        into: &[],
        used_by: &["go"],
    }],
    &[Manager {
        locks: &["pom.xml"],
        command: "mvn -B -q dependency:go-offline",
        into: &[],
        used_by: &["mvn"],
    }],
];

/// When an installation is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The lock file asks for something that is not there or is older.
    Now,
    /// When the tests say that something is missing.
    IfMissing,
}

/// A command that brings what the tests need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Installation {
    pub(super) command: String,
    /// The files that say what is installed.
    pub(super) locks: Vec<PathBuf>,
    pub(super) due: Due,
}

/// The installation that the user's command or the lock files at the root of a tree ask for.
///
/// `found` is what the checkout at `checkout` has. A command of the user's own is due where nothing
/// is found or a lock file is newer, like any other. Managers whose tool the test command names are
/// preferred; if it names none, as `make test` does, all that have a lock file at the root are
/// used. An empty command of the user's turns installations off.
pub(super) fn installation(
    tree: &Path,
    checkout: Option<&Path>,
    found: &Found,
    own: Option<&str>,
    tests: Option<&str>,
) -> Option<Installation> {
    let all: Vec<(&Manager, PathBuf)> = MANAGERS
        .iter()
        .filter_map(|ecosystem| {
            ecosystem
                .iter()
                .find_map(|one| Some((one, lock(tree, one)?)))
        })
        .collect();
    let used: Vec<&(&Manager, PathBuf)> = all
        .iter()
        .filter(|(one, _)| tests.is_some_and(|tests| is_used(one, tests)))
        .collect();
    let wanted: Vec<&(&Manager, PathBuf)> = match used.is_empty() {
        true => all.iter().collect(),
        false => used,
    };
    let is_due = wanted
        .iter()
        .any(|(one, lock)| !one.into.is_empty() && !is_current(tree, checkout, found, one, lock));
    let command = match own {
        Some("") => return None,
        Some(own) => own.to_owned(),
        None if wanted.is_empty() => return None,
        None => {
            let commands: Vec<&str> = wanted.iter().map(|(one, _)| command(tree, one)).collect();
            commands.join(" && ")
        }
    };
    let is_unknown = own.is_some() && wanted.iter().all(|(one, _)| one.into.is_empty());
    let due = match is_due || (is_unknown && found.installed.is_empty()) {
        true => Due::Now,
        false => Due::IfMissing,
    };
    Some(Installation {
        command,
        locks: wanted.iter().map(|(_, lock)| lock.clone()).collect(),
        due,
    })
}

fn lock(tree: &Path, manager: &Manager) -> Option<PathBuf> {
    let names = manager.locks.iter();
    let mut there = names.filter(|name| {
        let found = tree.join(name).symlink_metadata();
        found.is_ok_and(|facts| facts.is_file())
    });
    Some(PathBuf::from(there.next()?))
}

/// Newer versions of yarn have another option, and a file of settings that the old one has not.
fn command(tree: &Path, manager: &Manager) -> &'static str {
    let is_new_yarn = manager.locks == ["yarn.lock"] && tree.join(".yarnrc.yml").is_file();
    if is_new_yarn {
        "yarn install --immutable"
    } else {
        manager.command
    }
}

fn is_used(manager: &Manager, tests: &str) -> bool {
    let mut words = tests.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| manager.used_by.contains(&word))
}

/// Whether what is installed in the checkout is what the lock file of the tree asks for. The lock
/// file of the checkout must have the same content as that of the tree and must not be newer than
/// what is installed. A checkout on another branch is therefore not taken.
fn is_current(
    tree: &Path,
    checkout: Option<&Path>,
    found: &Found,
    manager: &Manager,
    lock: &Path,
) -> bool {
    let Some(checkout) = checkout else {
        return false;
    };
    let dirs = found.installed.iter().filter(|one| {
        let is_at_root = one.path.parent() == Some(Path::new(""));
        let is_its = manager
            .into
            .iter()
            .any(|name| one.path.file_name() == Some(OsStr::new(name)));
        is_at_root && is_its
    });
    let newest = dirs
        .filter_map(|one| installed_at(&checkout.join(&one.path)))
        .max();
    let theirs = checkout.join(lock);
    let is_same = match (std::fs::read(tree.join(lock)), std::fs::read(&theirs)) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        _ => false,
    };
    let written = theirs.metadata().and_then(|facts| facts.modified());
    match (newest, written) {
        (Some(installed), Ok(written)) => is_same && installed >= written,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::dependencies::Installed, *};
    use codespar_tools::sandbox::WithoutOverlay;
    use std::time::{Duration, SystemTime};

    fn with(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        dir
    }

    fn asked(tree: &Path, tests: Option<&str>) -> Option<(String, Due)> {
        let found = installation(tree, None, &Found::default(), None, tests)?;
        Some((found.command, found.due))
    }

    #[test]
    fn the_lock_file_tells_the_command() {
        let now = |command: &str| Some((command.to_owned(), Due::Now));
        for (files, expected) in [
            (&["package-lock.json"][..], now("npm ci")),
            (&["pnpm-lock.yaml"], now("pnpm install --frozen-lockfile")),
            (&["yarn.lock"], now("yarn install --frozen-lockfile")),
            (
                &["yarn.lock", ".yarnrc.yml"],
                now("yarn install --immutable"),
            ),
            (&["uv.lock", "requirements.txt"], now("uv sync --frozen")),
            (&["requirements.txt"], now(PIP)),
            (
                &["Cargo.lock"],
                Some(("cargo fetch".to_owned(), Due::IfMissing)),
            ),
            (
                &["go.sum"],
                Some(("go mod download".to_owned(), Due::IfMissing)),
            ),
            (&["README.md"], None),
        ] {
            assert_eq!(asked(with(files).path(), None), expected, "{files:?}");
        }
    }

    #[test]
    fn the_test_command_tells_which_of_several() {
        let dir = with(&["package-lock.json", "requirements.txt"]);
        let command = |tests| asked(dir.path(), Some(tests)).unwrap().0;
        assert_eq!(command("npm test"), "npm ci");
        assert_eq!(command("python3 -m pytest -q"), PIP);
        assert_eq!(command("make test"), format!("npm ci && {PIP}"));
    }

    #[test]
    fn it_is_due_where_what_is_installed_is_older_than_the_lock_file_or_for_another_one() {
        let (tree, checkout) = (with(&["package-lock.json"]), with(&["package-lock.json"]));
        std::fs::create_dir(checkout.path().join("node_modules")).unwrap();
        let found = Found {
            installed: vec![Installed {
                path: "node_modules".into(),
                otherwise: WithoutOverlay::ReadOnly,
            }],
            links: Vec::new(),
        };
        let due = |own| {
            let (tree, checkout) = (tree.path(), Some(checkout.path()));
            installation(tree, checkout, &found, own, None).map(|one| one.due)
        };
        assert_eq!(due(None), Some(Due::IfMissing));
        assert_eq!(due(Some("make deps")), Some(Due::IfMissing));
        assert_eq!(due(Some("")), None);
        let lock = std::fs::File::options()
            .write(true)
            .open(checkout.path().join("package-lock.json"))
            .unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        lock.set_modified(later).unwrap();
        assert_eq!(due(None), Some(Due::Now));
        lock.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        std::fs::write(tree.path().join("package-lock.json"), "other").unwrap();
        assert_eq!(due(None), Some(Due::Now));
    }
}
