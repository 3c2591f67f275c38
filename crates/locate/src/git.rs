//! Asks the `git` command: trees, texts and history.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::LocateError;

/// A repository: a work tree, a directory in one, or a git directory without one.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    root: PathBuf,
    scope: Scope,
}

/// Which part of the repository paths are of, and relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The directory alone.
    Directory,
    /// All of it, wherever in it the directory is.
    Whole,
}

/// Variables that would lead git to another repository.
const ELSEWHERE: [&str; 7] = [
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
];

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
        }
    }

    /// The full name of a commit.
    pub(crate) fn commit(&self, name: &str) -> Result<String, LocateError> {
        let unknown = || LocateError::Commit {
            commit: name.to_owned(),
            path: self.root.clone(),
        };
        let wanted = format!("{name}^{{commit}}");
        let args = [
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &wanted,
        ];
        match self.output(&args) {
            Ok(output) => {
                let hash = String::from_utf8_lossy(&output).trim().to_owned();
                if hash.is_empty() {
                    Err(unknown())
                } else {
                    Ok(hash)
                }
            }
            Err(LocateError::Git { message, .. }) if message.is_empty() => Err(unknown()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn is_ancestor(&self, older: &str, newer: &str) -> bool {
        self.output(&["merge-base", "--is-ancestor", older, newer])
            .is_ok()
    }

    /// All files of a commit, without links and submodules, in the order of git.
    ///
    /// A name that is not UTF-8 cannot be told to a model or written in JSON: it is left out.
    pub(crate) fn files(&self, commit: &str) -> Result<Vec<Blob>, LocateError> {
        let output = self.output(&["ls-tree", "-r", "-z", "--full-tree", commit])?;
        let rows = output.split(|byte| *byte == 0);
        Ok(rows.filter_map(blob).collect())
    }

    /// Calls `visit` with the number and the text of each object that is there; a text is
    /// cut at `limit`.
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
        let mut child = self.spawn(&args, Stdio::piped())?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Ok(());
        };
        let mut request = objects.join("\n");
        request.push('\n');
        let read = std::thread::scope(|scope| {
            // If git ends early, reading says so.
            scope.spawn(move || input.write_all(request.as_bytes()));
            read_batch(BufReader::with_capacity(1 << 17, output), limit, visit)
        });
        let ended = child.wait();
        let status = read
            .and(ended)
            .map_err(|source| self.cannot_start(&args, source))?;
        if status.success() {
            return Ok(());
        }
        Err(LocateError::Git {
            command: args.join(" "),
            path: self.root.clone(),
            message: status.to_string(),
        })
    }

    /// The newest commits up to `tip` that are not reachable from `since`, without merges:
    /// raw records, see [`crate::history`].
    pub(crate) fn log(
        &self,
        tip: &str,
        since: Option<&str>,
        most: usize,
    ) -> Result<Vec<u8>, LocateError> {
        let most = format!("--max-count={most}");
        let hidden = since.map(|since| format!("^{since}"));
        let mut args = vec![
            "-c",
            "log.showSignature=false",
            "log",
            "-z",
            "--no-merges",
            "--no-renames",
            "--no-ext-diff",
            "--no-color",
            "--no-notes",
            "--no-mailmap",
            match self.scope {
                Scope::Directory => "--relative",
                Scope::Whole => "--no-relative",
            },
            "--name-only",
            "--format=format:%x01%s%n%b%x02",
            &most,
            tip,
        ];
        args.extend(hidden.as_deref());
        args.push("--");
        self.output(&args)
    }

    fn output(&self, args: &[&str]) -> Result<Vec<u8>, LocateError> {
        let child = self.spawn(args, Stdio::null())?;
        let output = child
            .wait_with_output()
            .map_err(|source| self.cannot_start(args, source))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(LocateError::Git {
            command: args.join(" "),
            path: self.root.clone(),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    fn spawn(&self, args: &[&str], input: Stdio) -> Result<Child, LocateError> {
        let mut command = Command::new("git");
        // What a hook or another git set must not lead to another repository; and nothing is
        // fetched or written behind the person's back.
        for name in ELSEWHERE {
            command.env_remove(name);
        }
        command
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .arg("-C")
            .arg(&self.root)
            .args(args)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if args.first() == Some(&"cat-file") {
            command.stderr(Stdio::null());
        }
        command
            .spawn()
            .map_err(|source| self.cannot_start(args, source))
    }

    fn cannot_start(&self, args: &[&str], source: io::Error) -> LocateError {
        LocateError::Start {
            command: args.join(" "),
            path: self.root.clone(),
            source,
        }
    }
}

fn blob(row: &[u8]) -> Option<Blob> {
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

fn read_batch(
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
