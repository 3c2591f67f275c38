//! What a server offers: tools, prompts, whether there are resources, and its instructions.
//!
//! Asked for when it is connected, and again when it says that a list has changed. A server is not
//! asked for what it does not claim to have. Lists are bounded: what is beyond a bound is left out.

use rmcp::{
    Peer, RoleClient,
    model::{PaginatedRequestParams, Prompt, Tool},
    service::ServiceError,
};

use crate::connection::challenge_in;

/// Pages of a list that are asked for, and entries that are kept.
const MAX_PAGES: usize = 100;
const MAX_ENTRIES: usize = 1_000;
/// Bytes of a name, and of the schema of a tool. Every request to a model carries the schema.
const MAX_NAME: usize = 256;
const MAX_SCHEMA: usize = 128 << 10;
/// Characters of the instructions of one server: every request carries them, too.
const MAX_INSTRUCTIONS: usize = 2_000;

#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) has_resources: bool,
    /// How to use it, in the server's own words.
    pub(super) instructions: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum OfferError {
    #[error("it does not list its {list}: {error}")]
    List {
        list: &'static str,
        error: ServiceError,
    },
    #[error("it does not list what it offers in time")]
    Slow,
}

impl OfferError {
    /// Where the list was refused for want of a login.
    pub(super) fn challenge(&self) -> Option<String> {
        match self {
            Self::List { error, .. } => challenge_of(error),
            Self::Slow => None,
        }
    }
}

/// Where a request was refused for want of a login.
pub(super) fn challenge_of(error: &ServiceError) -> Option<String> {
    match error {
        ServiceError::TransportSend(error) => challenge_in(&*error.error),
        _ => None,
    }
}

impl Offer {
    pub(super) async fn of(peer: &Peer<RoleClient>) -> Result<Self, OfferError> {
        let Some(info) = peer.peer_info() else {
            return Ok(Self::default());
        };
        let instructions = info.instructions.as_deref().map(str::trim);
        let instructions = instructions.filter(|text| !text.is_empty());
        let (tools, prompts) = tokio::join!(tools(peer), prompts(peer));
        Ok(Self {
            tools: tools?,
            // Prompts are for the user's convenience: without them the server is of use, too.
            prompts: prompts.unwrap_or_default(),
            has_resources: info.capabilities.resources.is_some(),
            instructions: instructions.map(shortened),
        })
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_INSTRUCTIONS) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… (cut)", &text[..at]),
    }
}

/// Empty for a server that has none.
pub(super) async fn tools(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, OfferError> {
    let info = peer.peer_info();
    if info.is_none_or(|info| info.capabilities.tools.is_none()) {
        return Ok(Vec::new());
    }
    let page = |params| async move {
        let page = peer.list_tools(params).await?;
        Ok((page.tools, page.next_cursor))
    };
    let mut tools = all(page).await.map_err(|error| OfferError::List {
        list: "tools",
        error,
    })?;
    tools.retain(|tool| {
        let schema = serde_json::to_vec(&*tool.input_schema);
        tool.name.len() <= MAX_NAME && schema.is_ok_and(|schema| schema.len() <= MAX_SCHEMA)
    });
    Ok(tools)
}

/// Empty for a server that has none.
pub(super) async fn prompts(peer: &Peer<RoleClient>) -> Result<Vec<Prompt>, OfferError> {
    let info = peer.peer_info();
    if info.is_none_or(|info| info.capabilities.prompts.is_none()) {
        return Ok(Vec::new());
    }
    let page = |params| async move {
        let page = peer.list_prompts(params).await?;
        Ok((page.prompts, page.next_cursor))
    };
    let mut prompts = all(page).await.map_err(|error| OfferError::List {
        list: "prompts",
        error,
    })?;
    prompts.retain(|prompt| prompt.name.len() <= MAX_NAME);
    Ok(prompts)
}

/// All pages of a list, as far as the bounds go: a server may name a next page for ever.
pub(super) async fn all<T, F>(
    page: impl Fn(Option<PaginatedRequestParams>) -> F,
) -> Result<Vec<T>, ServiceError>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let mut entries = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params =
            cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let (found, next) = page(params).await?;
        entries.extend(found);
        entries.truncate(MAX_ENTRIES);
        if next.is_none() || entries.len() == MAX_ENTRIES {
            break;
        }
        cursor = next;
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_list_without_an_end_is_cut() {
        let asked = AtomicUsize::new(0);
        let endless = |_| async {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok((vec![1; 30], Some("more".to_owned())))
        };
        assert_eq!(all(endless).await.unwrap().len(), MAX_ENTRIES);
        let empty = |_| async {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok((Vec::<u8>::new(), Some("more".to_owned())))
        };
        asked.store(0, Ordering::Relaxed);
        assert!(all(empty).await.unwrap().is_empty());
        assert_eq!(asked.load(Ordering::Relaxed), MAX_PAGES);
    }
}
