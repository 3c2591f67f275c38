//! Calls of git as the forge makes them, with its errors.
//!
//! A thin layer over `codespar-git`: builds the arguments, runs the call without blocking the
//! executor, and turns its failures into [`ForgeError`]. A process that is still running is ended
//! when its future is dropped, as `codespar-git` does for all its calls.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    sync::Arc,
};

use codespar_git::{
    Git, GitError, KeptObjects, Location, Output, Quarantine, Repository, Signing, Trust,
    zero_separated,
};
use codespar_protocol::CommitId;

use crate::{Author, ForgeError};

/// One run of git. Arguments are passed as a list, never through a shell.
#[derive(Clone)]
pub(super) struct Run {
    args: Vec<OsString>,
    env: Vec<(&'static str, OsString)>,
    input: Option<Vec<u8>>,
    signing: Option<Signing>,
}

/// What a run left. Some commands answer a question with their exit code, so a code other than 0 is
/// not an error yet; [`Ran::checked`] makes it one.
pub(super) struct Ran {
    /// The exit code; `None` when it was killed.
    pub(super) code: Option<i32>,
    pub(super) out: Vec<u8>,
    pub(super) message: String,
}

impl Run {
    pub(super) fn new<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        let owned = |arg: S| arg.as_ref().to_owned();
        Self {
            args: args.into_iter().map(owned).collect(),
            env: Vec::new(),
            input: None,
            signing: None,
        }
    }

    /// With the user's signature.
    pub(super) fn signed(mut self, signing: &Signing) -> Self {
        self.signing = Some(signing.clone());
        self
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

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.code,
            out: output.out,
            message: output.message,
        }
    }
}

impl Ran {
    /// Its output as text, trimmed.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).trim().to_owned()
    }

    /// As an error of the forge.
    pub(super) fn failure(&self, what: &str) -> ForgeError {
        let reason = match (self.message.trim(), self.code) {
            ("", Some(code)) => format!("git ended with code {code}"),
            ("", None) => "git was killed".to_owned(),
            (message, _) => message.to_owned(),
        };
        ForgeError::Unavailable {
            what: what.to_owned(),
            reason,
        }
    }

    /// Its output if it succeeded.
    pub(super) fn checked(self, what: &str) -> Result<Self, ForgeError> {
        match self.code {
            Some(0) => Ok(self),
            _ => Err(self.failure(what)),
        }
    }
}

/// Git on one repository.
#[derive(Debug, Clone)]
pub(super) struct Place(pub(super) Git);

impl Place {
    /// `Err` only if git could not be run or exceeded a limit; how it ended is in the result.
    pub(super) async fn run(&self, run: Run) -> Result<Ran, ForgeError> {
        let mut call = self.0.call(run.args);
        for (name, value) in run.env {
            call = call.env(name, value);
        }
        if let Some(bytes) = run.input {
            call = call.input(bytes);
        }
        if let Some(signing) = &run.signing {
            call = call.signed(signing);
        }
        Ok(call.finish().await.map_err(not_run)?.into())
    }

    /// The trimmed output of a run that has to succeed.
    pub(super) async fn text(&self, what: &str, run: Run) -> Result<String, ForgeError> {
        Ok(self.run(run).await?.checked(what)?.text())
    }

    /// The full name of the commit that a name stands for. `None` when the name is unknown or names
    /// something other than a commit. Tags are followed to their commit.
    pub(super) async fn commit_of(&self, name: &str) -> Result<Option<CommitId>, ForgeError> {
        let found = self.0.find_commit(name).await.map_err(not_run)?;
        Ok(found.map(CommitId))
    }
}

pub(super) fn not_run(error: GitError) -> ForgeError {
    match error {
        GitError::NoRepository(dir) => ForgeError::NotFound(format!(
            "a git repository in {}; make one with `git init`, or name another directory",
            dir.display()
        )),
        // Another try would end in the same way.
        GitError::Unsupported { .. }
        | GitError::TooManyFiles { .. }
        | GitError::TooMuchOutput { .. } => ForgeError::Refused(error.to_string()),
        other => ForgeError::Unavailable {
            what: "run git".to_owned(),
            reason: other.to_string(),
        },
    }
}

/// Parts of an output that ends each with a zero byte.
pub(super) fn parts(out: &[u8]) -> impl Iterator<Item = &[u8]> {
    zero_separated(out)
}

/// Files and processes belong on the pool of blocking threads. Unlike a call of git, work that has
/// begun is not ended when the future is dropped.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
) -> Result<T, ForgeError> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| ForgeError::Unavailable {
        what: "run git".to_owned(),
        reason: error.to_string(),
    })?;
    done.map_err(not_run)
}

/// The repository that a directory is in.
pub(super) async fn find(dir: &Path, trust: Trust) -> Result<Repository, ForgeError> {
    if !dir.is_dir() {
        return Err(ForgeError::NotFound(format!("directory {}", dir.display())));
    }
    let wanted = dir.to_owned();
    let found = blocking(move || Repository::find(&wanted, trust)).await?;
    match found.location().common_dir.to_str() {
        Some(_) => Ok(found),
        None => Err(ForgeError::Refused(format!(
            "the path of the repository in {} is not valid UTF-8",
            dir.display()
        ))),
    }
}

/// A place where new objects are apart from the repository until a reference needs them. Objects
/// that are not kept disappear when this is dropped, so a failed commit or merge leaves nothing
/// behind. Reading through `git` sees both the new objects and those of the repository.
pub(super) struct Apart {
    pub(super) git: Place,
    quarantine: Arc<Quarantine>,
}

impl Apart {
    pub(super) async fn open(git: &Place, location: &Location) -> Result<Self, ForgeError> {
        let (git, location) = (git.0.clone(), location.clone());
        let quarantine = blocking(move || Quarantine::new(&git, &location)).await?;
        Ok(Self {
            git: Place(quarantine.git().clone()),
            quarantine: Arc::new(quarantine),
        })
    }

    /// Brings the objects into the repository, where nobody removes them while this lives. The
    /// result must live until a reference leads to the objects; a `git gc` of someone else may
    /// remove them otherwise.
    pub(super) async fn keep(&self) -> Result<KeptObjects, ForgeError> {
        let quarantine = self.quarantine.clone();
        blocking(move || quarantine.keep()).await
    }
}
