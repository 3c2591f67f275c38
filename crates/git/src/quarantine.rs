//! New objects that nothing refers to yet.
//!
//! A `git gc --prune=now` of somebody else takes away every object that no reference leads to. So
//! new objects are written apart, brought into the repository as one pack that is marked to be
//! kept, and the mark goes when the reference is there.
//!
//! ```text
//! write objects --> temporary directory   (dropped: nothing remains)
//! keep()        --> objects/pack/pack-N.pack + pack-N.keep
//! update-ref    --> the caller makes the reference
//! drop          --> pack-N.keep removed; the reference protects the objects
//! ```
//!
//! A crash after `keep` leaves the mark. The next call that keeps something removes our marks that
//! are older than a day.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

use crate::{Git, GitError, Location, view::scratch_outside_of};

/// How often a pack is tried to be brought in. There is no pause between two tries: the directory
/// is made again at once.
const TRIES: u32 = 10;

/// What our marks say.
const MARK: &str = "codespar: new objects";
/// A mark of a process that is gone.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// Objects apart from the repository. Those that are not kept go when this is dropped.
#[derive(Debug)]
pub struct Quarantine {
    dir: TempDir,
    outside: Git,
    inside: Git,
}

/// A pack that no garbage collection touches while this lives.
#[derive(Debug)]
pub struct KeptObjects {
    mark: Option<PathBuf>,
}

impl Quarantine {
    /// For a repository at this place.
    pub fn new(git: &Git, location: &Location) -> Result<Self, GitError> {
        Self::outside_of(git, location.root())
    }

    /// For a work tree at this place.
    pub(crate) fn outside_of(git: &Git, root: &Path) -> Result<Self, GitError> {
        let dir = scratch_outside_of(root)?;
        let inside = Git {
            objects: dir.path().to_owned(),
            alternate: Some(git.objects.clone()),
            ..git.clone()
        };
        Ok(Self {
            dir,
            outside: git.clone(),
            inside,
        })
    }

    /// Reads all objects, writes new ones here.
    pub fn git(&self) -> &Git {
        &self.inside
    }

    /// Brings all objects into the repository. They stay here as well. With no new object nothing
    /// is written.
    pub fn keep(&self) -> Result<KeptObjects, GitError> {
        let names = self.names().map_err(GitError::file(self.dir.path()))?;
        if names.is_empty() {
            return Ok(KeptObjects { mark: None });
        }
        let packs = self.outside.objects.join("pack");
        remove_stale(&packs);
        let prefix = self.dir.path().join("new");
        let args = [
            "pack-objects".as_ref(),
            "--quiet".as_ref(),
            prefix.as_os_str(),
        ];
        let call = self.inside.call(args).input(names.join("\n") + "\n");
        let made = call.run()?.checked()?.text();
        let pack = self.dir.path().join(format!("new-{made}.pack"));
        let text = self.bring(&pack, &packs)?;
        // `keep` or, where somebody else keeps the same pack, `pack`.
        let mark = text
            .strip_prefix("keep\t")
            .map(|name| packs.join(format!("pack-{name}.keep")));
        Ok(KeptObjects { mark })
    }

    /// Puts a pack into the repository, with its mark. A collection that runs beside us removes
    /// directories that are empty for a moment, so it is tried a few times.
    fn bring(&self, pack: &Path, packs: &Path) -> Result<String, GitError> {
        let keep = format!("--keep={MARK}");
        let mut tries = 0;
        loop {
            fs::create_dir_all(packs).map_err(GitError::file(packs))?;
            let file = File::open(pack).map_err(GitError::file(pack))?;
            let call = self.outside.call(["index-pack", "--stdin", &keep]);
            tries += 1;
            match call.input_file(file).run()?.checked() {
                Err(_) if tries < TRIES => {}
                ended => return Ok(ended?.text()),
            }
        }
    }

    /// The names of the loose objects: two digits are the directory, the others the file.
    fn names(&self) -> std::io::Result<Vec<String>> {
        let is_hex = |name: &str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut names = Vec::new();
        for dir in fs::read_dir(self.dir.path())?.flatten() {
            let first = dir.file_name().to_string_lossy().into_owned();
            if first.len() != 2 || !is_hex(&first) {
                continue;
            }
            for file in fs::read_dir(dir.path())?.flatten() {
                let rest = file.file_name().to_string_lossy().into_owned();
                if is_hex(&rest) {
                    names.push(format!("{first}{rest}"));
                }
            }
        }
        Ok(names)
    }
}

impl Drop for KeptObjects {
    fn drop(&mut self) {
        if let Some(mark) = &self.mark {
            let _ = fs::remove_file(mark);
        }
    }
}

/// Marks that a crash left would keep their packs for ever.
fn remove_stale(packs: &Path) {
    for entry in fs::read_dir(packs).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_mark = path.extension().is_some_and(|ending| ending == "keep");
        let age = entry.metadata().and_then(|facts| facts.modified());
        let is_old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE));
        if is_mark && is_old && fs::read_to_string(&path).is_ok_and(|text| text.trim() == MARK) {
            let _ = fs::remove_file(path);
        }
    }
}
