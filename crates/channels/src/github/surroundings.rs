//! What a comment or a review is about: where the branch of its pull request is, the remarks of the
//! review, the text of the issue.
//!
//! It is looked up when a command is carried out and not when the comment arrives: whoever has no
//! right to the command costs no request, and what others wrote in between is known. All of it is
//! material, which describes what is to be done and gives no orders.

use serde::{Deserialize, Serialize};

use super::{
    api::{Ask, GitHubApi},
    event::{Account, OURS, issue_text},
};
use crate::{PullBranch, SendError, text::shortened};

/// The most of one remark, and the most remarks.
const MOST_OF_REMARK: usize = 4_000;
const MOST_REMARKS: usize = 100;

/// What is looked up, as it is kept with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Reference {
    Issue {
        number: u64,
    },
    Review {
        number: u64,
        review: u64,
        author: u64,
    },
}

impl Reference {
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct Pull {
    head: Side,
    base: Side,
}

#[derive(Deserialize)]
struct Side {
    sha: String,
    /// Absent if the fork is gone.
    #[serde(default)]
    repo: Option<Repository>,
}

#[derive(Deserialize)]
struct Repository {
    full_name: String,
}

#[derive(Deserialize)]
struct Issue {
    title: String,
    #[serde(default)]
    body: Option<String>,
}

#[derive(Deserialize)]
struct Review {
    #[serde(default)]
    body: Option<String>,
}

#[derive(Deserialize)]
struct Remark {
    #[serde(default)]
    user: Option<Account>,
    path: String,
    #[serde(default)]
    line: Option<u64>,
    #[serde(default)]
    original_line: Option<u64>,
    #[serde(default)]
    body: String,
}

impl GitHubApi {
    /// The text that a message is about.
    pub(super) async fn material(
        &self,
        repository: &str,
        reference: &str,
    ) -> Result<Option<String>, SendError> {
        let reference = serde_json::from_str(reference);
        let reference = reference.map_err(|error| SendError::Permanent(error.to_string()))?;
        match reference {
            Reference::Issue { number } => {
                let text = number.to_string();
                let issue: Issue = self.read(&Ask::get(repository, &["issues", &text])).await?;
                Ok(Some(issue_text(
                    number,
                    &issue.title,
                    issue.body.as_deref(),
                )))
            }
            Reference::Review {
                number,
                review,
                author,
            } => self.review(repository, (number, review), author).await,
        }
    }

    /// In the repository itself or in that of somebody else, which is looked at and not written to.
    pub(super) async fn branch_of(
        &self,
        repository: &str,
        number: u64,
    ) -> Result<PullBranch, SendError> {
        Ok(self.pull(repository, number).await?.branch())
    }

    async fn pull(&self, repository: &str, number: u64) -> Result<Pull, SendError> {
        let number = number.to_string();
        self.read(&Ask::get(repository, &["pulls", &number])).await
    }

    /// The last commit of a pull request.
    pub(super) async fn head(&self, repository: &str, number: u64) -> Result<String, SendError> {
        Ok(self.pull(repository, number).await?.head.sha)
    }

    /// The text of a review and its remarks: which of them arrived first does not matter. Our own
    /// reviews ask for nothing, also where they were written with the token of a person.
    async fn review(
        &self,
        repository: &str,
        (number, review): (u64, u64),
        author: u64,
    ) -> Result<Option<String>, SendError> {
        let (number, review) = (number.to_string(), review.to_string());
        let parts = ["pulls", &number, "reviews", &review];
        let whole: Review = self.read(&Ask::get(repository, &parts)).await?;
        let text = whole.body.unwrap_or_default();
        if text.contains(OURS) {
            return Err(SendError::Permanent("the review is our own".to_owned()));
        }
        let remarks = self.remarks(repository, (&number, &review), author).await?;
        let text = (!text.trim().is_empty()).then(|| format!("Text of the review:\n{text}"));
        let parts: Vec<String> = text.into_iter().chain(remarks).collect();
        Ok((!parts.is_empty()).then(|| parts.join("\n\n")))
    }

    /// The remarks of one review, in order, by its own author alone.
    async fn remarks(
        &self,
        repository: &str,
        (number, review): (&str, &str),
        author: u64,
    ) -> Result<Option<String>, SendError> {
        let parts = ["pulls", number, "reviews", review, "comments"];
        let ask = Ask {
            query: &[("per_page", "100")],
            ..Ask::get(repository, &parts)
        };
        let remarks: Vec<Remark> = self.read(&ask).await?;
        let own = remarks
            .into_iter()
            .filter(|one| one.user.as_ref().is_some_and(|user| user.id == author));
        let lines = own.take(MOST_REMARKS).map(|one| {
            let line = one.line.or(one.original_line);
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            format!(
                "{}{line}: {}",
                one.path,
                shortened(&one.body, MOST_OF_REMARK)
            )
        });
        let lines: Vec<String> = lines.collect();
        Ok((!lines.is_empty()).then(|| format!("Remarks of the review:\n{}", lines.join("\n"))))
    }
}

impl Pull {
    /// A fork that is gone is one, too.
    fn branch(&self) -> PullBranch {
        let name = |side: &Side| side.repo.as_ref().map(|repo| repo.full_name.clone());
        match (name(&self.head), name(&self.base)) {
            (Some(head), Some(base)) if head == base => PullBranch::Own,
            _ => PullBranch::Fork,
        }
    }
}
