//! Issues that were handed over by the label.
//!
//! A list of issues does not tell who put a label there, and it is with their rights that the work is
//! done. The events of issues do.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Cursor, Look, lists::PER_PAGE};
use crate::{
    SendError,
    github::event::{Account, as_delivered},
};

/// What happened in between is not searched further back.
const MOST_PAGES: usize = 10;
const EVENTS: [&str; 2] = ["issues", "events"];

#[derive(Deserialize)]
struct IssueEvent {
    id: u64,
    event: String,
    created_at: Timestamp,
    /// Absent for an account that is gone.
    #[serde(default)]
    actor: Option<Account>,
    #[serde(default)]
    label: Value,
    #[serde(default)]
    issue: Value,
}

impl Look<'_> {
    /// GitHub tells the newest first; they are taken in the order in which they happened.
    pub(super) async fn labels(&mut self, cursor: &mut Cursor) -> Result<(), SendError> {
        let per_page = PER_PAGE.to_string();
        let query = [("per_page", per_page.as_str())];
        let Some(first) = self.changed::<IssueEvent>(&EVENTS, &query).await? else {
            return Ok(());
        };
        let is_new = |one: &IssueEvent| one.id > cursor.event && cursor.counts(one.created_at);
        let mut events = first.entries;
        for page in 2..=MOST_PAGES {
            if events.len() < (page - 1) * PER_PAGE || !events.last().is_some_and(is_new) {
                break;
            }
            events.extend(self.page::<IssueEvent>(&EVENTS, &[], page).await?);
        }
        events.retain(is_new);
        events.sort_by_key(|one| one.id);
        for event in events {
            let number = event.id;
            if event.event == "labeled" {
                self.labelled(event).await?;
            }
            cursor.event = number;
        }
        self.keep(first.known);
        Ok(())
    }

    /// As the webhook would tell it: at the moment of the label the issue was last changed.
    async fn labelled(&self, event: IssueEvent) -> Result<(), SendError> {
        let (Some(actor), mut issue) = (event.actor, event.issue) else {
            return Ok(());
        };
        issue["updated_at"] = json!(event.created_at.to_string());
        let body = json!({
            "action": "labeled",
            "repository": {"full_name": self.repository},
            "sender": actor,
            "issue": issue,
            "label": event.label,
        });
        let found = as_delivered("issues", body, Some(self.ours));
        match found {
            Ok(found) => self.receive(found).await,
            Err(error) => {
                tracing::warn!("a label in {} cannot be read: {error}", self.repository);
                Ok(())
            }
        }
    }
}
