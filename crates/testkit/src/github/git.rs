//! The git repository, through the git command.
//!
//! Every call is a process with a fixed environment, so the configuration of the user who runs the
//! tests does not matter. Merges are made with `merge-tree`, without a working tree. This runner is
//! for the fake alone and shares nothing with the one under test.

use std::{
    collections::HashMap,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
};

/// A bare repository, by its absolute path.
pub(super) struct Git {
    pub(super) dir: PathBuf,
}

/// A file or folder of a tree.
pub(super) struct Entry {
    pub(super) mode: String,
    pub(super) kind: String,
    pub(super) sha: String,
    /// Of a file; none for a folder or a submodule.
    pub(super) size: Option<u64>,
    pub(super) path: String,
}

pub(super) struct Commit {
    pub(super) sha: String,
    pub(super) tree: String,
    pub(super) parents: Vec<String>,
    pub(super) author: Person,
    pub(super) committer: Person,
    pub(super) message: String,
}

#[derive(Clone)]
pub(super) struct Person {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) date: String,
}

/// What came of joining two commits.
pub(super) enum Joined {
    Tree(String),
    Conflict,
}

impl Git {
    /// Fails if git does not take it for a repository.
    pub(super) fn new(dir: &Path) -> io::Result<Self> {
        let git = Self {
            dir: dir.canonicalize()?,
        };
        git.text(&["rev-parse", "--git-dir"])?;
        Ok(git)
    }

    /// Commits without people of their own are by GitHub, as its merges are.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .current_dir(&self.dir)
            .env("GIT_DIR", &self.dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_COMMITTER_NAME", "GitHub")
            .env("GIT_COMMITTER_EMAIL", "noreply@github.com")
            .env("GIT_AUTHOR_NAME", "GitHub")
            .env("GIT_AUTHOR_EMAIL", "noreply@github.com");
        command
    }

    fn output(&self, args: &[&str]) -> io::Result<Output> {
        feed(self.command().args(args), b"")
    }

    pub(super) fn bytes(&self, args: &[&str]) -> io::Result<Vec<u8>> {
        checked(self.output(args)?)
    }

    pub(super) fn text(&self, args: &[&str]) -> io::Result<String> {
        let text = String::from_utf8_lossy(&self.bytes(args)?).into_owned();
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// For commands whose status is the answer.
    fn succeeds(&self, args: &[&str]) -> bool {
        self.output(args)
            .is_ok_and(|output| output.status.success())
    }

    /// The last commit of a branch.
    pub(super) fn branch(&self, name: &str) -> Option<String> {
        let name = format!("refs/heads/{name}");
        self.text(&["rev-parse", "--verify", "-q", &name]).ok()
    }

    /// All branches and their last commits.
    pub(super) fn branches(&self) -> io::Result<HashMap<String, String>> {
        let listed = self.text(&[
            "for-each-ref",
            "--format=%(refname:strip=2) %(objectname)",
            "refs/heads",
        ])?;
        let pairs = listed.lines().filter_map(|line| line.split_once(' '));
        Ok(pairs
            .map(|(name, sha)| (name.to_owned(), sha.to_owned()))
            .collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text(&["for-each-ref", "--count=1"])
            .is_ok_and(|refs| refs.is_empty())
    }

    /// `commit`, `tree` or `blob`. `None` for what does not exist, and for anything but a full
    /// hash: branch names and revisions are not taken for objects.
    pub(super) fn kind(&self, sha: &str) -> Option<String> {
        let full = sha.len() == 40 && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
        full.then(|| self.text(&["cat-file", "-t", sha]).ok())?
    }

    pub(super) fn set_branch(&self, name: &str, sha: &str) -> io::Result<()> {
        self.bytes(&["update-ref", &format!("refs/heads/{name}"), sha])
            .map(drop)
    }

    pub(super) fn delete_branch(&self, name: &str) -> io::Result<()> {
        self.bytes(&["update-ref", "-d", &format!("refs/heads/{name}")])
            .map(drop)
    }

    pub(super) fn is_ancestor(&self, old: &str, new: &str) -> bool {
        self.succeeds(&["merge-base", "--is-ancestor", old, new])
    }

    /// Commits that `new` has and `old` has not; 0 also where git fails.
    pub(super) fn count_between(&self, old: &str, new: &str) -> usize {
        let range = format!("{old}..{new}");
        let count = self.text(&["rev-list", "--count", &range]);
        count.ok().and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    pub(super) fn write_blob(&self, content: &[u8]) -> io::Result<String> {
        let mut command = self.command();
        line(feed(
            command.args(["hash-object", "-w", "--stdin"]),
            content,
        )?)
    }

    /// All entries below a tree, or only its own.
    pub(super) fn entries(&self, tree: &str, recursive: &[&str]) -> io::Result<Vec<Entry>> {
        let mut args = vec!["ls-tree", "-z", "-l"];
        args.extend(recursive);
        args.push(tree);
        let listed = self.bytes(&args)?;
        let entries = listed
            .split(|byte| *byte == 0)
            .filter(|entry| !entry.is_empty());
        entries.map(read_entry).collect()
    }

    /// A tree made from another by lines for `update-index --index-info`. In an index of its own,
    /// so that calls do not disturb each other.
    pub(super) fn write_tree(&self, base: Option<&str>, changes: &[u8]) -> io::Result<String> {
        let index = tempfile::tempdir()?;
        let index = index.path().join("index");
        match base {
            Some(base) => self.indexed(&index, &["read-tree", base], b"")?,
            None => self.indexed(&index, &["read-tree", "--empty"], b"")?,
        };
        self.indexed(&index, &["update-index", "-z", "--index-info"], changes)?;
        self.indexed(&index, &["write-tree"], b"")
    }

    fn indexed(&self, index: &Path, args: &[&str], input: &[u8]) -> io::Result<String> {
        let mut command = self.command();
        command.env("GIT_INDEX_FILE", index);
        line(feed(command.args(args), input)?)
    }

    /// A person without a date gets the time of the call.
    pub(super) fn write_commit(
        &self,
        tree: &str,
        parents: &[String],
        message: &str,
        people: Option<(&Person, &Person)>,
    ) -> io::Result<String> {
        let mut command = self.command();
        command.args(["commit-tree", tree, "-F", "-"]);
        for parent in parents {
            command.args(["-p", parent]);
        }
        if let Some((author, committer)) = people {
            for (who, person) in [("AUTHOR", author), ("COMMITTER", committer)] {
                command.env(format!("GIT_{who}_NAME"), &person.name);
                command.env(format!("GIT_{who}_EMAIL"), &person.email);
                if !person.date.is_empty() {
                    command.env(format!("GIT_{who}_DATE"), &person.date);
                }
            }
        }
        line(feed(&mut command, message.as_bytes())?)
    }

    /// Commits from this one down, newest first.
    pub(super) fn log(&self, from: &str, more: &[&str]) -> io::Result<Vec<Commit>> {
        const FORM: &str =
            "--format=%H%x01%T%x01%P%x01%an%x01%ae%x01%aI%x01%cn%x01%ce%x01%cI%x01%B";
        let mut args = vec!["log", "-z", FORM];
        args.extend(more);
        args.push(from);
        let text = self.text(&args)?;
        Ok(text.split('\0').filter_map(read_commit).collect())
    }

    pub(super) fn commit(&self, sha: &str) -> Option<Commit> {
        self.kind(sha).filter(|kind| kind == "commit")?;
        self.log(sha, &["-1"]).ok()?.pop()
    }

    /// What a head changes since it left its base.
    pub(super) fn diff(&self, base: &str, head: &str, more: &[&str]) -> io::Result<Vec<u8>> {
        let range = format!("{base}...{head}");
        let mut args = vec!["diff", "-M", &range];
        args.extend(more);
        self.bytes(&args)
    }

    /// Joins `theirs` into `ours`; with a base of their own if one is given. Nothing but objects is
    /// written.
    pub(super) fn join(&self, base: Option<&str>, ours: &str, theirs: &str) -> io::Result<Joined> {
        let base = base.map(|base| format!("--merge-base={base}"));
        let mut args = vec!["merge-tree", "--write-tree"];
        args.extend(base.as_deref());
        args.extend([ours, theirs]);
        let output = self.output(&args)?;
        if output.status.code() == Some(1) {
            return Ok(Joined::Conflict);
        }
        let text = String::from_utf8_lossy(&checked(output)?).into_owned();
        Ok(Joined::Tree(
            text.lines().next().unwrap_or_default().to_owned(),
        ))
    }
}

/// Runs a command with this input.
pub(super) fn feed(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdin = child.stdin.take();
    thread::scope(|scope| {
        // Beside the reading, so that neither waits for the other. One that does not read all of
        // its input shows in its status.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        child.wait_with_output()
    })
}

fn checked(output: Output) -> io::Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(io::Error::other(
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

fn line(output: Output) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&checked(output)?).trim().to_owned())
}

/// `mode kind sha size<tab>path`.
fn read_entry(bytes: &[u8]) -> io::Result<Entry> {
    let text = String::from_utf8_lossy(bytes);
    let parts = text.split_once('\t').map(|(about, path)| {
        let fields: Vec<&str> = about.split_whitespace().collect();
        (fields, path)
    });
    match parts {
        Some((fields, path)) if fields.len() == 4 => Ok(Entry {
            mode: fields[0].to_owned(),
            kind: fields[1].to_owned(),
            sha: fields[2].to_owned(),
            size: fields[3].parse().ok(),
            path: path.to_owned(),
        }),
        _ => Err(io::Error::other("git ls-tree wrote something else")),
    }
}

fn read_commit(text: &str) -> Option<Commit> {
    let parts: Vec<&str> = text.splitn(10, '\x01').collect();
    let person = |at: usize| Person {
        name: parts[at].to_owned(),
        email: parts[at + 1].to_owned(),
        date: parts[at + 2].to_owned(),
    };
    (parts.len() == 10).then(|| Commit {
        sha: parts[0].to_owned(),
        tree: parts[1].to_owned(),
        parents: parts[2].split_whitespace().map(str::to_owned).collect(),
        author: person(3),
        committer: person(6),
        message: parts[9].trim_end_matches('\n').to_owned(),
    })
}
