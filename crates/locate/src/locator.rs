//! Opens a repository and answers which files an instruction is about.

use std::path::{Path, PathBuf};

use crate::{
    IndexProgress, LocateError, Ranked,
    cache::Cache,
    commit::CommitTree,
    git::{Git, Scope},
    history::History,
    index::{Index, Listed, Texts},
    overview,
    rank::{self, Candidate},
    worktree::WorkTree,
};

/// A repository that is indexed. It does not follow later changes: to see them, open it again,
/// which costs little with a cache.
#[derive(Debug)]
pub struct Locator {
    index: Index,
}

impl Locator {
    /// Indexes a directory as it is now, a git work tree or not. What git ignores is left out,
    /// unless it is tracked all the same.
    ///
    /// With a `cache_dir` the index is kept there, and only files whose size or time changed are
    /// read again. A cache that is damaged or of another version is made anew.
    pub fn open(root: &Path, cache_dir: Option<&Path>) -> Result<Self, LocateError> {
        Self::open_counted(root, cache_dir, &IndexProgress::default())
    }

    /// The same as [`Locator::open`], with a count of the files for another thread to show.
    pub fn open_counted(
        root: &Path,
        cache_dir: Option<&Path>,
        progress: &IndexProgress,
    ) -> Result<Self, LocateError> {
        let root = real(root)?;
        let cache = Cache::new(cache_dir, &format!("tree {}", root.display()));
        let tree = WorkTree::new(&root);
        let git = Git::new(&root, Scope::Directory);
        let (tip, tracked, old, listed) = std::thread::scope(|scope| {
            // Without git, or before the first commit, there is no history.
            let tip = scope.spawn(|| git.commit("HEAD").unwrap_or_default());
            let tracked = scope.spawn(|| git.tracked().unwrap_or_default());
            let old = cache.load().unwrap_or_default();
            let listed = tree.list(&old);
            let tracked = tracked.join().unwrap_or_default();
            (tip.join().unwrap_or_default(), tracked, old, listed)
        });
        let (mut files, directories) = listed?;
        tree.add_tracked(&mut files, &tracked);
        let is_same = old.is_of(&files) && old.history.tip == tip;
        if is_same && old.directories == directories {
            return Ok(Self { index: old });
        }
        let mut index = match is_same {
            true => old,
            false => refreshed(&old, files, &tree, progress, &git, &tip)?,
        };
        index.directories = directories;
        cache.store(&index);
        Ok(Self { index })
    }

    /// Indexes the tree of a commit, without a checkout. `repository` is a work tree or a git
    /// directory; `commit` any name of a commit. Paths are from the top of the repository.
    /// Nothing that is newer than the commit is looked at.
    ///
    /// With a `cache_dir` the index of the last commit is kept there, and only what differs is
    /// read for another one.
    pub fn at_commit(
        repository: &Path,
        commit: &str,
        cache_dir: Option<&Path>,
    ) -> Result<Self, LocateError> {
        let root = real(repository)?;
        let git = Git::new(&root, Scope::Whole);
        let cache = Cache::new(cache_dir, &format!("commit {}", root.display()));
        let (tip, old) = std::thread::scope(|scope| {
            let old = scope.spawn(|| cache.load().unwrap_or_default());
            (git.commit(commit), old.join().unwrap_or_default())
        });
        let tip = tip?;
        if old.history.tip == tip {
            return Ok(Self { index: old });
        }
        let (tree, listed) = CommitTree::read(&git, &tip)?;
        let unseen = IndexProgress::default();
        let index = refreshed(&old, listed, &tree, &unseen, &git, &tip)?;
        cache.store(&index);
        Ok(Self { index })
    }

    /// The paths of all files, in order, from the root with forward slashes.
    pub fn paths(&self) -> impl Iterator<Item = &str> + Clone {
        self.index
            .files
            .iter()
            .map(|file| file.listed.path.as_str())
    }

    /// The first `n` files that an instruction is about, the best first. Fewer, or none, if
    /// nothing speaks for more.
    pub fn rank(&self, instruction: &str, n: usize) -> Vec<Ranked> {
        rank::rank(&self.index, instruction, n)
    }

    /// The files that an instruction may be about with what speaks for each, at least `n` if there
    /// are so many: for choosing weights.
    pub fn candidates(&self, instruction: &str, n: usize) -> Vec<Candidate> {
        rank::candidates(&self.index, instruction, n)
    }

    /// The directories, one a line with the number of files and their usual extensions, as deep
    /// as `max_lines` allow.
    pub fn overview(&self, max_lines: usize) -> String {
        overview::overview(&self.paths(), max_lines)
    }
}

fn real(root: &Path) -> Result<PathBuf, LocateError> {
    root.canonicalize().map_err(|source| LocateError::Root {
        path: root.to_owned(),
        source,
    })
}

/// Reads texts and history at the same time.
fn refreshed(
    old: &Index,
    listed: Vec<Listed>,
    texts: &dyn Texts,
    progress: &IndexProgress,
    git: &Git,
    tip: &str,
) -> Result<Index, LocateError> {
    let (history, index) = std::thread::scope(|scope| {
        let history = scope.spawn(|| past_of(git, tip, &old.history));
        let index = old.refreshed(listed, texts, progress);
        (history.join().unwrap_or_default(), index)
    });
    Ok(Index { history, ..index? })
}

/// No tip means no history. One that cannot be read is remembered as empty under its tip, so that
/// the next opening does not try again.
fn past_of(git: &Git, tip: &str, old: &History) -> History {
    if tip.is_empty() {
        return History::default();
    }
    // A shallow or damaged history is no reason to find nothing.
    History::read(git, tip, old).unwrap_or_else(|_| History {
        tip: tip.to_owned(),
        commits: Vec::new(),
    })
}
