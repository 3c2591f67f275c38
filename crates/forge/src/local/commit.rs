//! Making a commit on a branch without a work tree.
//!
//! The user's index and files are not involved: a temporary index is read from the parent, changed,
//! and written as a tree. The order of steps is what makes it safe to be interrupted:
//!
//! 1. objects are written apart from the repository
//! 2. they enter it as a pack that garbage collection leaves alone
//! 3. the branch moves, if it still is where it was
//! 4. the commit is checked for missing objects; if some are, the branch moves back
//!
//! Before step 3 nothing is visible. After it the key in the message lets a repeated call find the
//! commit.

use std::collections::BTreeSet;

use codespar_protocol::{ChangeSet, CommitId, FileChange};

use super::{
    LocalForge, branches,
    git::{Apart, Place, Run, parts},
    message::{has_line, key_line, with_line},
};
use crate::{ForgeError, NewCommit};

impl LocalForge {
    /// Refused for the default branch and for a branch that is checked out somewhere: moving it
    /// would make the work tree there look changed. Errors: [`ForgeError::Moved`] if the branch is
    /// at another commit than the parent, [`ForgeError::NotFound`] if the parent does not exist.
    pub(super) async fn make_commit(&self, new: &NewCommit) -> Result<CommitId, ForgeError> {
        self.check_name(&new.branch)?;
        if new.branch == self.find_default_branch().await? {
            return Err(ForgeError::Refused(format!(
                "{} is the default branch; changes go on a branch of their own",
                new.branch
            )));
        }
        let parent = self.known_commit(&new.parent).await?;
        let at = self.branch_head(&new.branch).await?;
        if let Some(made) = self.made_before(new, &parent, at.as_ref()).await? {
            self.check_whole(&made, &[&parent]).await?;
            return Ok(made);
        }
        if let Some(found) = at.as_ref().filter(|found| **found != parent) {
            return Err(moved(new, found, &parent));
        }
        if let [tree, ..] = &self.work_trees_of(&new.branch).await?[..] {
            return Err(branches::in_use(&new.branch, &tree.path));
        }
        let apart = Apart::open(&self.git, self.repository.location()).await?;
        let files = match &new.merged {
            Some(merged) => self.known_commit(merged).await?,
            None => parent.clone(),
        };
        let tree = self.changed_tree(&apart.git, &files, &new.changes).await?;
        let message = with_line(&new.message, &key_line(&new.key));
        let mut args = vec!["commit-tree", &tree, "-p", &parent.0];
        if new.merged.is_some() {
            args.extend(["-p", &files.0]);
        }
        args.extend(["-F", "-"]);
        let run = Run::new(args)
            .author(new.author.as_ref().unwrap_or(&self.who))
            .committer(&self.who)
            .input(message);
        let commit = self.commit_tree(&apart.git, "make the commit", run).await?;
        let kept = apart.keep().await?;
        let moving = self.move_branch(&new.branch, at.as_ref(), &commit).await;
        let Err(failure) = moving else {
            let whole = self.check_whole(&commit, &[&parent, &files]).await;
            if whole.is_err() {
                self.move_back(&new.branch, at.as_ref(), &commit).await?;
            }
            return whole.map(|()| commit);
        };
        drop(kept);
        // Someone was faster: with the same commit, perhaps.
        let at = self.branch_head(&new.branch).await?;
        if let Some(made) = self.made_before(new, &parent, at.as_ref()).await? {
            return Ok(made);
        }
        match at {
            Some(found) if found != parent => Err(moved(new, &found, &parent)),
            _ => Err(failure),
        }
    }

    /// The commit of this key on top of the parent, if the branch has it. All commits between the
    /// parent and the branch are read. The commit must have the parent as its only parent, or as the
    /// first one if it is a merge; with other commits on top it is still found.
    async fn made_before(
        &self,
        new: &NewCommit,
        parent: &CommitId,
        at: Option<&CommitId>,
    ) -> Result<Option<CommitId>, ForgeError> {
        let Some(at) = at.filter(|at| *at != parent) else {
            return Ok(None);
        };
        let range = format!("{parent}..{at}");
        let format = "--format=%H%x00%P%x00%B%x00";
        let run = Run::new(["log", "--no-show-signature", "--no-color", format, &range]);
        let ran = self.git.run(run).await?;
        let text = String::from_utf8_lossy(&ran.checked("read the history")?.out).into_owned();
        let line = key_line(&new.key);
        let expected = match &new.merged {
            Some(merged) => format!("{parent} {merged}"),
            None => parent.0.clone(),
        };
        let fields: Vec<&str> = text.split('\0').collect();
        let made = fields.chunks_exact(3).find_map(|commit| match commit {
            [id, parents, message] if *parents == expected && has_line(message, &line) => {
                Some(CommitId(id.trim().to_owned()))
            }
            _ => None,
        });
        Ok(made)
    }

    /// The parent's tree with the changes, through an index of its own. Returns the id of the tree.
    /// The index lives in a temporary directory that is removed at the end, also after an error.
    async fn changed_tree(
        &self,
        git: &Place,
        parent: &CommitId,
        changes: &ChangeSet,
    ) -> Result<String, ForgeError> {
        self.check_changes(parent, changes).await?;
        let scratch = tempfile::tempdir().map_err(|error| ForgeError::Unavailable {
            what: "make a temporary directory".to_owned(),
            reason: error.to_string(),
        })?;
        let index = scratch.path().join("index");
        let with_index = |run: Run| run.env("GIT_INDEX_FILE", index.as_os_str());
        let run = with_index(Run::new(["read-tree", &parent.0]));
        git.text("read the tree", run).await?;
        let lines = self.index_lines(git, parent, changes).await?;
        let run = with_index(Run::new(["update-index", "-z", "--index-info"])).input(lines);
        git.text("change the tree", run).await?;
        // Objects that a partial clone has not fetched are none of ours.
        let run = with_index(Run::new(["write-tree", "--missing-ok"]));
        git.text("write the tree", run).await
    }

    /// What goes, then what comes, so that a file can make room for a directory. In the format of
    /// `git update-index --index-info`: mode 0 removes a path. Content is stored as it is, without
    /// filters or conversion of line ends.
    async fn index_lines(
        &self,
        git: &Place,
        parent: &CommitId,
        changes: &ChangeSet,
    ) -> Result<Vec<u8>, ForgeError> {
        let nothing = "0".repeat(parent.0.len());
        let mut lines = Vec::new();
        for path in changes.0.iter().filter_map(FileChange::gone) {
            lines.extend(format!("0 {nothing}\t{path}\0").bytes());
        }
        for (path, content, mode) in changes.0.iter().filter_map(FileChange::after) {
            let run =
                Run::new(["hash-object", "-w", "--stdin", "--no-filters"]).input(content.0.clone());
            let object = git.text("write a file", run).await?;
            lines.extend(format!("{} {object}\t{path}\0", mode.as_git()).bytes());
        }
        Ok(lines)
    }

    /// Git would do as told, and lose files that are in the way. Each change must fit the parent:
    /// what is modified or removed must exist, what is added must not, and no file may stand where
    /// a directory is needed. The change set is refused as a whole.
    async fn check_changes(
        &self,
        parent: &CommitId,
        changes: &ChangeSet,
    ) -> Result<(), ForgeError> {
        let args = [
            "ls-tree",
            "-r",
            "-z",
            "--name-only",
            "--full-tree",
            &parent.0,
        ];
        let ran = self.git.run(Run::new(args)).await?;
        let ran = ran.checked("list the files")?;
        let mut names: BTreeSet<Vec<u8>> = parts(&ran.out).map(<[u8]>::to_vec).collect();
        for path in changes.0.iter().filter_map(FileChange::gone) {
            if !names.remove(path.as_str().as_bytes()) {
                return Err(ForgeError::Refused(format!(
                    "{path} is to go, but {} does not have it",
                    parent.short()
                )));
            }
        }
        for change in &changes.0 {
            let Some((path, ..)) = change.after() else {
                continue;
            };
            let known = names.contains(path.as_str().as_bytes());
            if known != matches!(change, FileChange::Modified { .. }) {
                let there = if known {
                    "is there already"
                } else {
                    "is not there"
                };
                let word = change.word();
                return Err(ForgeError::Refused(format!(
                    "{path} is to be {word}, but it {there} in {}",
                    parent.short()
                )));
            }
            names.insert(path.as_str().as_bytes().to_vec());
        }
        let added = changes.0.iter().filter_map(FileChange::after);
        let clash = added
            .into_iter()
            .find_map(|(path, ..)| in_the_way(&names, path.as_str()));
        match clash {
            Some((file, below)) => Err(ForgeError::Refused(format!(
                "{file} cannot be a file and have {below} below it"
            ))),
            None => Ok(()),
        }
    }
}

impl LocalForge {
    /// Every object of a commit that its parents do not have is there. Objects that a partial clone
    /// promises to fetch later may be absent.
    pub(super) async fn check_whole(
        &self,
        commit: &CommitId,
        parents: &[&CommitId],
    ) -> Result<(), ForgeError> {
        let mut args = vec![
            "rev-list",
            "--objects",
            "--quiet",
            "--missing=allow-promisor",
        ];
        args.extend([commit.0.as_str(), "--not"]);
        args.extend(parents.iter().map(|parent| parent.0.as_str()));
        let ran = self.git.run(Run::new(args)).await?;
        match ran.code {
            Some(0) => Ok(()),
            _ => Err(ForgeError::Unavailable {
                what: format!("check commit {}", commit.short()),
                reason: format!(
                    "objects of it are missing; look at the repository with `git fsck`, then try \
                     again: {}",
                    ran.message.trim()
                ),
            }),
        }
    }
}

/// A file and one below it, where the path is one of the two. Looks for a file among the
/// directories of the path, then for a file below the path itself. The names are sorted, so the
/// second is one lookup.
fn in_the_way(names: &BTreeSet<Vec<u8>>, path: &str) -> Option<(String, String)> {
    for (at, _) in path.match_indices('/') {
        if names.contains(&path.as_bytes()[..at]) {
            return Some((path[..at].to_owned(), path.to_owned()));
        }
    }
    let below = format!("{path}/").into_bytes();
    let next = names.range(below.clone()..).next()?;
    next.starts_with(&below)
        .then(|| (path.to_owned(), String::from_utf8_lossy(next).into_owned()))
}

fn moved(new: &NewCommit, found: &CommitId, expected: &CommitId) -> ForgeError {
    ForgeError::Moved {
        branch: new.branch.clone(),
        found: found.clone(),
        expected: expected.clone(),
    }
}

impl LocalForge {
    /// The highest number that the repository keeps a head for: of another state directory, or of
    /// the time before it was moved. A new pull request gets a higher number, so that two databases
    /// that know the same repository do not give one number twice.
    pub(super) async fn highest_kept(&self) -> Result<u64, ForgeError> {
        let run = Run::new(["for-each-ref", "--format=%(refname)", "refs/codespar/pull/"]);
        let names = self.git.text("list kept heads", run).await?;
        let number = |name: &str| -> Option<u64> {
            let rest = name.strip_prefix("refs/codespar/pull/")?;
            rest.split('/').next()?.parse().ok()
        };
        Ok(names.lines().filter_map(number).max().unwrap_or(0))
    }

    /// Keeps a head's commits from being collected when its branch is gone. Overwrites the head
    /// kept before, if any.
    pub(super) async fn keep_head(&self, number: u64, head: &CommitId) -> Result<(), ForgeError> {
        let name = format!("refs/codespar/pull/{number}/head");
        let run = Run::new(["update-ref", "--no-deref", &name, &head.0]).committer(&self.who);
        self.git.text("keep the head", run).await?;
        Ok(())
    }
}
