//! Asks git: trees, texts and history.
//!
//! Only trees, blobs and commit messages are read, and only by object name, so the configuration of
//! the repository has no say. A name is turned into a full commit name once; all later calls use
//! that.

use std::{
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use codespar_git::{GitCall, GitError, GitLimits, Repository, Trust, zero_separated};

use crate::LocateError;

/// The list of a commit's files: some ten times the largest repositories that are worked on. The
/// list is held in memory as a whole.
const LIST: GitLimits = GitLimits {
    bytes: 256 << 20,
    time: Duration::from_secs(60),
    memory: 2 << 30,
};
/// More files than this are not ranked.
const MOST_FILES: usize = 2_000_000;
/// The texts of a commit's files. They come one at a time and are cut, so the bytes are not held in
/// memory.
const TEXTS: GitLimits = GitLimits {
    bytes: 16 << 30,
    time: Duration::from_secs(300),
    memory: 4 << 30,
};
/// What past commits said. Without it less is known, but files are still found.
const LOG: GitLimits = GitLimits {
    bytes: 64 << 20,
    time: Duration::from_secs(30),
    memory: 512 << 20,
};

/// A repository: a work tree, a directory in one, or a git directory without one. Making it starts
/// nothing and cannot fail: a directory without git is indexed too, without history.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    root: PathBuf,
    scope: Scope,
    /// Found when first asked.
    found: OnceLock<(codespar_git::Git, PathBuf)>,
}

/// Which part of the repository paths are of, and relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The directory alone.
    Directory,
    /// All of it, wherever in it the directory is.
    Whole,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) path: String,
    pub(crate) object: String,
}

impl Git {
    pub(crate) fn new(root: &Path, scope: Scope) -> Self {
        Self {
            root: root.to_owned(),
            scope,
            found: OnceLock::new(),
        }
    }

    /// Git, and where in its work tree the directory is. Only objects are read, so nothing of the
    /// repository has to be trusted.
    fn find(&self) -> Result<&(codespar_git::Git, PathBuf), LocateError> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let find = || {
            let repository = Repository::find(&self.root, Trust::Untrusted)?;
            let top = repository.location().work_tree.as_deref();
            let below = top.and_then(|top| self.root.strip_prefix(top).ok());
            let below = below.unwrap_or(Path::new("")).to_owned();
            Ok((repository.git()?, below))
        };
        let found = find().map_err(|error| self.failed(error))?;
        Ok(self.found.get_or_init(|| found))
    }

    fn failed(&self, source: GitError) -> LocateError {
        LocateError::Git {
            path: self.root.clone(),
            source,
        }
    }

    /// The full name of a commit.
    pub(crate) fn commit(&self, name: &str) -> Result<String, LocateError> {
        let unknown = || LocateError::Commit {
            commit: name.to_owned(),
            path: self.root.clone(),
        };
        let found = self.find()?.0.commit_id(name);
        found
            .map_err(|error| self.failed(error))?
            .ok_or_else(unknown)
    }

    /// The files of the directory that are in git's index, whether or not they are there.
    pub(crate) fn tracked(&self) -> Result<Vec<String>, LocateError> {
        let below = self.find()?.1.to_string_lossy().into_owned();
        let output = self.output(&["ls-files", "-z"], LIST)?;
        let relative = |path: &[u8]| {
            let path = std::str::from_utf8(path).ok()?;
            let path = match below.as_str() {
                "" => path,
                below => path.strip_prefix(below)?.strip_prefix('/')?,
            };
            Some(path.to_owned())
        };
        Ok(zero_separated(&output).filter_map(relative).collect())
    }

    /// All files of a commit, without links and submodules, in the order of git.
    ///
    /// A name that is not UTF-8 cannot be told to a model or written in JSON: it is left out.
    pub(crate) fn files(&self, commit: &str) -> Result<Vec<Blob>, LocateError> {
        let output = self.output(&["ls-tree", "-r", "-z", "--full-tree", commit], LIST)?;
        if zero_separated(&output).count() > MOST_FILES {
            return Err(self.failed(GitError::TooManyFiles {
                commit: commit.to_owned(),
                limit: MOST_FILES,
            }));
        }
        Ok(zero_separated(&output).filter_map(blob).collect())
    }

    /// Calls `visit` with the number and the text of each object that is there; a text is
    /// cut at `limit`.
    ///
    /// One `git cat-file --batch` serves all objects of a call. An object that is missing is
    /// skipped, not an error: in a partial clone it is not fetched.
    pub(crate) fn texts(
        &self,
        objects: &[&str],
        limit: usize,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), LocateError> {
        if objects.is_empty() {
            return Ok(());
        }
        let args = ["cat-file", "--batch", "--buffer"];
        let mut request = objects.join("\n");
        request.push('\n');
        let call = self.find()?.0.call(args).input(request).limits(TEXTS);
        let mut stream = call.stream().map_err(|error| self.failed(error))?;
        let reader = BufReader::with_capacity(1 << 17, &mut stream);
        let read = read_batch(reader, limit, visit);
        let ended = stream.end().map_err(|error| self.failed(error))?;
        let message = match read {
            Ok(()) if ended => return Ok(()),
            Ok(()) => "git failed".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(self.failed(GitError::Failed {
            command: args.join(" "),
            message,
        }))
    }

    /// The newest commits up to `tip` without merges: raw records, see [`crate::history`].
    pub(crate) fn log(&self, tip: &str, most: usize) -> Result<Vec<u8>, LocateError> {
        let most = format!("--max-count={most}");
        let call = self.log_call(&[&most, tip, "--"])?;
        self.checked(call)
    }

    /// The records of these commits alone, in no order.
    pub(crate) fn log_of(&self, commits: &[&str]) -> Result<Vec<u8>, LocateError> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let mut request = commits.join("\n");
        request.push('\n');
        let call = self.log_call(&["--no-walk=unsorted", "--stdin"])?;
        self.checked(call.input(request))
    }

    /// The names of the commits of [`Git::log`], in its order.
    pub(crate) fn newest(&self, tip: &str, most: usize) -> Result<Vec<String>, LocateError> {
        let most = format!("--max-count={most}");
        let output = self.output(&["rev-list", "--no-merges", &most, tip, "--"], LOG)?;
        let text = String::from_utf8_lossy(&output);
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn log_call(&self, which: &[&str]) -> Result<GitCall, LocateError> {
        let (git, below) = self.find()?;
        let below = below.to_string_lossy();
        let relative = match self.scope {
            Scope::Directory if !below.is_empty() => format!("--relative={below}/"),
            _ => "--no-relative".to_owned(),
        };
        let mut args = vec![
            "log",
            "-z",
            "--no-merges",
            "--no-renames",
            "--no-ext-diff",
            "--no-color",
            "--no-notes",
            "--no-mailmap",
            &relative,
            "--name-only",
            "--format=format:%x01%H%x02%s%n%b%x02",
        ];
        args.extend(which);
        Ok(git.call(args).limits(LOG))
    }

    /// The files of a commit that have a text, in any case of letters.
    pub(crate) fn files_with(&self, commit: &str, text: &str) -> Result<Vec<String>, LocateError> {
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
            text,
            commit,
        ];
        let call = self.find()?.0.call(args).limits(LOG);
        let output = call.run().map_err(|error| self.failed(error))?;
        // 1 is git's way to say that there is none.
        if output.code == Some(1) {
            return Ok(Vec::new());
        }
        let output = output.checked().map_err(|error| self.failed(error))?;
        let prefix = format!("{commit}:");
        let paths = zero_separated(&output.out).filter_map(|row| {
            let row = std::str::from_utf8(row).ok()?;
            Some(row.strip_prefix(&prefix)?.to_owned())
        });
        Ok(paths.collect())
    }

    fn output(&self, args: &[&str], limits: GitLimits) -> Result<Vec<u8>, LocateError> {
        self.checked(self.find()?.0.call(args).limits(limits))
    }

    fn checked(&self, call: GitCall) -> Result<Vec<u8>, LocateError> {
        let output = call.run().and_then(codespar_git::Output::checked);
        Ok(output.map_err(|error| self.failed(error))?.out)
    }
}

/// A row of `ls-tree`. Modes that begin with `100` are regular files; links (`120000`) and
/// submodules (`160000`) are not:
///
/// ```text
/// 100644 blob <object>\t<path>
/// ```
pub(crate) fn blob(row: &[u8]) -> Option<Blob> {
    let row = std::str::from_utf8(row).ok()?;
    let (facts, path) = row.split_once('\t')?;
    let mut facts = facts.split(' ');
    let mode = facts.next()?;
    let object = facts.nth(1)?;
    mode.starts_with("100").then(|| Blob {
        path: path.to_owned(),
        object: object.to_owned(),
    })
}

/// The answers of `cat-file --batch`, in the order of the request; the number passed to `visit` is
/// that of the request. What is beyond `limit` is read and dropped, because the next header comes
/// after it:
///
/// ```text
/// <object> <type> <size>\n<content>\n
/// <object> missing\n
/// ```
pub(crate) fn read_batch(
    mut from: impl BufRead,
    limit: usize,
    visit: &mut dyn FnMut(usize, &[u8]),
) -> io::Result<()> {
    let mut header = String::new();
    let mut text = Vec::new();
    for number in 0.. {
        header.clear();
        if from.read_line(&mut header)? == 0 {
            break;
        }
        // `<object> missing` has no size and no text.
        let size = header
            .trim_end()
            .split(' ')
            .nth(2)
            .and_then(|size| size.parse().ok());
        let Some(size): Option<u64> = size else {
            continue;
        };
        let kept = size.min(limit as u64);
        text.clear();
        from.by_ref().take(kept).read_to_end(&mut text)?;
        io::copy(&mut from.by_ref().take(size - kept + 1), &mut io::sink())?;
        visit(number, &text);
    }
    Ok(())
}
