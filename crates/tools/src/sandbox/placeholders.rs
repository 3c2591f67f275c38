//! Things that take the place of protected paths which do not exist, while a command runs.
//!
//! A mount needs something to be mounted on, and that is seen by everybody who looks at the
//! workspace. So it is made such that nobody obeys it and git does not see it (a socket nobody
//! listens on, an empty directory), it is on record before it is made, and it is taken away when
//! the last command that relies on it has ended: by whoever ends last, or by the next guard that
//! starts if somebody was killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use serde::{Deserialize, Serialize};

use super::policy::{Absent, Protected};

/// Placeholders in one directory. Whoever relies on them holds a shared lock on the record.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    directory: PathBuf,
    made: BTreeMap<PathBuf, Absent>,
}

/// The placeholders a command relies on.
#[derive(Default)]
pub(super) struct Placeholders {
    registry: PathBuf,
    held: Vec<(PathBuf, File)>,
}

impl Placeholders {
    /// Makes what is missing of `protected`, whose trees are `trees`.
    pub(super) fn acquire(
        registry: &Path,
        protected: &[Protected],
        trees: &[PathBuf],
    ) -> io::Result<Self> {
        let mut directories: BTreeMap<PathBuf, Vec<(PathBuf, Absent)>> = BTreeMap::new();
        let _mutex = lock(registry)?;
        for wanted in protected {
            if wanted.absent == Absent::Checked {
                continue;
            }
            if let Some(place) = Place::of(wanted, trees) {
                let missing = directories.entry(place.directory).or_default();
                missing.extend(place.missing);
            }
        }
        let mut held = Vec::new();
        for (directory, missing) in directories {
            let path = registry.join(record_name(&directory));
            if missing.is_empty() && !path.exists() {
                continue;
            }
            held.push((path.clone(), hold(&path, directory, missing)?));
        }
        Ok(Self {
            registry: registry.to_path_buf(),
            held,
        })
    }

    /// Takes away what nobody else relies on.
    pub(super) fn release(self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let _mutex = lock(&self.registry)?;
        for (path, file) in self.held {
            clear(&path, file)?;
        }
        Ok(())
    }
}

/// Takes away what commands that were killed have left behind.
pub(super) fn sweep(registry: &Path) -> io::Result<()> {
    if !registry.is_dir() {
        return Ok(());
    }
    let _mutex = lock(registry)?;
    for entry in fs::read_dir(registry)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            clear(&path, File::options().read(true).write(true).open(&path)?)?;
        }
    }
    Ok(())
}

/// Nobody else makes or takes away placeholders while this is held.
fn lock(registry: &Path) -> io::Result<File> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(registry)?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(registry.join("lock"))?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Puts new placeholders on record, makes them, and keeps all of the directory's from going.
fn hold(path: &Path, directory: PathBuf, missing: Vec<(PathBuf, Absent)>) -> io::Result<File> {
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)?;
    flock(&file, FlockOperation::LockShared)?;
    let mut record = read(&mut file).unwrap_or_default();
    record.directory = directory;
    let new: BTreeSet<PathBuf> = missing.iter().map(|(path, _)| path.clone()).collect();
    record.made.extend(missing);
    if !new.is_empty() {
        let text = serde_json::to_vec(&record)?;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)?;
    }
    for path in new {
        if let Some(absent) = record.made.get(&path) {
            make(&path, *absent)?;
        }
    }
    Ok(file)
}

fn read(file: &mut File) -> Option<Record> {
    let mut text = Vec::new();
    file.rewind().ok()?;
    file.read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Removes the placeholders of a record, unless somebody still relies on them.
fn clear(path: &Path, mut file: File) -> io::Result<()> {
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    if let Some(record) = read(&mut file) {
        for (placeholder, absent) in &record.made {
            remove(placeholder, *absent)?;
        }
    }
    fs::remove_file(path)
}

/// Where a placeholder would be: the first thing that is missing on the way to a protected path.
struct Place {
    directory: PathBuf,
    missing: Option<(PathBuf, Absent)>,
}

impl Place {
    fn of(wanted: &Protected, trees: &[PathBuf]) -> Option<Self> {
        let tree = trees
            .iter()
            .filter(|tree| wanted.path.starts_with(tree) && wanted.path != **tree)
            .max_by_key(|tree| tree.as_os_str().len())?;
        let mut directory = tree.clone();
        let rest = wanted.path.strip_prefix(tree).ok()?;
        let names: Vec<OsString> = rest.iter().map(OsString::from).collect();
        for (index, name) in names.iter().enumerate() {
            let path = directory.join(name);
            let is_last = index + 1 == names.len();
            match fs::symlink_metadata(&path) {
                Ok(kind) if kind.is_dir() && !is_last => directory = path,
                Ok(_) if is_last => {
                    return Some(Self {
                        directory,
                        missing: None,
                    });
                }
                // A symlink on the way: the check after the command sees to it.
                Ok(_) => return None,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let absent = if is_last {
                        wanted.absent
                    } else {
                        Absent::Directory
                    };
                    return Some(Self {
                        directory,
                        missing: Some((path, absent)),
                    });
                }
                Err(_) => return None,
            }
        }
        None
    }
}

fn make(path: &Path, absent: Absent) -> io::Result<()> {
    let made = match absent {
        Absent::Directory => fs::create_dir(path),
        Absent::File => mknodat(CWD, path, FileType::Socket, Mode::empty(), 0)
            .map_err(io::Error::from)
            .or_else(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => Err(error),
                // A file system without sockets.
                _ => write_new(path, ""),
            }),
        Absent::Text(neutral) => write_new(path, neutral.text()),
        Absent::Checked => Ok(()),
    };
    match made {
        Err(error) => match error.kind() {
            // Where we cannot make it, neither can the command; somebody else was quicker.
            io::ErrorKind::AlreadyExists
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem => Ok(()),
            _ => Err(error),
        },
        Ok(()) => Ok(()),
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o444);
    options.open(path)?.write_all(text.as_bytes())
}

/// Only what still is a placeholder goes.
fn remove(path: &Path, absent: Absent) -> io::Result<()> {
    let Ok(kind) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let text = match absent {
        Absent::Directory => {
            // Not empty: somebody uses it by now.
            let _ = fs::remove_dir(path);
            return Ok(());
        }
        Absent::File if kind.file_type().is_socket() && kind.permissions().mode() & 0o777 == 0 => {
            return fs::remove_file(path);
        }
        Absent::File => "",
        Absent::Text(neutral) => neutral.text(),
        Absent::Checked => return Ok(()),
    };
    let is_ours = kind.is_file()
        && kind.nlink() == 1
        && kind.permissions().mode() & 0o777 == 0o444
        && kind.len() == text.len() as u64
        && fs::read(path).is_ok_and(|found| found == text.as_bytes());
    if is_ours {
        fs::remove_file(path)
    } else {
        Ok(())
    }
}

/// A name for the record of a directory: two hashes (FNV-1a) that do not change between versions.
fn record_name(directory: &Path) -> String {
    let hash = |start: u64| {
        let bytes = directory.as_os_str().as_encoded_bytes();
        bytes.iter().fold(start, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    format!(
        "{:016x}{:016x}.json",
        hash(0xcbf2_9ce4_8422_2325),
        hash(0x8422_2325_cbf2_9ce4)
    )
}

#[cfg(test)]
mod tests {
    use super::{super::policy::Neutral, *};

    fn wanted(root: &Path) -> Vec<Protected> {
        [
            (".vscode", Absent::Directory),
            (".envrc", Absent::File),
            (".git/config", Absent::Text(Neutral::Empty)),
            (".git/commondir", Absent::Text(Neutral::SameDirectory)),
            ("ci.yml", Absent::Checked),
        ]
        .map(|(name, absent)| Protected {
            path: root.join(name),
            absent,
        })
        .to_vec()
    }

    fn names(root: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn placeholders_stay_until_the_last_who_relies_on_them_has_ended() {
        let temp = tempfile::tempdir().unwrap();
        let (root, registry) = (temp.path().join("w"), temp.path().join("registry"));
        fs::create_dir_all(root.join(".git")).unwrap();
        let trees = [root.clone()];
        let first = Placeholders::acquire(&registry, &wanted(&root), &trees).unwrap();
        assert_eq!(names(&root), [".envrc", ".git", ".vscode"]);
        assert_eq!(names(&root.join(".git")), ["commondir", "config"]);
        let second = Placeholders::acquire(&registry, &wanted(&root), &trees).unwrap();
        first.release().unwrap();
        assert_eq!(names(&root), [".envrc", ".git", ".vscode"]);
        second.release().unwrap();
        assert_eq!(names(&root), [".git"]);
        assert_eq!(names(&root.join(".git")), Vec::<String>::new());
        assert_eq!(names(&registry), ["lock"]);
    }

    #[test]
    fn what_a_killed_guard_left_is_swept_and_what_a_person_made_stays() {
        let temp = tempfile::tempdir().unwrap();
        let (root, registry) = (temp.path().join("w"), temp.path().join("registry"));
        fs::create_dir_all(root.join(".git")).unwrap();
        let trees = [root.clone()];
        let killed = Placeholders::acquire(&registry, &wanted(&root), &trees).unwrap();
        fs::write(root.join(".vscode/settings.json"), "{}").unwrap();
        fs::remove_file(root.join(".envrc")).unwrap();
        fs::write(root.join(".envrc"), "").unwrap();
        // Its locks go with it, its record stays.
        drop(killed);
        sweep(&registry).unwrap();
        assert_eq!(names(&root), [".envrc", ".git", ".vscode"]);
        assert_eq!(names(&root.join(".git")), Vec::<String>::new());
        assert_eq!(names(&registry), ["lock"]);
    }

    #[test]
    fn nothing_is_made_through_a_symlink() {
        let temp = tempfile::tempdir().unwrap();
        let (root, registry) = (temp.path().join("w"), temp.path().join("registry"));
        let elsewhere = temp.path().join("elsewhere");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, root.join(".git")).unwrap();
        let trees = [root.clone()];
        let held = Placeholders::acquire(&registry, &wanted(&root), &trees).unwrap();
        assert_eq!(names(&elsewhere), Vec::<String>::new());
        held.release().unwrap();
    }
}
