//! A pull request on the command line: `12`, `#12`, `PR 12`, `"PR #12"`, a URL.

use clap::Args;
use codespar_channels::PullRef;

use super::pr::At;
use crate::error::CommandError;
use codespar_runtime::{ProjectDir, github_server};

/// The words are read by the same grammar as in a chat.
#[derive(Args, Clone)]
pub(crate) struct PullWords {
    /// The pull request: 12, #12, "PR 12" or its URL.
    #[arg(required = true, value_name = "PR")]
    words: Vec<String>,
}

/// A pull request and where it is.
pub(crate) struct PullTarget {
    pub(crate) number: u64,
    pub(crate) at: At,
    /// Words that followed the pull request.
    pub(crate) rest: Vec<String>,
}

impl PullWords {
    /// A repository that the pull request itself names counts like `--repo`; the two must agree.
    pub(crate) fn target(
        &self,
        at: &At,
        project_dir: &ProjectDir,
    ) -> Result<PullTarget, CommandError> {
        let (pull, rest) = PullRef::from_words(&self.words).map_err(CommandError::Usage)?;
        let mut at = at.clone();
        if let Some(repository) = repository_url(&pull, project_dir) {
            let named = pull.repository.as_deref().unwrap_or_default();
            if at
                .repo
                .as_deref()
                .is_some_and(|repo| repo != named && repo != repository)
            {
                return Err(CommandError::Usage(format!(
                    "the pull request is in {named}, but --repo names another repository"
                )));
            }
            at.repo = Some(repository);
        }
        Ok(PullTarget {
            number: pull.number,
            at,
            rest,
        })
    }

    /// The same where nothing may follow.
    pub(crate) fn alone(
        &self,
        at: &At,
        project_dir: &ProjectDir,
    ) -> Result<PullTarget, CommandError> {
        let target = self.target(at, project_dir)?;
        match target.rest.first() {
            None => Ok(target),
            Some(word) => Err(CommandError::Usage(format!(
                "`{word}` is not expected after the pull request"
            ))),
        }
    }
}

/// As a URL, so that a directory of the same name is not meant.
fn repository_url(pull: &PullRef, project_dir: &ProjectDir) -> Option<String> {
    let repository = pull.repository.as_ref()?;
    let server = pull.server.clone();
    let server = server.unwrap_or_else(|| github_server(project_dir));
    Some(format!("{server}/{repository}"))
}
