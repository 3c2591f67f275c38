//! Looking at what commits hold: trees, files, words, differences.
//!
//! Everything is read from commits by id, not from the work tree. What the user has not committed
//! is never seen.

use std::collections::BTreeMap;

use codespar_protocol::{CommitId, FileMode, PullRequest, PullRequestState, RepoPath};

use super::{
    LocalForge,
    git::{Run, parts},
};
use crate::{FileAt, ForgeError, TreeEntry};

impl LocalForge {
    /// Without submodules, and without names that are not text.
    pub(super) async fn tree_at(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, ForgeError> {
        let commit = self.known_commit(commit).await?;
        let args = ["ls-tree", "-r", "-l", "-z", "--full-tree", &commit.0];
        let ran = self.git.run(Run::new(args)).await?;
        let ran = ran.checked("list the files")?;
        Ok(parts(&ran.out).filter_map(entry).collect())
    }

    /// The path is looked up literally and compared with the answer, so a pattern or a directory of
    /// that name gives `None`. A submodule is `None` as well. For a symlink the content is its
    /// target.
    pub(super) async fn file_at(
        &self,
        commit: &CommitId,
        path: &RepoPath,
    ) -> Result<Option<FileAt>, ForgeError> {
        let commit = self.known_commit(commit).await?;
        let args = [
            "ls-tree",
            "-z",
            "--full-tree",
            &commit.0,
            "--",
            path.as_str(),
        ];
        let ran = self.git.run(Run::new(args)).await?;
        let ran = ran.checked("look a file up")?;
        let Some((mode, object)) = parts(&ran.out).find_map(|line| blob(line, path.as_str()))
        else {
            return Ok(None);
        };
        let ran = self
            .git
            .run(Run::new(["cat-file", "blob", &object]))
            .await?;
        let content = ran.checked("read a file")?.out;
        Ok(Some(FileAt { content, mode }))
    }

    /// The full id of a commit that must exist. Also accepts a revision such as `<id>^1`.
    pub(super) async fn known_commit(&self, commit: &CommitId) -> Result<CommitId, ForgeError> {
        let found = self.git.commit_of(&commit.0).await?;
        found.ok_or_else(|| ForgeError::NotFound(format!("commit {commit}")))
    }

    /// Files by how many of the words they have, in their text or their name. In the default
    /// branch, without regard to case. Each word costs one `git grep`; equal words are asked for
    /// once. Files with equally many words are sorted by name.
    pub(super) async fn find_words(
        &self,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<String>, ForgeError> {
        let branch = self.find_default_branch().await?;
        let commit = self.known_head(&branch).await?;
        let names = self.tree_at(&commit).await?;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut asked: Vec<String> = Vec::new();
        for written in words.iter().map(|word| word.trim()) {
            let word = written.to_lowercase();
            if word.is_empty() || asked.contains(&word) {
                continue;
            }
            let mut found = self.files_with(&commit, written, &word).await?;
            let named = names
                .iter()
                .filter(|entry| entry.path.to_lowercase().contains(&word));
            found.extend(named.map(|entry| entry.path.clone()));
            found.sort();
            found.dedup();
            for path in found {
                *counts.entry(path).or_default() += 1;
            }
            asked.push(word);
        }
        let mut ranked: Vec<(String, usize)> = counts.into_iter().collect();
        // Stable: those with as many words stay in the order of names.
        ranked.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Ok(ranked
            .into_iter()
            .take(limit)
            .map(|(path, _)| path)
            .collect())
    }

    /// Git folds the case of ASCII letters only, so a word is asked for in both its forms.
    async fn files_with(
        &self,
        commit: &CommitId,
        written: &str,
        folded: &str,
    ) -> Result<Vec<String>, ForgeError> {
        let args = [
            "grep",
            "-l",
            "-z",
            "-i",
            "-I",
            "-F",
            "--full-name",
            "--no-color",
            "--no-recurse-submodules",
            "-e",
            written,
            "-e",
            folded,
            &commit.0,
        ];
        let ran = self.git.run(Run::new(args)).await?;
        // 1 is git's way to say that there is none.
        let ran = match ran.code {
            Some(1) => return Ok(Vec::new()),
            _ => ran.checked("search the files")?,
        };
        let prefix = format!("{commit}:");
        let path = |line: &[u8]| {
            let line = std::str::from_utf8(line).ok()?;
            Some(line.strip_prefix(&prefix)?.to_owned())
        };
        Ok(parts(&ran.out).filter_map(path).collect())
    }

    /// From where the branches parted to the head. Of a merged pull request it is what it was
    /// before: the side of the base is looked for in its merge. Attributes come from the head
    /// commit, not from files on disk. Renames are detected. Neither external diff programs nor
    /// text conversions run.
    pub(super) async fn diff_of(&self, pull: &PullRequest) -> Result<String, ForgeError> {
        let base = match (&pull.merge_commit, pull.state) {
            (Some(merge), PullRequestState::Merged) => {
                let joined = self.git.commit_of(&format!("{merge}^2")).await?;
                match joined {
                    Some(_) => self.known_commit(&CommitId(format!("{merge}^1"))).await?,
                    None => merge.clone(),
                }
            }
            _ => self.known_head(&pull.base).await?,
        };
        let head = &pull.head_commit;
        let parted = self
            .parting(&base, head)
            .await?
            .unwrap_or_else(|| base.clone());
        let attributes = format!("attr.tree={head}");
        // Plumbing, which does not follow a person's taste in differences.
        let args = [
            "-c",
            &attributes,
            "diff-tree",
            "-p",
            "-r",
            "-M",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            &parted.0,
            &head.0,
        ];
        let ran = self.git.run(Run::new(args)).await?;
        let ran = ran.checked("compare the branches")?;
        Ok(String::from_utf8_lossy(&ran.out).into_owned())
    }

    /// The commit that two have in common. `None` for unrelated histories.
    pub(super) async fn parting(
        &self,
        one: &CommitId,
        other: &CommitId,
    ) -> Result<Option<CommitId>, ForgeError> {
        let run = Run::new(["merge-base", &one.0, &other.0]);
        let ran = self.git.run(run).await?;
        match ran.code {
            Some(0) => Ok(Some(CommitId(ran.text()))),
            Some(1) => Ok(None),
            _ => Err(ran.failure("find where the branches parted")),
        }
    }
}

/// `<mode> <type> <object> <size>\t<path>`.
pub(crate) fn entry(line: &[u8]) -> Option<TreeEntry> {
    let line = std::str::from_utf8(line).ok()?;
    let (about, path) = line.split_once('\t')?;
    let mut about = about.split_ascii_whitespace();
    Some(TreeEntry {
        path: path.to_owned(),
        mode: FileMode::from_git(about.next()?)?,
        size: about.nth(2).and_then(|size| size.parse().ok()),
    })
}

/// Mode and object of the line, if it is of this file. `None` for a directory, a submodule or
/// another path.
fn blob(line: &[u8], path: &str) -> Option<(FileMode, String)> {
    let line = std::str::from_utf8(line).ok()?;
    let (about, found) = line.split_once('\t')?;
    let mut about = about.split_ascii_whitespace();
    let mode = FileMode::from_git(about.next()?)?;
    let object = about.nth(1)?;
    (found == path).then(|| (mode, object.to_owned()))
}
