//! Puts the user's work tree on the branch of a pull request.
//!
//! A local branch is there already. One on GitHub is fetched into the clone that the command is run
//! in, with the token as a header of that one call. No hook, filter or helper of the repository
//! runs; a branch of a fork gets a name of its own here.

use std::path::{Path, PathBuf};

use codespar_dev::{Linker, RepositoryRef};
use codespar_forge::Forge;
use codespar_git::{Fetch, FetchExtent, GitError, Repository, Switched, Trust};
use codespar_protocol::{CommitId, PullRequest, PullRequestState};

use super::RepositoryLinker;

/// A work tree that was switched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedOut {
    /// The branch it is on now.
    pub branch: String,
    pub commit: CommitId,
    /// Title of the pull request.
    pub title: String,
    /// The branch it was on; `None` when HEAD was detached.
    pub from: Option<String>,
    pub from_commit: CommitId,
}

impl RepositoryLinker {
    /// Switches to the branch of a pull request; the words of an error are for the user. `here` is
    /// the repository that the project directory is a clone of.
    pub async fn check_out(
        &self,
        repository: &RepositoryRef,
        here: Option<&RepositoryRef>,
        number: u64,
    ) -> Result<CheckedOut, String> {
        let forge = self.forge(repository).await?;
        let pull = forge.pull_request(number).await;
        let pull = pull.map_err(|error| error.to_string())?;
        let head = forge.head(&pull.head).await;
        let head = head.map_err(|error| error.to_string())?;
        match repository {
            RepositoryRef::Local { path } => {
                let commit = head.ok_or_else(|| gone(&pull))?;
                self.switch(path.clone(), pull.head.clone(), commit, &pull, None)
                    .await
            }
            RepositoryRef::GitHub { owner, name } => {
                if here != Some(repository) {
                    return Err(format!(
                        "{} is not a clone of {owner}/{name}: run it in one",
                        self.project_dir.root.display()
                    ));
                }
                // A fork can have a branch of the same name, which is not the one there.
                let (branch, source) = match head {
                    Some(head) if head == pull.head_commit => {
                        (pull.head.clone(), format!("refs/heads/{}", pull.head))
                    }
                    _ => (format!("pr-{number}"), format!("refs/pull/{number}/head")),
                };
                let remote = Remote {
                    url: self.url_of(owner, name),
                    header: self.header(owner, name).await?,
                    source,
                    target: format!("refs/codespar/github/{number}/head"),
                };
                let root = self.project_dir.root.clone();
                let commit = pull.head_commit.clone();
                self.switch(root, branch, commit, &pull, Some(remote)).await
            }
        }
    }

    async fn switch(
        &self,
        dir: PathBuf,
        branch: String,
        commit: CommitId,
        pull: &PullRequest,
        remote: Option<Remote>,
    ) -> Result<CheckedOut, String> {
        let trust = self.project_dir.trust_of(&dir).git();
        let title = pull.title.clone();
        let work = move || {
            let commit = match remote {
                Some(remote) => CommitId(remote.fetch(&dir, trust)?),
                None => commit,
            };
            let failed = |error: GitError| error.to_string();
            let found = Repository::find(&dir, trust).map_err(failed)?;
            match found.switch(&branch, &commit.0).map_err(failed)? {
                Switched::Refused(reason) => Err(format!("not switched to {branch}: {reason}")),
                Switched::Done { from, from_commit } => Ok(CheckedOut {
                    branch,
                    commit,
                    title,
                    from,
                    from_commit: CommitId(from_commit),
                }),
            }
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| error.to_string())?
    }
}

fn gone(pull: &PullRequest) -> String {
    let state = match pull.state {
        PullRequestState::Open => "is not there".to_owned(),
        state => format!("is gone, since #{} is {state}", pull.number),
    };
    format!(
        "branch {} {state}; its last commit: git switch --detach {}",
        pull.head,
        pull.head_commit.short()
    )
}

/// One reference elsewhere.
struct Remote {
    url: String,
    header: String,
    source: String,
    /// Where it is kept until the branch has it.
    target: String,
}

impl Remote {
    /// The commit it is at.
    fn fetch(&self, dir: &Path, trust: Trust) -> Result<String, String> {
        let failed = |error: GitError| error.to_string();
        let git = Repository::find(dir, trust).and_then(|found| found.git());
        let git = git.map_err(failed)?;
        let refspec = format!("+{}:{}", self.source, self.target);
        let fetch = Fetch {
            url: &self.url,
            refspec: &refspec,
            header: Some(&self.header),
            extent: FetchExtent::History,
        };
        let output = git.fetch(&fetch).map_err(failed)?;
        if output.code != Some(0) {
            return Err(format!(
                "{} could not be fetched: {}",
                self.source,
                output.message.trim()
            ));
        }
        let commit = git.commit_id(&self.target).map_err(failed)?;
        commit.ok_or_else(|| format!("{} is not a commit", self.source))
    }
}
