//! Reviews, each with its remarks as one request.
//!
//! There is no list of the reviews of a repository: those of the pull requests that changed are read.
//! The remarks of a review are read once, when it is first seen, so that a mention which an edit brings
//! later does not count.

use codespar_store::StoreError;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::{Cursor, Look, lists::PER_PAGE, whole_second};
use crate::{
    SendError,
    github::event::{Account, Delivered, as_delivered, is_for_us, review_identity},
};

/// More pull requests, or more reviews of one, are not read further.
const MOST_PAGES: usize = 10;

#[derive(Deserialize)]
struct ChangedPull {
    id: u64,
    number: u64,
    updated_at: Timestamp,
}

#[derive(Deserialize)]
struct FoundReview {
    id: u64,
    #[serde(default)]
    user: Option<Account>,
    #[serde(default)]
    body: Option<String>,
    /// Absent while its author still writes it.
    #[serde(default)]
    submitted_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Remark {
    #[serde(default)]
    body: Option<String>,
}

impl Look<'_> {
    /// Those of pull requests that changed since the last look; the one that changed first comes
    /// first.
    pub(super) async fn reviews(&mut self, cursor: &mut Cursor) -> Result<(), SendError> {
        let per_page = PER_PAGE.to_string();
        let order = [("state", "all"), ("sort", "updated"), ("direction", "desc")];
        let query = [&order[..], &[("per_page", per_page.as_str())]].concat();
        let Some(first) = self.changed::<ChangedPull>(&["pulls"], &query).await? else {
            return Ok(());
        };
        let since = whole_second(cursor.pulls.unwrap_or(cursor.from));
        let is_new = |pull: &ChangedPull| pull.updated_at >= since;
        let mut pulls = first.entries;
        for page in 2..=MOST_PAGES {
            if pulls.len() < (page - 1) * PER_PAGE || !pulls.last().is_some_and(is_new) {
                break;
            }
            pulls.extend(self.page(&["pulls"], &order, page).await?);
        }
        pulls.retain(is_new);
        for pull in pulls.iter().rev() {
            self.reviews_of(pull, cursor).await?;
            cursor.pulls = Some(pull.updated_at);
        }
        self.keep(first.known);
        Ok(())
    }

    async fn reviews_of(&self, pull: &ChangedPull, cursor: &Cursor) -> Result<(), SendError> {
        let number = pull.number.to_string();
        let parts = ["pulls", number.as_str(), "reviews"];
        for page in 1..=MOST_PAGES {
            let reviews: Vec<FoundReview> = self.page(&parts, &[], page).await?;
            for review in &reviews {
                let counts = review.submitted_at.is_some_and(|at| cursor.counts(at));
                if counts && !self.is_known(review.id).await? {
                    self.reviewed(pull, review).await?;
                }
            }
            if reviews.len() < PER_PAGE {
                break;
            }
        }
        Ok(())
    }

    async fn is_known(&self, review: u64) -> Result<bool, SendError> {
        let known = self.core.store().message(&review_identity(review)).await;
        match known {
            Ok(_) => Ok(true),
            Err(StoreError::NoSuchMessage(_)) => Ok(false),
            Err(error) => Err(SendError::Temporary(error.to_string())),
        }
    }

    /// As the webhook would tell it; a mention in any of its remarks counts.
    async fn reviewed(&self, pull: &ChangedPull, review: &FoundReview) -> Result<(), SendError> {
        let Some(author) = &review.user else {
            return Ok(());
        };
        let body = json!({
            "action": "submitted",
            "repository": {"full_name": self.repository},
            "sender": author,
            "pull_request": {"id": pull.id, "number": pull.number},
            "review": {"id": review.id, "body": review.body},
        });
        let found = match as_delivered("pull_request_review", body, Some(self.ours)) {
            Ok(Delivered::Message(inbound, origin)) => (inbound, origin),
            Ok(Delivered::Nothing) => return Ok(()),
            Err(error) => {
                tracing::warn!("a review in {} cannot be read: {error}", self.repository);
                return Ok(());
            }
        };
        let (mut inbound, origin) = found;
        inbound.mentioned = self.is_mentioned(pull.number, review.id).await?;
        self.receive(Delivered::Message(inbound, origin)).await
    }

    async fn is_mentioned(&self, number: u64, review: u64) -> Result<bool, SendError> {
        let (number, review) = (number.to_string(), review.to_string());
        let parts = ["pulls", number.as_str(), "reviews", &review, "comments"];
        let remarks: Vec<Remark> = self.page(&parts, &[], 1).await?;
        let mut texts = remarks.iter().filter_map(|one| one.body.as_deref());
        Ok(texts.any(|text| is_for_us(text, Some(self.ours))))
    }
}
