//! A throw-away copy of a repository at one commit, in which tests run.
//!
//! It borrows the objects of the person's repository and shares nothing else with it: neither a
//! worktree entry nor a lock is left there, whatever happens to us.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use codespar_protocol::{ChangeSet, CommitId};

use crate::{Failure, apply};

/// What would point git at another repository than the one we name.
const FOREIGN: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// The mode of a repository within another, as git writes it.
pub(crate) const SUBMODULE: &str = "160000";

/// The copy. It goes when this is dropped.
pub(crate) struct Tree {
    path: PathBuf,
    commit: CommitId,
    stays: bool,
}

impl Tree {
    /// Makes it, in place of one that an earlier attempt left.
    pub(crate) fn open(clone: &Path, path: &Path, commit: &CommitId) -> Result<Self, Failure> {
        let _ = std::fs::remove_dir_all(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|error| Failure::Broken(format!("{}: {error}", parent.display())))?;
        }
        let tree = Self {
            path: path.to_path_buf(),
            commit: commit.clone(),
            stays: false,
        };
        borrow(clone, path)?;
        git(path, &["checkout", "--quiet", "--detach", &commit.0])?;
        Ok(tree)
    }

    /// Leaves it there for whoever works in it.
    pub(crate) fn keep(mut self) {
        self.stays = true;
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the files to the commit with these changes; what is ignored (build output) stays.
    pub(crate) fn set(&self, changes: &ChangeSet) -> Result<(), Failure> {
        git(&self.path, &["reset", "--quiet", "--hard", &self.commit.0])?;
        // Twice forced: repositories that a test made go as well.
        git(&self.path, &["clean", "--quiet", "-ffd"])?;
        apply::write(&self.path, changes)
            .map_err(|error| Failure::Broken(format!("the throw-away tree: {error}")))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.stays {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// An empty repository that reads the objects of another one. A clone would need a branch that
/// has the commit, and copies everything where the other is shallow.
fn borrow(clone: &Path, path: &Path) -> Result<(), Failure> {
    let line = |args: &[&str]| git(clone, args).map(|out| out.trim_end_matches('\n').to_owned());
    let common = line(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    let format = line(&["rev-parse", "--show-object-format"])?;
    let format = format!("--object-format={format}");
    git(
        clone,
        &["init", "--quiet", &format, &path.to_string_lossy()],
    )?;
    let common = Path::new(&common);
    let lend = || -> std::io::Result<()> {
        let info = path.join(".git/objects/info");
        std::fs::create_dir_all(&info)?;
        let objects = format!("{}\n", common.join("objects").display());
        std::fs::write(info.join("alternates"), objects)?;
        // Where its history ends.
        match std::fs::copy(common.join("shallow"), path.join(".git/shallow")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    };
    lend().map_err(|error| Failure::Broken(format!("{}: {error}", path.display())))
}

/// The repositories within a commit.
pub(crate) fn submodules(clone: &Path, commit: &CommitId) -> Result<Vec<String>, Failure> {
    let args = ["ls-tree", "-r", "-z", "--full-tree", &commit.0];
    let listed = git_bytes(clone, &args)?;
    let name = |line: &[u8]| {
        let line = std::str::from_utf8(line).ok()?;
        let (about, name) = line.split_once('\t')?;
        about.starts_with(SUBMODULE).then(|| name.to_owned())
    };
    Ok(listed.split(|byte| *byte == 0).filter_map(name).collect())
}

/// Runs git for its words.
pub(crate) fn git(dir: &Path, args: &[&str]) -> Result<String, Failure> {
    let out = git_bytes(dir, args)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Runs git without hooks and watchers, which are not ours to run.
pub(crate) fn git_bytes(dir: &Path, args: &[&str]) -> Result<Vec<u8>, Failure> {
    let mut command = Command::new("git");
    for name in FOREIGN {
        command.env_remove(name);
    }
    let output = command
        .arg("-C")
        .arg(dir)
        .args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor="])
        .args([
            "-c",
            "core.quotepath=off",
            "-c",
            "advice.detachedHead=false",
        ])
        .args(args)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| Failure::Broken(format!("git could not be run: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Broken(format!(
        "git {}: {}",
        args[0],
        words.trim()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(dir: &Path, args: &[&str]) -> String {
        let who = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"];
        git(dir, &[&who[..], args].concat()).unwrap()
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
                let tree = Tree::open(clone, &path, &head).unwrap();
                assert_eq!(names(&path), ["one", "two"], "{}", clone.display());
                assert_eq!(run(&path, &["remote"]), "");
                drop(tree);
                assert!(!path.exists());
            }
        }
    }
}
