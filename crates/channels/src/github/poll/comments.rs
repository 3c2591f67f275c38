//! New comments below issues and pull requests.

use jiff::Timestamp;
use serde::{Deserialize, de::IgnoredAny};

use super::{Cursor, Look, lists::PER_PAGE};
use crate::{
    SendError,
    github::event::{Account, Delivered, SaidComment},
};

#[derive(Deserialize)]
struct Comment {
    id: u64,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    user: Option<Account>,
    html_url: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(default)]
    performed_via_github_app: Option<IgnoredAny>,
}

impl Look<'_> {
    /// Those that changed, the oldest first; the next look goes on from there.
    pub(super) async fn comments(&mut self, cursor: &mut Cursor) -> Result<(), SendError> {
        let per_page = PER_PAGE.to_string();
        loop {
            let since = cursor.since.to_string();
            let query = [
                ("sort", "updated"),
                ("direction", "asc"),
                ("per_page", per_page.as_str()),
                ("since", since.as_str()),
            ];
            let changed = self.changed::<Comment>(&["issues", "comments"], &query);
            let Some(page) = changed.await? else {
                return Ok(());
            };
            let before = cursor.since;
            for comment in &page.entries {
                if cursor.counts(comment.created_at)
                    && let Some(found) = self.said(comment)
                {
                    self.receive(found).await?;
                }
                cursor.since = cursor.since.max(comment.updated_at);
            }
            self.keep(page.known);
            if page.entries.len() < PER_PAGE || cursor.since == before {
                return Ok(());
            }
        }
    }

    fn said(&self, comment: &Comment) -> Option<Delivered> {
        let (number, is_pull) = place(&comment.html_url)?;
        let said = SaidComment {
            repository: self.repository,
            number,
            id: comment.id,
            body: comment.body.as_deref().unwrap_or_default(),
            is_pull,
            by_program: comment.performed_via_github_app.is_some(),
            author: comment.user.as_ref()?,
        };
        let (inbound, origin) = said.message(Some(self.ours));
        Some(Delivered::Message(Box::new(inbound), Box::new(origin)))
    }
}

/// `https://github.com/acme/shop/pull/87#issuecomment-1`: the number, and whether it is a pull
/// request.
fn place(url: &str) -> Option<(u64, bool)> {
    let (path, _) = url.split_once('#')?;
    let mut parts = path.rsplit('/');
    let number = parts.next()?.parse().ok()?;
    match parts.next()? {
        "pull" => Some((number, true)),
        "issues" => Some((number, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_comment_tells_its_thread() {
        let url = |kind: &str| format!("https://github.com/acme/shop/{kind}/87#issuecomment-1");
        assert_eq!(place(&url("pull")), Some((87, true)));
        assert_eq!(place(&url("issues")), Some((87, false)));
        assert_eq!(place("https://github.com/acme/shop"), None);
    }
}
