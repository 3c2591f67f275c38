//! Deliveries of the app's webhook. GitHub does not deliver again by itself.

use std::collections::HashSet;

use jiff::Timestamp;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::GitHubApp;
use crate::{ForgeError, github::api::Call};

/// More than a busy app has in three days; the list ends there.
const MOST_LISTED: usize = 5_000;

/// One attempt to deliver an event.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HookDelivery {
    pub id: u64,
    /// The same for all attempts at one event.
    pub guid: String,
    pub delivered_at: Timestamp,
    /// 0 where there was no answer.
    #[serde(default)]
    pub status_code: u16,
    pub event: String,
}

impl HookDelivery {
    fn has_arrived(&self) -> bool {
        (200..300).contains(&self.status_code)
    }
}

impl GitHubApp {
    /// The last attempt at each event that has not arrived since then, the oldest first.
    pub async fn undelivered(&self, since: Timestamp) -> Result<Vec<HookDelivery>, ForgeError> {
        let url = self.url(&["app", "hook", "deliveries"])?;
        let call = Call::get(
            url,
            "the deliveries of the GitHub App",
            "a webhook of the app",
        )
        .query(&[("per_page", "100")]);
        // Latest first, so a page that reaches back far enough is the last one that is needed.
        let is_enough = |all: &[HookDelivery]| {
            let is_old = all.last().is_some_and(|one| one.delivered_at < since);
            is_old || all.len() >= MOST_LISTED
        };
        let page = |page: Vec<HookDelivery>| page;
        let listed = self.api.pages_until(&call, page, is_enough).await?;
        Ok(lost(listed, since))
    }

    /// Asks GitHub to deliver an event again.
    pub async fn deliver_again(&self, delivery: &HookDelivery) -> Result<(), ForgeError> {
        let id = delivery.id.to_string();
        let url = self.url(&["app", "hook", "deliveries", &id, "attempts"])?;
        let what = format!("delivery {id} of the GitHub App");
        let call = Call::with(Method::POST, url, json!({}), what, "a webhook of the app");
        self.api.ask(&call).await.map(|_| ())
    }
}

/// Of a list with the latest attempts first.
fn lost(listed: Vec<HookDelivery>, since: Timestamp) -> Vec<HookDelivery> {
    let arrived = listed.iter().filter(|one| one.has_arrived());
    let mut done: HashSet<String> = arrived.map(|one| one.guid.clone()).collect();
    let mut lost: Vec<HookDelivery> = listed
        .into_iter()
        .filter(|one| one.delivered_at >= since && done.insert(one.guid.clone()))
        .collect();
    lost.reverse();
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(id: u64, guid: &str, second: i64, status_code: u16) -> HookDelivery {
        HookDelivery {
            id,
            guid: guid.to_owned(),
            delivered_at: Timestamp::from_second(second).unwrap(),
            status_code,
            event: "issue_comment".to_owned(),
        }
    }

    #[test]
    fn an_event_that_has_arrived_once_is_not_asked_for_again() {
        let listed = vec![
            delivery(9, "again", 100, 200),
            delivery(8, "twice", 99, 502),
            delivery(7, "twice", 98, 500),
            delivery(6, "again", 97, 0),
            delivery(5, "fine", 96, 204),
            delivery(4, "first", 95, 0),
            delivery(3, "old", 9, 500),
        ];
        let lost = lost(listed, Timestamp::from_second(10).unwrap());
        let ids: Vec<u64> = lost.iter().map(|one| one.id).collect();
        assert_eq!(ids, [4, 8]);
    }
}
