//! Running the `git` command: without hooks, without our own process's idea of a repository,
//! with words that do not depend on the language.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use codespar_protocol::CommitId;
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{Author, ForgeError};

/// Variables that would point git elsewhere, or give its output another form.
const LEAKS: &[&str] = &[
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_ATTR_SOURCE",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_REFLOG_ACTION",
    "GIT_MERGE_AUTOEDIT",
    "GIT_TRACE",
    "GIT_TRACE2",
];

/// Nothing of the repository's that runs by itself, and bytes as they are.
const GUARDS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=",
    "core.splitIndex=false",
    "core.quotePath=false",
    "index.sparse=false",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// One run of git.
pub(super) struct Run {
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    input: Option<Vec<u8>>,
}

/// What a run left.
pub(super) struct Ran {
    /// The exit code; `None` when it was killed.
    pub(super) code: Option<i32>,
    pub(super) out: Vec<u8>,
    pub(super) words: String,
}

impl Run {
    pub(super) fn new<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        let owned = |arg: S| arg.as_ref().to_owned();
        Self {
            args: args.into_iter().map(owned).collect(),
            env: Vec::new(),
            input: None,
        }
    }

    pub(super) fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    pub(super) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    pub(super) fn committer(self, who: &Author) -> Self {
        self.env("GIT_COMMITTER_NAME", &who.name)
            .env("GIT_COMMITTER_EMAIL", &who.email)
    }

    pub(super) fn author(self, who: &Author) -> Self {
        self.env("GIT_AUTHOR_NAME", &who.name)
            .env("GIT_AUTHOR_EMAIL", &who.email)
    }
}

impl Ran {
    /// Its output as text, trimmed.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).trim().to_owned()
    }

    /// As an error of the forge.
    pub(super) fn failure(&self, what: &str) -> ForgeError {
        let words = self.words.trim();
        let reason = match (words, self.code) {
            ("", Some(code)) => format!("git ended with code {code}"),
            ("", None) => "git was killed".to_owned(),
            (words, _) => words.to_owned(),
        };
        ForgeError::Unavailable {
            what: what.to_owned(),
            reason,
        }
    }

    /// Its output if it went well.
    pub(super) fn checked(self, what: &str) -> Result<Self, ForgeError> {
        match self.code {
            Some(0) => Ok(self),
            _ => Err(self.failure(what)),
        }
    }
}

/// Where git runs.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// On the repository alone; no work tree comes into it.
    Repository(PathBuf),
    /// As a person would from this directory.
    Directory(PathBuf),
}

impl Place {
    fn command(&self) -> Command {
        let mut command = Command::new("git");
        match self {
            Self::Repository(dir) => {
                let mut git_dir = OsString::from("--git-dir=");
                git_dir.push(dir);
                command.arg("-C").arg(dir).arg(git_dir);
            }
            Self::Directory(dir) => drop(command.arg("-C").arg(dir)),
        }
        for guard in GUARDS {
            command.args(["-c", guard]);
        }
        for leak in LEAKS {
            command.env_remove(leak);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        command
    }

    /// Runs git to its end, whatever becomes of the caller: a git that is killed leaves locks
    /// behind.
    pub(super) async fn run(&self, run: Run) -> Result<Ran, ForgeError> {
        let mut command = self.command();
        command
            .args(&run.args)
            .envs(run.env)
            .stdin(match run.input {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| not_run(&error))?;
        if let (Some(bytes), Some(mut stdin)) = (run.input, child.stdin.take()) {
            // Apart, so that a git that talks while we do cannot hold both up. One that stops
            // reading early says why itself.
            tokio::spawn(async move { stdin.write_all(&bytes).await.is_ok() });
        }
        let output = child.wait_with_output().await;
        let output = output.map_err(|error| not_run(&error))?;
        Ok(Ran {
            code: output.status.code(),
            out: output.stdout,
            words: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// The trimmed output of a run that has to go well.
    pub(super) async fn text(&self, what: &str, run: Run) -> Result<String, ForgeError> {
        Ok(self.run(run).await?.checked(what)?.text())
    }

    /// The full name of the commit that a name stands for.
    pub(super) async fn commit_of(&self, name: &str) -> Result<Option<CommitId>, ForgeError> {
        let name = format!("{name}^{{commit}}");
        let run = Run::new([
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &name,
        ]);
        let ran = self.run(run).await?;
        match ran.code {
            Some(0) => Ok(Some(CommitId(ran.text()))),
            Some(1 | 128) => Ok(None),
            _ => Err(ran.failure("look a commit up")),
        }
    }

    /// A setting, if there is one.
    pub(super) async fn setting(&self, name: &str) -> Result<Option<String>, ForgeError> {
        let ran = self.run(Run::new(["config", "--get", name])).await?;
        let text = ran.text();
        Ok((ran.code == Some(0) && !text.is_empty()).then_some(text))
    }
}

fn not_run(error: &io::Error) -> ForgeError {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "the `git` command was not found; install git".to_owned(),
        _ => error.to_string(),
    };
    ForgeError::Unavailable {
        what: "run git".to_owned(),
        reason,
    }
}

/// Parts of an output that ends each with a zero byte.
pub(super) fn parts(out: &[u8]) -> impl Iterator<Item = &[u8]> {
    out.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// The repository that a directory is in: the directory that all its work trees share.
pub(super) async fn find(dir: &Path) -> Result<PathBuf, ForgeError> {
    let place = Place::Directory(dir.to_owned());
    if !dir.is_dir() {
        return Err(ForgeError::NotFound(format!("directory {}", dir.display())));
    }
    let args = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
    let ran = place.run(Run::new(args)).await?;
    if ran.code != Some(0) && ran.words.contains("not a git repository") {
        return Err(ForgeError::NotFound(format!(
            "git repository in {}; make one with `git init`, or name another directory",
            dir.display()
        )));
    }
    let found = ran.checked("open the repository")?;
    let path = String::from_utf8(found.out).map_err(|_| {
        ForgeError::Refused(format!(
            "the path of the repository in {} is not valid UTF-8",
            dir.display()
        ))
    })?;
    let path = Path::new(path.trim_end_matches('\n'));
    path.canonicalize()
        .map_err(|error| ForgeError::Unavailable {
            what: format!("open {}", path.display()),
            reason: error.to_string(),
        })
}
