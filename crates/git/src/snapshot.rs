//! The files of a work tree as git objects: taken on one host, put back on another.
//!
//! A snapshot is everything that is not ignored, committed or not, as one tree; with modes, links
//! as git stores them, and deletions. Its pack has what a repository with the base lacks. Taking one
//! leaves nothing behind: the index is a copy, and new objects go to a directory of their own.
//!
//! What is put back may come from anybody who can write to the store. Git checks the objects as
//! those of a stranger (`--strict`) and the paths as those of a checkout: nothing is written to
//! `.git`, above the tree or through a link.

use std::{ffi::OsStr, fs, io, os::unix::ffi::OsStrExt, path::Path, time::Duration};

use tempfile::TempDir;

use crate::{Git, GitError, GitLimits, Quarantine, view::scratch_outside_of, zero_separated};

/// Bytes of changed files beyond which none is read: hashing them after each step would take
/// longer than the step.
const MOST_CHANGED: u64 = 512 << 20;
/// What a single file may have that is put back; a pack of a few bytes can stand for any number.
const LARGEST_FILE: u64 = 512 << 20;

/// Names of git objects, in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotNames {
    /// The commit that the work began from.
    pub base: String,
    /// The commit that is checked out.
    pub head: String,
    /// The tree of all files that are not ignored.
    pub tree: String,
}

/// What a snapshot is for a repository that has the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub names: SnapshotNames,
    /// What such a repository lacks.
    pub pack: Vec<u8>,
}

/// What became of taking a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotTaken {
    /// The files are as they were at the earlier one.
    Unchanged,
    Changed(Snapshot),
    /// There is more than is kept. Without the tree where the files were not even read.
    TooLarge {
        names: SnapshotNames,
        reason: String,
    },
}

impl Git {
    /// Takes a snapshot of the work tree, whose work began at `base`. Repositories within the tree
    /// are left out, as far as they are not part of a commit. `most` are the bytes of the pack.
    pub fn snapshot(
        &self,
        base: &str,
        earlier: Option<&SnapshotNames>,
        most: usize,
    ) -> Result<SnapshotTaken, GitError> {
        let staging = Staging::new(self)?;
        let head = self.known_commit("HEAD")?;
        let mut names = SnapshotNames {
            base: base.to_owned(),
            head,
            tree: String::new(),
        };
        match staging.write()? {
            StagedFiles::Tree(tree) => names.tree = tree,
            StagedFiles::TooLarge(bytes) => {
                return Ok(SnapshotTaken::TooLarge {
                    names,
                    reason: format!("the changed files have {} MiB", bytes >> 20),
                });
            }
        }
        if earlier == Some(&names) {
            return Ok(SnapshotTaken::Unchanged);
        }
        match staging.pack(&names, most) {
            Ok(pack) => Ok(SnapshotTaken::Changed(Snapshot { names, pack })),
            Err(GitError::TooMuchOutput { .. }) => Ok(SnapshotTaken::TooLarge {
                names,
                reason: format!("the changes have more than {} MiB when packed", most >> 20),
            }),
            Err(error) => Err(error),
        }
    }

    /// Whether the files are those of the snapshot.
    pub fn is_at(&self, names: &SnapshotNames) -> Result<bool, GitError> {
        if self.commit_id("HEAD")?.as_ref() != Some(&names.head) {
            return Ok(false);
        }
        Ok(Staging::new(self)?.write()? == StagedFiles::Tree(names.tree.clone()))
    }

    /// Puts the files to those of a snapshot; what is ignored stays. The repository has to have the
    /// base. `branch` is moved to the head of the snapshot, whatever it was at; it is the one that
    /// is checked out, and none where no branch is. The index is as after a commit, so that what
    /// was not committed is not.
    pub fn put_back(&self, snapshot: &Snapshot, branch: Option<&str>) -> Result<(), GitError> {
        let Snapshot { names, pack } = snapshot;
        check_names(names)?;
        self.known_commit(&names.base)?;
        if !pack.is_empty() {
            let args = ["index-pack", "--stdin", "--fix-thin", "--strict"];
            let call = self.call(args).input(pack.as_slice());
            call.largest_file(LARGEST_FILE).run()?.checked()?;
        }
        self.known_commit(&names.head)?;
        self.check_size(&names.tree)?;
        if let Some(branch) = branch {
            let name = format!("refs/heads/{branch}");
            self.call(["update-ref", "--no-deref", &name, &names.head])
                .env("GIT_COMMITTER_NAME", "CodeSpar")
                .env("GIT_COMMITTER_EMAIL", "codespar@localhost")
                .run()?
                .checked()?;
        }
        let args = ["read-tree", "--reset", "-u", &names.tree];
        let call = self.call(args).largest_file(LARGEST_FILE);
        call.run()?.checked()?;
        // Twice forced: repositories that were made in it go as well.
        self.run(["clean", "--quiet", "-ffd"])?;
        let found = Staging::new(self)?.write()?;
        if found != StagedFiles::Tree(names.tree.clone()) {
            return Err(GitError::Failed {
                command: "read-tree".to_owned(),
                message: format!("the files did not become those of {}", names.tree),
            });
        }
        self.run(["read-tree", "--reset", &names.head])?;
        Ok(())
    }
}

/// They come from outside, and an argument that begins with `-` would be an option.
fn check_names(names: &SnapshotNames) -> Result<(), GitError> {
    let is_name = |name: &str| {
        matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    for name in [&names.base, &names.head, &names.tree] {
        if !is_name(name) {
            return Err(GitError::Failed {
                command: "read-tree".to_owned(),
                message: format!("`{}` is not the name of an object", name.escape_debug()),
            });
        }
    }
    Ok(())
}

/// What the files came to.
#[derive(Debug, PartialEq, Eq)]
enum StagedFiles {
    Tree(String),
    /// So many bytes have changed.
    TooLarge(u64),
}

/// A copy of the index, and new objects apart.
struct Staging<'a> {
    git: Git,
    quarantine: Quarantine,
    /// Has the index.
    _dir: TempDir,
    of: &'a Git,
}

impl<'a> Staging<'a> {
    fn new(of: &'a Git) -> Result<Self, GitError> {
        let dir = scratch_outside_of(&of.root)?;
        let index = dir.path().join("index");
        match copy_with_time(&of.index, &index) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(GitError::file(&of.index)(error));
            }
            _ => {}
        }
        let quarantine = Quarantine::outside_of(of, &of.root)?;
        let git = Git {
            index,
            ..quarantine.git().clone()
        };
        Ok(Self {
            git,
            quarantine,
            _dir: dir,
            of,
        })
    }

    /// The copy of an index with conflicts gives no tree; then all files are read anew.
    fn write(&self) -> Result<StagedFiles, GitError> {
        let staged = self.stage();
        if let Err(GitError::Failed { .. }) = &staged {
            self.git.run(["read-tree", "--reset", "HEAD"])?;
            return self.stage();
        }
        staged
    }

    fn stage(&self) -> Result<StagedFiles, GitError> {
        let limits = GitLimits {
            bytes: 64 << 20,
            time: Duration::from_secs(120),
            ..GitLimits::default()
        };
        let args = [
            "ls-files",
            "-z",
            "--modified",
            "--deleted",
            "--others",
            "--exclude-standard",
            "--deduplicate",
        ];
        let listed = self.git.call(args).limits(limits).run()?.checked()?;
        let root = self.git.work_tree.as_deref().unwrap_or(&self.of.root);
        let (mut names, mut bytes) = (Vec::new(), 0);
        for name in zero_separated(&listed.out) {
            match size(root, name) {
                // A repository within, or a submodule: nothing of it is looked at.
                None => continue,
                Some(size) => bytes += size,
            }
            names.extend_from_slice(name);
            names.push(0);
        }
        if bytes > MOST_CHANGED {
            return Ok(StagedFiles::TooLarge(bytes));
        }
        let args = ["update-index", "-z", "--add", "--remove", "--stdin"];
        self.git.call(args).input(names).run()?.checked()?;
        Ok(StagedFiles::Tree(self.git.run(["write-tree"])?.text()))
    }

    /// What the commit and the tree have that the base has not. Deltas may be against what is not in
    /// the pack.
    fn pack(&self, names: &SnapshotNames, most: usize) -> Result<Vec<u8>, GitError> {
        let wanted = format!("{}\n{}\n^{}\n", names.head, names.tree, names.base);
        let limits = GitLimits {
            bytes: most,
            ..GitLimits::default()
        };
        let args = ["pack-objects", "--quiet", "--revs", "--thin", "--stdout"];
        let git = Git {
            index: self.git.index.clone(),
            ..self.quarantine.git().clone()
        };
        let call = git.call(args).input(wanted).limits(limits);
        Ok(call.run()?.checked()?.out)
    }
}

/// With the time of the original: git looks again at files that were changed in the second in which
/// the index was written, and would not if the copy were newer.
fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    let modified = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    fs::File::options()
        .write(true)
        .open(to)?
        .set_modified(modified)
}

/// Bytes of a file; 0 for one that is gone, none for a directory.
fn size(root: &Path, name: &[u8]) -> Option<u64> {
    if name.ends_with(b"/") {
        return None;
    }
    match root.join(OsStr::from_bytes(name)).symlink_metadata() {
        Ok(facts) if facts.is_dir() => None,
        Ok(facts) => Some(facts.len()),
        Err(_) => Some(0),
    }
}
