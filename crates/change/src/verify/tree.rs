//! A throw-away copy of a repository at one commit, in which tests run.

use std::path::{Path, PathBuf};

use codespar_git::{Checkout, GitError, Repository, Trust, zero_separated};
use codespar_protocol::{ChangeSet, CommitId};
use codespar_tools::sandbox::Layers;

use crate::{TreeError, apply};

/// The mode of a repository within another, as git writes it.
pub(super) const SUBMODULE: &str = "160000";

/// The copy. It goes when this is dropped. Removing it can take seconds: whoever drops one in async
/// code does it on a blocking thread.
pub struct Tree {
    path: PathBuf,
    checkout: Checkout,
    commit: CommitId,
    stays: bool,
    missing_submodules: Vec<String>,
}

impl Tree {
    /// Makes it, in place of one that an earlier attempt left.
    pub fn open(
        clone: &Path,
        path: &Path,
        commit: &CommitId,
        trust: Trust,
    ) -> Result<Self, TreeError> {
        let repository = Repository::find(clone, trust).map_err(broken)?;
        Layers::remove(path);
        let made = Checkout::create(&repository, path, &commit.0).and_then(|checkout| {
            let missing = checkout.add_submodules(&repository)?;
            Ok((checkout, missing))
        });
        if made.is_err() {
            Checkout::remove(path);
        }
        let (checkout, missing_submodules) = made.map_err(broken)?;
        Ok(Self {
            path: path.to_path_buf(),
            checkout,
            commit: commit.clone(),
            stays: false,
            missing_submodules,
        })
    }

    /// Says which of its files Git LFS keeps elsewhere and did not bring.
    pub fn lfs_note(&self) -> Option<String> {
        // Whoever cannot be asked about them has nothing to say of them.
        lfs_note(&self.checkout.git().lfs_pointers().unwrap_or_default())
    }

    /// The paths of submodules that this machine does not have.
    pub fn missing_submodules(&self) -> &[String] {
        &self.missing_submodules
    }

    /// Leaves it there for whoever works in it.
    pub fn keep(mut self) {
        self.stays = true;
    }

    /// Removes a copy that was kept, and our records of it.
    pub fn remove(path: &Path) {
        Checkout::remove(path);
        Layers::remove(path);
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the files to the commit with these changes; what is ignored (build output) stays. Build
    /// output of an earlier run makes the next one fast. What is neither in the commit nor ignored
    /// goes, also repositories that a test made.
    pub fn set(&self, changes: &ChangeSet) -> Result<(), TreeError> {
        self.checkout.reset(&self.commit.0).map_err(broken)?;
        apply::write(&self.path, changes)
            .map_err(|error| TreeError::Broken(format!("the throw-away tree: {error}")))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.stays {
            Self::remove(&self.path);
        }
    }
}

/// One line about files that Git LFS keeps elsewhere and that were not brought in.
pub fn lfs_note(pointers: &[String]) -> Option<String> {
    let first = pointers.first()?;
    let count = match pointers.len() {
        1 => "1 file is".to_owned(),
        count => format!("{count} files are"),
    };
    Some(format!(
        "{count} kept by Git LFS ({first} …): pointers stand in for them, because the repository is \
         not trusted (`codespar trust add`) or they could not be had"
    ))
}

#[expect(clippy::needless_pass_by_value, reason = "a function for `map_err`")]
pub(super) fn broken(error: GitError) -> TreeError {
    TreeError::Broken(error.to_string())
}

/// Whether a clone has a commit.
pub fn has_commit(clone: &Path, commit: &CommitId) -> Result<bool, TreeError> {
    let repository = Repository::find(clone, Trust::Untrusted).map_err(broken)?;
    let git = repository.git().map_err(broken)?;
    Ok(git.commit_id(&commit.0).map_err(broken)?.is_some())
}

/// The repositories within a commit.
pub fn submodules(clone: &Path, commit: &CommitId) -> Result<Vec<String>, TreeError> {
    let repository = Repository::find(clone, Trust::Untrusted).map_err(broken)?;
    let git = repository.git().map_err(broken)?;
    git.check_size(&commit.0).map_err(broken)?;
    let args = ["ls-tree", "-r", "-z", "--full-tree", &commit.0];
    let listed = git.run(args).map_err(broken)?;
    let name = |line: &[u8]| {
        let line = std::str::from_utf8(line).ok()?;
        let (about, name) = line.split_once('\t')?;
        about.starts_with(SUBMODULE).then(|| name.to_owned())
    };
    Ok(zero_separated(&listed.out).filter_map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(dir: &Path, args: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .arg("-C")
            .arg(dir)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
            .args(args)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {message}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn commit(dir: &Path, name: &str) -> CommitId {
        std::fs::write(dir.join(name), name).unwrap();
        run(dir, &["add", "."]);
        run(dir, &["commit", "--quiet", "--no-gpg-sign", "-m", name]);
        CommitId(run(dir, &["rev-parse", "HEAD"]).trim().to_owned())
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".git")
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_tree_is_made_of_shallow_detached_and_sha_256_repositories_and_from_within_them() {
        for format in ["sha1", "sha256"] {
            let dir = tempfile::tempdir().unwrap();
            let full = dir.path().join("full");
            std::fs::create_dir(&full).unwrap();
            let format = format!("--object-format={format}");
            run(&full, &["init", "--quiet", "-b", "main", &format]);
            commit(&full, "one");
            run(&full, &["switch", "--quiet", "-c", "side"]);
            commit(&full, "side");
            run(&full, &["switch", "--quiet", "main"]);
            let head = commit(&full, "two");

            let shallow = dir.path().join("shallow");
            let url = format!("file://{}", full.display());
            let to = shallow.to_str().unwrap();
            let args = ["clone", "--quiet", "--depth=1", "--no-single-branch"];
            run(dir.path(), &[&args[..], &[&url, to]].concat());
            // The commit is on no branch that is checked out.
            run(
                &shallow,
                &["checkout", "--quiet", "--detach", "origin/side"],
            );
            let within = full.join("below");
            std::fs::create_dir(&within).unwrap();
            for clone in [&shallow, &within] {
                let path = dir.path().join("tree");
                let tree = Tree::open(clone, &path, &head, Trust::Untrusted).unwrap();
                assert_eq!(names(&path), ["one", "two"], "{}", clone.display());
                assert_eq!(run(&path, &["remote"]), "");
                drop(tree);
                assert!(!path.exists());
            }
        }
    }
}
