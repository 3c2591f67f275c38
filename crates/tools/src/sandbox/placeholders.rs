//! Things that take the place of protected paths which do not exist, while a command runs.
//!
//! A mount needs something to be mounted on, and that is seen by everybody who looks at the
//! workspace. So it is made such that nobody obeys it and git does not see it (a socket nobody
//! listens on, an empty directory), it is on record before it is made, and it is taken away when
//! the last command that relies on it has ended: by whoever ends last, or by the next guard that
//! starts if somebody was killed.
//!
//! What is taken away is kept beside the record and moved back for the next command: on many file
//! systems that costs a tenth of making and removing it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, RenameFlags, flock, mknodat, renameat_with};
use serde::{Deserialize, Serialize};

use super::policy::{Absent, Protected};

/// How long the record of a directory is kept in which nothing was run since.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Placeholders in one directory. Whoever relies on them holds a shared lock on the record.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    directory: PathBuf,
    known: BTreeMap<PathBuf, Absent>,
    /// Those of them that may be there. In the file a mark for each of the known ones, before all
    /// else: it is written over, so that no space has to be found for it.
    #[serde(skip)]
    made: BTreeSet<PathBuf>,
}

const MADE: u8 = b'1';
const AWAY: u8 = b'0';

impl Record {
    fn read(file: &mut File) -> Option<Self> {
        let mut text = Vec::new();
        file.rewind().ok()?;
        file.read_to_end(&mut text).ok()?;
        let start = text.iter().position(|byte| *byte == b'{')?;
        let mut record: Self = serde_json::from_slice(&text[start..]).ok()?;
        let marked = record.known.keys().zip(&text[..start]);
        let made = marked.filter(|(_, mark)| **mark == MADE);
        record.made = made.map(|(path, _)| path.clone()).collect();
        Some(record)
    }

    fn marks(&self) -> Vec<u8> {
        let marks = self.known.keys().map(|path| self.made.contains(path));
        marks.map(|made| if made { MADE } else { AWAY }).collect()
    }

    fn write(&self, mut file: &File) -> io::Result<()> {
        let mut text = self.marks();
        serde_json::to_writer(&mut text, self)?;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)
    }

    fn write_marks(&self, file: &File) -> io::Result<()> {
        rustix::io::pwrite(file, &self.marks(), 0)?;
        Ok(())
    }
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
            // What is there without us belongs to somebody else.
            if missing.is_empty() && !has_made(&path) {
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

/// Takes away what commands that were killed have left behind, and forgets directories in which
/// nothing was run for long.
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
            let file = File::options().read(true).write(true).open(&path)?;
            clear(&path, file)?;
            forget_if_old(&path)?;
        }
    }
    Ok(())
}

fn forget_if_old(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let is_old = file.metadata()?.modified()?.elapsed().unwrap_or_default() > KEPT;
    let is_gone = Record::read(&mut file).is_none_or(|record| !record.directory.is_dir());
    if is_free && (is_old || is_gone) {
        match fs::remove_dir_all(store_of(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::remove_file(path)?,
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
    let mut record = Record::read(&mut file).unwrap_or_default();
    let new: BTreeMap<PathBuf, Absent> = missing.into_iter().collect();
    let is_known = |(path, absent): (&PathBuf, &Absent)| record.known.get(path) == Some(absent);
    let are_known = record.directory == directory && new.iter().all(is_known);
    record.made.extend(new.keys().cloned());
    if are_known {
        record.write_marks(&file)?;
    } else {
        record.directory = directory;
        record.known.extend(new.clone());
        record.write(&file)?;
    }
    let store = store_of(path);
    for (path, absent) in new {
        make(&path, absent, &store)?;
    }
    Ok(file)
}

/// Whether placeholders of a record may be there.
fn has_made(record: &Path) -> bool {
    let record = File::open(record).ok();
    let record = record.and_then(|mut file| Record::read(&mut file));
    record.is_some_and(|record| !record.made.is_empty())
}

/// Where the placeholders of a record are while no command needs them.
fn store_of(record: &Path) -> PathBuf {
    record.with_extension("")
}

/// Takes away the placeholders of a record, unless somebody still relies on them.
fn clear(path: &Path, mut file: File) -> io::Result<()> {
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    let store = store_of(path);
    let Some(mut record) = Record::read(&mut file) else {
        return Ok(());
    };
    if record.made.is_empty() {
        return Ok(());
    }
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&store)?;
    let made = |(path, _): &(&PathBuf, &Absent)| record.made.contains(*path);
    for (path, absent) in record.known.iter().filter(made) {
        take_away(path, *absent, &store)?;
    }
    record.made.clear();
    record.write_marks(&file)
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

fn make(path: &Path, absent: Absent, store: &Path) -> io::Result<()> {
    if let Some(name) = path.file_name()
        && let stored = store.join(name)
        && is_placeholder(&stored, absent)
        && renameat_with(CWD, &stored, CWD, path, RenameFlags::NOREPLACE).is_ok()
    {
        return Ok(());
    }
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
fn take_away(path: &Path, absent: Absent, store: &Path) -> io::Result<()> {
    if !is_placeholder(path, absent) {
        return Ok(());
    }
    if let Some(name) = path.file_name()
        && let stored = store.join(name)
        && renameat_with(CWD, path, CWD, &stored, RenameFlags::NOREPLACE).is_ok()
    {
        if !is_placeholder(&stored, absent) {
            // Somebody put something into it just then.
            renameat_with(CWD, &stored, CWD, path, RenameFlags::NOREPLACE)?;
        }
        return Ok(());
    }
    // On another file system, or there is one in store already.
    match absent {
        // Not empty: somebody uses it by now.
        Absent::Directory => drop(fs::remove_dir(path)),
        Absent::File | Absent::Text(_) => fs::remove_file(path)?,
        Absent::Checked => {}
    }
    Ok(())
}

/// Whether what is there is as we make it.
fn is_placeholder(path: &Path, absent: Absent) -> bool {
    let Ok(kind) = fs::symlink_metadata(path) else {
        return false;
    };
    let text = match absent {
        Absent::Directory => {
            let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
            return kind.is_dir() && is_empty();
        }
        Absent::File if kind.file_type().is_socket() => {
            return kind.permissions().mode() & 0o777 == 0;
        }
        Absent::File => "",
        Absent::Text(neutral) => neutral.text(),
        Absent::Checked => return false,
    };
    kind.is_file()
        && kind.nlink() == 1
        && kind.permissions().mode() & 0o777 == 0o444
        && kind.len() == text.len() as u64
        && fs::read(path).is_ok_and(|found| found == text.as_bytes())
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
        // The next one finds them in store.
        let third = Placeholders::acquire(&registry, &wanted(&root), &trees).unwrap();
        assert_eq!(names(&root), [".envrc", ".git", ".vscode"]);
        let record = registry.join(record_name(&root));
        assert_eq!(names(&store_of(&record)), Vec::<String>::new());
        third.release().unwrap();
        assert_eq!(names(&root), [".git"]);
        assert_eq!(names(&store_of(&record)), [".envrc", ".vscode"]);
    }

    #[test]
    fn what_a_person_makes_of_a_placeholder_is_theirs_and_a_directory_that_is_gone_is_forgotten() {
        let temp = tempfile::tempdir().unwrap();
        let (root, registry) = (temp.path().join("w"), temp.path().join("registry"));
        fs::create_dir_all(root.join(".git")).unwrap();
        let trees = [root.clone()];
        let wanted = wanted(&root);
        Placeholders::acquire(&registry, &wanted, &trees)
            .unwrap()
            .release()
            .unwrap();
        fs::create_dir(root.join(".vscode")).unwrap();
        fs::write(root.join(".envrc"), "").unwrap();
        Placeholders::acquire(&registry, &wanted, &trees)
            .unwrap()
            .release()
            .unwrap();
        sweep(&registry).unwrap();
        assert_eq!(names(&root), [".envrc", ".git", ".vscode"]);
        fs::remove_dir_all(&root).unwrap();
        sweep(&registry).unwrap();
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
