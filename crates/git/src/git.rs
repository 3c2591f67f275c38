//! Git on one repository.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{GitCall, GitError, Output, view::View};

/// Runs git on a repository that was found before: its directories are given to every call, so
/// that nothing in the work tree can lead git elsewhere.
#[derive(Debug, Clone)]
pub struct Git {
    /// A view, or the private git directory of a [`Checkout`](crate::Checkout); never that of the
    /// user.
    pub(crate) git_dir: PathBuf,
    pub(crate) work_tree: Option<PathBuf>,
    pub(crate) index: PathBuf,
    /// Where objects are read and new ones written: the repository's own directory, or that of a
    /// [`Quarantine`](crate::Quarantine).
    pub(crate) objects: PathBuf,
    /// Where objects are read from besides; new ones do not go there.
    pub(crate) alternate: Option<PathBuf>,
    /// Programs are not looked for in here.
    pub(crate) root: PathBuf,
    /// For programs that need the user's credentials.
    pub(crate) home: Option<OsString>,
    /// Keeps the view on disk as long as this or a call made from it exists.
    pub(crate) view: Option<Arc<View>>,
}

impl Git {
    /// A call with these arguments: a subcommand and what belongs to it. Names that come from
    /// outside have to follow `--end-of-options` or `--`: they are not checked here.
    pub fn call<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> GitCall {
        let directory = self.work_tree.as_deref().unwrap_or(&self.git_dir);
        let mut call = GitCall::detached(args, directory)
            .of_repository(Some(&self.root), self.view.clone())
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env("GIT_INDEX_FILE", &self.index);
        if let Some(work_tree) = &self.work_tree {
            call = call.env("GIT_WORK_TREE", work_tree);
        }
        if let Some(alternate) = &self.alternate {
            call = call.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", listed(alternate));
        }
        if let Some(home) = &self.home {
            call = call.env("HOME", home);
        }
        call
    }

    /// The full name of the commit that a name stands for, on this thread. Tags are followed to
    /// their commit. `None` when there is no such object or it is not a commit.
    pub fn commit_id(&self, name: &str) -> Result<Option<String>, GitError> {
        let output = self.call(commit_query(name)).run()?;
        commit_answer(&output)
    }

    /// The same, without holding up this thread.
    pub async fn find_commit(&self, name: &str) -> Result<Option<String>, GitError> {
        let output = self.call(commit_query(name)).finish().await?;
        commit_answer(&output)
    }

    /// Of a commit that has to be there.
    pub(crate) fn known_commit(&self, name: &str) -> Result<String, GitError> {
        self.commit_id(name)?.ok_or_else(|| GitError::Failed {
            command: "rev-parse".to_owned(),
            message: format!("`{name}` is not a commit"),
        })
    }

    /// The output of a call that has to succeed, on this thread.
    pub fn run<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Output, GitError> {
        self.call(args).run()?.checked()
    }
}

fn commit_query(name: &str) -> [String; 5] {
    let name = format!("{name}^{{commit}}");
    [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &name,
    ]
    .map(str::to_owned)
}

/// With `--quiet`, code 1 means that the name stands for nothing or for another kind of object; 128
/// is a fatal error, such as a reflog entry that does not exist. Both are "no such commit" to
/// callers.
fn commit_answer(output: &Output) -> Result<Option<String>, GitError> {
    match output.code {
        Some(0) => Ok(Some(output.text())),
        Some(1 | 128) => Ok(None),
        _ => Err(output.failure()),
    }
}

/// The variable separates directories with colons; one that has a colon is quoted.
fn listed(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = path.as_os_str().as_bytes();
    if !bytes.contains(&b':') && !bytes.starts_with(b"\"") {
        return path.into();
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}
