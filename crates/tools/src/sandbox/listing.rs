//! The names in directories, remembered for as long as nothing is added or taken away there.
//!
//! Before each command more than a hundred paths in the home directory are looked up, of which few
//! exist. One listing of the directory rules out most of them, and it is read again only when its
//! times have changed. Errors make an entry likely, never unlikely: what is taken for absent would
//! not be hidden.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsStr,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;

/// A directory that was changed so shortly before it was read may be changed again without its time
/// of change telling. Such a listing is used once and not remembered.
const SETTLED: Duration = Duration::from_secs(1);

/// The first names of paths below a directory: whether there is anything at all behind them.
#[derive(Debug, Default)]
pub(super) struct Listings(Mutex<HashMap<PathBuf, Listing>>);

/// What was read, and the state of the directory it was read in.
#[derive(Debug, Clone)]
struct Listing {
    stamp: Stamp,
    /// In lower case, see [`key`].
    names: Arc<HashSet<Vec<u8>>>,
}

/// Changes whenever an entry is added, removed or renamed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: (u64, u64),
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Listings {
    /// Those of the paths below `directory` that may exist. Where the directory cannot be read,
    /// these are all. Only the first name of a path is looked up, so `.config/gh` is likely
    /// wherever there is a `.config`.
    pub(super) fn likely<'a>(
        &self,
        directory: &'a Path,
        paths: &'a [&str],
    ) -> impl Iterator<Item = PathBuf> + use<'a> {
        let names = self.names(directory);
        paths
            .iter()
            .filter(move |path| {
                let first = Path::new(path).iter().next().unwrap_or_default();
                names
                    .as_ref()
                    .is_none_or(|names| names.contains(&key(first)))
            })
            .map(|path| directory.join(path))
    }

    /// `None` if the directory cannot be read.
    fn names(&self, directory: &Path) -> Option<Arc<HashSet<Vec<u8>>>> {
        let kind = fs::metadata(directory).ok()?;
        let stamp = Stamp {
            inode: (kind.dev(), kind.ino()),
            modified: (kind.mtime(), kind.mtime_nsec()),
            changed: (kind.ctime(), kind.ctime_nsec()),
        };
        let mut known = self.0.lock();
        if let Some(listing) = known.get(directory).filter(|one| one.stamp == stamp) {
            return Some(Arc::clone(&listing.names));
        }
        let names = Arc::new(read(directory).ok()?);
        let changed = u64::try_from(kind.ctime()).unwrap_or(u64::MAX);
        let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(changed));
        let age = changed.and_then(|changed| changed.elapsed().ok());
        if age.is_some_and(|age| age > SETTLED) {
            let names = Arc::clone(&names);
            known.insert(directory.to_path_buf(), Listing { stamp, names });
        }
        Some(names)
    }
}

fn read(directory: &Path) -> io::Result<HashSet<Vec<u8>>> {
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| Ok(key(&entry?.file_name()))).collect()
}

/// Some file systems do not tell upper from lower case.
fn key(name: &OsStr) -> Vec<u8> {
    name.as_encoded_bytes().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_appears_is_seen_and_what_cannot_be_listed_is_taken_for_there() {
        let temp = tempfile::tempdir().unwrap();
        let listings = Listings::default();
        let paths = [".ssh", ".config/gh", ".aws"];
        let likely = |directory: &Path| -> Vec<PathBuf> {
            let found = listings.likely(directory, &paths);
            found
                .map(|path| path.strip_prefix(directory).unwrap().to_path_buf())
                .collect()
        };
        assert_eq!(likely(temp.path()), Vec::<PathBuf>::new());
        fs::create_dir(temp.path().join(".SSH")).unwrap();
        assert_eq!(likely(temp.path()), [PathBuf::from(".ssh")]);
        // Long enough ago to be remembered.
        let old = SystemTime::now() - Duration::from_secs(3600);
        fs::File::open(temp.path())
            .unwrap()
            .set_modified(old)
            .unwrap();
        std::thread::sleep(SETTLED + SETTLED);
        likely(temp.path());
        assert_eq!(listings.0.lock().len(), 1);
        fs::create_dir(temp.path().join(".config")).unwrap();
        assert_eq!(
            likely(temp.path()),
            [".ssh", ".config/gh"].map(PathBuf::from)
        );
        let missing = temp.path().join("missing");
        assert_eq!(likely(&missing).len(), paths.len());
    }
}
