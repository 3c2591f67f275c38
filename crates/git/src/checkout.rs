//! A throw-away copy of a repository's files at one commit.
//!
//! It borrows the objects of the repository and shares nothing else with it. There are two git
//! directories: `.git` in the tree is for the commands that run there, which may do with it what
//! they like; ours is beside the tree, out of their reach, and the only one we use.
//!
//! ```text
//! DIR/NAME            the files, and `.git` for the commands
//! DIR/NAME.git-own    our git directory: index, new objects, configuration
//! ```
//!
//! Both read the repository's objects by `objects/info/alternates` and write their own. No
//! reference of the repository is visible in them, and nothing that is committed or fetched in the
//! tree reaches the repository.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Git, GitError, GitLimits, Repository, Trust, format::Format, zero_separated};

/// The copy. Dropping it does not remove it.
#[derive(Debug)]
pub struct Checkout {
    tree: PathBuf,
    git: Git,
}

impl Checkout {
    /// Makes it, in place of one that was left there. What a failure leaves half made is replaced
    /// by the next call for the same path.
    pub fn create(repository: &Repository, tree: &Path, commit: &str) -> Result<Self, GitError> {
        Self::remove(tree);
        let commit = &repository.git()?.known_commit(commit)?;
        repository.git()?.check_size(commit)?;
        fs::create_dir_all(tree).map_err(GitError::file(tree))?;
        let tree = tree.canonicalize().map_err(GitError::file(tree))?;
        let common = &repository.location().common_dir;
        let mut config = Format::read(common)?.config();
        let own = private_dir(&tree);
        skeleton(&own, common, &config, commit).map_err(GitError::file(&own))?;
        if repository.trust() == Trust::Trusted {
            std::os::unix::fs::symlink(common.join("lfs"), own.join("lfs"))
                .map_err(GitError::file(&own))?;
        }
        config += &repository.settings()?.config();
        fs::write(own.join("config"), config).map_err(GitError::file(&own))?;
        let checkout = Self::at(&tree, repository.trust());
        checkout.git.run(["read-tree", "--reset", "-u", commit])?;
        checkout.write_theirs(common, commit)?;
        Ok(checkout)
    }

    /// One that was made before, with what is in it now.
    pub fn open(tree: &Path, trust: Trust) -> Result<Self, GitError> {
        let tree = tree.canonicalize().map_err(GitError::file(tree))?;
        let own = private_dir(&tree);
        fs::metadata(own.join("config")).map_err(GitError::file(own))?;
        Ok(Self::at(&tree, trust))
    }

    fn at(tree: &Path, trust: Trust) -> Self {
        let own = private_dir(tree);
        let home = match trust {
            Trust::Trusted => std::env::var_os("HOME"),
            Trust::Untrusted => None,
        };
        Self {
            tree: tree.to_owned(),
            git: Git {
                index: own.join("index"),
                objects: own.join("objects"),
                git_dir: own,
                work_tree: Some(tree.to_owned()),
                alternate: None,
                root: tree.to_owned(),
                home,
                view: None,
            },
        }
    }

    /// Its files.
    pub(crate) fn tree(&self) -> &Path {
        &self.tree
    }

    /// Git on its files, by our git directory.
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// Puts the files to the commit; what is ignored stays.
    pub fn reset(&self, commit: &str) -> Result<(), GitError> {
        self.git.run(["read-tree", "--reset", "-u", commit])?;
        // Twice forced: repositories that were made in it go as well.
        self.git.run(["clean", "--quiet", "-ffd"])?;
        Ok(())
    }

    /// Brings everything that is not ignored into our index; nothing that is in a repository within
    /// the tree is run or looked at. A file that cannot be taken is named in the result, and then
    /// nothing is staged.
    pub fn stage_all(&self) -> Result<Staged, GitError> {
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
        for name in zero_separated(&listed.out) {
            if name.ends_with(b"/") {
                let name = String::from_utf8_lossy(&name[..name.len() - 1]).into_owned();
                return Ok(Staged::Nested(name));
            }
            let path = self.tree.join(std::ffi::OsStr::from_bytes(name));
            if path
                .symlink_metadata()
                .is_ok_and(|facts| facts.len() > LARGEST_FILE)
            {
                let name = String::from_utf8_lossy(name).into_owned();
                return Ok(Staged::TooLarge(name));
            }
        }
        let args = ["update-index", "-z", "--add", "--remove", "--stdin"];
        self.git.call(args).input(listed.out).run()?.checked()?;
        Ok(Staged::All)
    }

    /// Removes the tree and our git directory of it.
    pub fn remove(tree: &Path) {
        let _ = fs::remove_dir_all(tree);
        let _ = fs::remove_dir_all(private_dir(tree));
    }

    /// The `.git` that commands in the tree use.
    fn write_theirs(&self, common: &Path, commit: &str) -> Result<(), GitError> {
        let theirs = self.tree.join(".git");
        let config = Format::read(common)?.config();
        skeleton(&theirs, common, &config, commit)
            .and_then(|()| fs::copy(&self.git.index, theirs.join("index")).map(drop))
            .map_err(GitError::file(theirs))
    }
}

/// What became of staging.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Staged {
    /// Everything is in the index.
    All,
    /// There is a repository of its own in this directory.
    Nested(String),
    /// This file is larger than a change may be.
    TooLarge(String),
}

/// What one file of a change may have.
const LARGEST_FILE: u64 = 100 << 20;

/// Beside the tree.
fn private_dir(tree: &Path) -> PathBuf {
    let mut name = OsString::from(tree.file_name().unwrap_or_default());
    name.push(".git-own");
    tree.with_file_name(name)
}

/// An empty repository that reads the objects of another one. A clone would need a branch that has
/// the commit, and copies everything where the other is shallow.
///
/// `HEAD` is detached at the commit, so no branch is needed.
pub(crate) fn skeleton(dir: &Path, common: &Path, config: &str, commit: &str) -> io::Result<()> {
    for name in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        fs::create_dir_all(dir.join(name))?;
    }
    fs::write(dir.join("HEAD"), format!("{commit}\n"))?;
    fs::write(dir.join("config"), config)?;
    let objects = [common.join("objects").as_os_str().as_bytes(), b"\n"].concat();
    fs::write(dir.join("objects/info/alternates"), objects)?;
    // Where its history ends.
    match fs::copy(common.join("shallow"), dir.join("shallow")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
