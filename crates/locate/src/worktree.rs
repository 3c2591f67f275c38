//! A directory as it is now: what is in it, without what git ignores but with what it tracks.
//!
//! A walk reads every directory and its ignore files. To avoid it, the time of each directory is
//! kept with the index: adding, removing or renaming an entry changes the time of its directory. If
//! all are as they were, only the files are looked at again, by one `stat` each. A change of an
//! ignore file alone, written in place, is not noticed this way until a directory changes.
//!
//! Nothing here trusts the tree: links are not followed, ignore files are checked before they are
//! compiled, and texts are opened below a held root as regular files only.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use codespar_files::{Dir, EntryFacts, EntryKind, IGNORE_FILES, has_plain_ignore_files};
use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::{
    LocateError,
    index::{Index, Indexed, Listed, Origin, Texts, threads},
    kind::FileKind,
    words,
};

/// More files and directories than this are not walked. It is an error, not a shorter list: ranking
/// part of a tree would look like an answer.
const MOST_ENTRIES: usize = 2_000_000;

/// A directory that is walked, inside a git work tree or not.
pub(crate) struct WorkTree {
    root: PathBuf,
}

impl WorkTree {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// The files and directories, in the order of their paths. Links are not followed; what cannot
    /// be read or has a name that is not UTF-8 is left out.
    ///
    /// If no directory of `known` changed, no entry was added or removed: then none is walked, and
    /// the files are those of `known` with new stamps.
    pub(crate) fn list(&self, known: &Index) -> Result<(Vec<Listed>, Vec<Listed>), LocateError> {
        match self.look_again(known) {
            Some(files) => Ok((files, known.directories.clone())),
            None => self.walk(),
        }
    }

    /// Adds the files that git tracks though an ignore file names them. The paths come from git's
    /// index, which may hold anything: only regular files below the root, reached without a link,
    /// are added.
    pub(crate) fn add_tracked(&self, files: &mut Vec<Listed>, tracked: &[String]) {
        let is_listed = |path: &str| files.binary_search_by(|one| one.path.as_str().cmp(path));
        let left_out: Vec<&String> = tracked
            .iter()
            .filter(|path| is_listed(path).is_err() && !path.split('/').any(|name| name == ".git"))
            .collect();
        if left_out.is_empty() {
            return;
        }
        let Ok(root) = Dir::open(&self.root) else {
            return;
        };
        for path in left_out {
            let opened = root.place(Path::new(path)).map(|place| place.open());
            if let Ok(Ok(opened)) = opened
                && let Ok(facts) = opened.file.metadata()
                && let Some(stamp) = file_stamp(&EntryFacts::from(&facts))
            {
                files.push(Listed {
                    path: path.clone(),
                    stamp,
                    origin: Origin::Tracked,
                });
            }
        }
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    }

    /// The known files with the stamps of now, or `None` if there may be others. A known file that
    /// is gone or no longer a regular file also ends it, and so does an ignore file that changed.
    fn look_again(&self, known: &Index) -> Option<Vec<Listed>> {
        if known.directories.is_empty() {
            return None;
        }
        let root = Dir::open(&self.root).ok()?;
        let directory = |old: &Listed| {
            // The root has an empty path.
            let path = match old.path.as_str() {
                "" => ".",
                path => path,
            };
            let facts = root.facts(Path::new(path)).ok()?;
            (directory_stamp(&facts)? == old.stamp).then_some(())
        };
        in_parallel(&known.directories, directory)?;
        let found = |file: &&Indexed| file.listed.origin == Origin::Found;
        let found: Vec<&Indexed> = known.files.iter().filter(found).collect();
        in_parallel(&found, |old| {
            let path = &old.listed.path;
            let facts = root.facts(Path::new(path)).ok()?;
            let stamp = file_stamp(&facts)?;
            let name = path.rsplit('/').next().unwrap_or(path);
            // Other patterns may let other files in.
            if IGNORE_FILES.contains(&name) && stamp != old.listed.stamp {
                return None;
            }
            Some(Listed {
                path: path.clone(),
                stamp,
                origin: Origin::Found,
            })
        })
    }

    /// Lists everything, on several threads. Hidden files count, `.git` does not. Ignore files
    /// apply without a repository too. A directory whose ignore files are not plain is left out
    /// with all that is in it; for the root that is an error.
    fn walk(&self) -> Result<(Vec<Listed>, Vec<Listed>), LocateError> {
        fs::read_dir(&self.root).map_err(|source| LocateError::Root {
            path: self.root.clone(),
            source,
        })?;
        if !has_plain_ignore_files(&self.root) {
            return Err(LocateError::Root {
                path: self.root.clone(),
                source: std::io::Error::other(
                    "one of its ignore files is not a regular file, too large, or has patterns that are \
                     nested too deeply",
                ),
            });
        }
        let found = Mutex::default();
        let entries = AtomicUsize::new(0);
        let walk = WalkBuilder::new(&self.root)
            .hidden(false)
            .require_git(false)
            .threads(threads())
            .filter_entry(|entry| {
                let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
                entry.file_name() != ".git" && (!is_dir || has_plain_ignore_files(entry.path()))
            })
            .build_parallel();
        walk.run(|| {
            let mut own = Found {
                files: Vec::new(),
                directories: Vec::new(),
                all: &found,
            };
            let entries = &entries;
            Box::new(move |entry| {
                if entries.fetch_add(1, Ordering::Relaxed) > MOST_ENTRIES {
                    return WalkState::Quit;
                }
                if let Ok(entry) = entry {
                    self.find(&entry, &mut own);
                }
                WalkState::Continue
            })
        });
        if entries.into_inner() > MOST_ENTRIES {
            return Err(LocateError::TooManyFiles {
                path: self.root.clone(),
                limit: MOST_ENTRIES,
            });
        }
        let found = found.into_inner();
        let (mut files, mut directories) = found.unwrap_or_else(|poison| poison.into_inner());
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        directories.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok((files, directories))
    }

    fn find(&self, entry: &DirEntry, own: &mut Found) {
        let path = entry.path().strip_prefix(&self.root).ok();
        let (Some(path), Ok(facts)) = (path.and_then(Path::to_str), entry.metadata()) else {
            return;
        };
        let facts = EntryFacts::from(&facts);
        let listed = |stamp| Listed {
            path: portable(path),
            stamp,
            origin: Origin::Found,
        };
        own.files.extend(file_stamp(&facts).map(listed));
        if facts.kind == EntryKind::Directory {
            // One that is too young to trust is walked again the next time.
            let stamp = directory_stamp(&facts).unwrap_or(0);
            own.directories.push(listed(stamp));
        }
    }
}

/// Changes when a file is written; nothing for what is not a file. A write that keeps both size and
/// time is not seen.
fn file_stamp(facts: &EntryFacts) -> Option<u64> {
    let nanos = facts.modified?.as_nanos() as u64;
    let mut state = [0; 16];
    state[..8].copy_from_slice(&facts.bytes.to_le_bytes());
    state[8..].copy_from_slice(&nanos.to_le_bytes());
    (facts.kind == EntryKind::File).then(|| words::hash(&state))
}

/// Changes when something is added to a directory or taken away. Clocks of file systems tick
/// slowly: what changed just now may change again without a trace, so it has no stamp.
fn directory_stamp(facts: &EntryFacts) -> Option<u64> {
    const TICK: Duration = Duration::from_secs(2);
    let modified = facts.modified?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let is_settled = facts.kind == EntryKind::Directory && modified + TICK < now;
    is_settled.then(|| words::hash(&modified.as_nanos().to_le_bytes()))
}

/// All results in order, or `None` as soon as there is none for one.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    each: impl Fn(&T) -> Option<R> + Sync,
) -> Option<Vec<R>> {
    let size = items.len().div_ceil(threads()).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = items
            .chunks(size)
            .map(|part| scope.spawn(|| part.iter().map(&each).collect::<Option<Vec<R>>>()))
            .collect();
        let mut all = Vec::with_capacity(items.len());
        for part in parts {
            all.extend(part.join().ok()??);
        }
        Some(all)
    })
}

/// The finds of one thread, handed over when it ends. The walk gives its threads no end to return
/// something from, so `Drop` does it.
struct Found<'a> {
    files: Vec<Listed>,
    directories: Vec<Listed>,
    all: &'a Mutex<(Vec<Listed>, Vec<Listed>)>,
}

impl Drop for Found<'_> {
    fn drop(&mut self) {
        if let Ok(mut all) = self.all.lock() {
            all.0.append(&mut self.files);
            all.1.append(&mut self.directories);
        }
    }
}

impl Texts for WorkTree {
    fn each(
        &self,
        wanted: &[&Listed],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), LocateError> {
        let mut text = Vec::new();
        let root = Dir::open(&self.root).map_err(|source| LocateError::Root {
            path: self.root.clone(),
            source,
        })?;
        for (place, listed) in wanted.iter().enumerate() {
            let limit = FileKind::of(&listed.path).readable_bytes() as u64;
            text.clear();
            // A file that went away meanwhile, or became a link or a pipe, has no text.
            let opened = root
                .place(Path::new(&listed.path))
                .map(|place| place.open());
            if let Ok(Ok(opened)) = opened
                && opened.file.take(limit).read_to_end(&mut text).is_ok()
            {
                visit(place, &text);
            }
        }
        Ok(())
    }
}

#[cfg(windows)]
fn portable(path: &str) -> String {
    path.replace('\\', "/")
}

#[cfg(not(windows))]
fn portable(path: &str) -> String {
    path.to_owned()
}
