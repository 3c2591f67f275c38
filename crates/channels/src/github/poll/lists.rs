//! Lists of GitHub that are asked for again and again: one that has not changed costs nothing.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use super::Look;
use crate::{SendError, github::api::Ask};

/// The most entries of a page that GitHub gives.
pub(super) const PER_PAGE: usize = 100;

/// The tags of the lists that are done with, by repository and name. A tag is of one address: with
/// another cursor it is another.
#[derive(Debug, Default)]
pub(super) struct KnownLists(BTreeMap<String, KnownList>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownList {
    name: String,
    address: String,
    tag: String,
}

/// A page of a list that is not as it was.
pub(super) struct ListPage<T> {
    pub(super) entries: Vec<T>,
    /// To be kept once all entries are on record: what is not must be told again.
    pub(super) known: Option<KnownList>,
}

impl Look<'_> {
    /// The first page of a list with these parameters, which name the length of a page too; none
    /// where it is as it was.
    pub(super) async fn changed<T: DeserializeOwned>(
        &self,
        parts: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Option<ListPage<T>>, SendError> {
        let name = format!("{} {}", self.repository, parts.join("/"));
        let address = format!("{query:?}");
        let known = self.lists.0.get(&name);
        let known = known.filter(|known| known.address == address);
        let ask = Ask {
            query,
            tag: known.map(|known| known.tag.as_str()),
            ..Ask::get(self.repository, parts)
        };
        let told = self.channel.api.ask(&ask).await?;
        if told.is_unchanged {
            return Ok(None);
        }
        Ok(Some(ListPage {
            entries: told.read()?,
            known: told.tag().map(|tag| KnownList { name, address, tag }),
        }))
    }

    /// A page that is read whatever it was.
    pub(super) async fn page<T: DeserializeOwned>(
        &self,
        parts: &[&str],
        query: &[(&str, &str)],
        page: usize,
    ) -> Result<Vec<T>, SendError> {
        let (per_page, page) = (PER_PAGE.to_string(), page.to_string());
        let paged = [("per_page", per_page.as_str()), ("page", page.as_str())];
        let query = [query, &paged].concat();
        let ask = Ask {
            query: &query,
            ..Ask::get(self.repository, parts)
        };
        self.channel.api.read(&ask).await
    }

    pub(super) fn keep(&mut self, known: Option<KnownList>) {
        if let Some(known) = known {
            self.lists.0.insert(known.name.clone(), known);
        }
    }
}
