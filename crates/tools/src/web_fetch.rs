//! WebFetch: a page of the public internet as markdown, or what it says about a question.
//!
//! ```text
//! check the address -> cache -> fetch (5 hops, 5 MiB, 30 s) -> markdown -> reader model -> answer
//! ```
//!
//! The address comes from a model that may have read it in a hostile page, so it must not reach the
//! local network: see `address.rs`. A redirect to another host is reported instead of followed,
//! because permission was given for one host. The page goes to a separate model call together with
//! the question, so that a long page, or instructions in it, do not enter the agent's own
//! conversation. Where there is no such model, the page itself is the result.

mod address;
mod cache;
mod html;
mod page;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_policy::Access;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{Call, Context, Effect, Intent, Tool, ToolError, ToolOutput, bound, input};
use address::Gate;
use cache::Cache;
use page::{Fetched, Fetcher, Page};

/// How long getting a page may take, redirects and all.
const TIME: Duration = Duration::from_secs(30);

/// How much of a page its reader gets. The rest is dropped with a note in the text.
const READER_CHARS: usize = 100_000;

/// A client that connects to addresses of the public internet only.
pub(crate) fn public_client() -> Result<reqwest::Client, String> {
    page::client(&Gate::default())
}

/// Whether an address may be asked with such a client: one written as a number is not resolved.
pub(crate) fn check_public(url: &Url) -> Result<(), String> {
    let checked = Gate::default().check(url);
    checked.map_err(|refusal| refusal.to_string())
}

/// The tool, with the pages it fetched lately. Filtered copies of a registry share it.
#[derive(Default)]
pub struct WebFetch {
    fetcher: Fetcher,
    cache: Cache,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    url: String,
    /// What to find out from the page
    prompt: String,
}

impl WebFetch {
    /// Fetches from the public internet only.
    pub fn new() -> Self {
        Self::default()
    }

    /// For tests: fetches from these addresses too.
    pub fn with_allowed(addresses: Vec<SocketAddr>) -> Self {
        Self {
            fetcher: Fetcher::new(Gate::with_allowed(addresses)),
            cache: Cache::default(),
        }
    }

    /// The address without its fragment, which no server sees and which would only split the cache.
    fn check(&self, input: &RawValue) -> Result<(Url, String), ToolError> {
        let Input { url, prompt } = input::parse(input)?;
        let mut url = Url::parse(&url)
            .map_err(|error| ToolError(format!("`{url}` is not an address: {error}")))?;
        let checked = self.fetcher.gate().check(&url);
        checked.map_err(|refusal| ToolError(refusal.to_string()))?;
        url.set_fragment(None);
        Ok((url, prompt))
    }

    /// The inner error is the address on another host that the page redirects to. Only pages are
    /// cached, neither redirects nor failures. Two calls for one page at the same time both fetch
    /// it.
    async fn page(&self, url: &Url) -> Result<Result<Arc<Page>, Url>, ToolError> {
        if let Some(page) = self.cache.get(url) {
            return Ok(Ok(page));
        }
        let fetched = tokio::time::timeout(TIME, self.fetcher.fetch(url)).await;
        let fetched = fetched
            .map_err(|_| ToolError(format!("{url} took longer than {} s", TIME.as_secs())))?;
        match fetched.map_err(|error| ToolError(error.to_string()))? {
            Fetched::Elsewhere(url) => Ok(Err(url)),
            Fetched::Page(page) => {
                let page = Arc::new(page);
                self.cache.put(url.clone(), Arc::clone(&page));
                Ok(Ok(page))
            }
        }
    }

    /// Cancellation drops the request in progress; the reader gets the token and stops by itself.
    async fn answer(&self, call: &Call, context: &Context) -> Result<String, ToolError> {
        let (url, prompt) = self.check(&call.input)?;
        let page = tokio::select! {
            page = self.page(&url) => page?,
            () = call.cancel.cancelled() => return Err(ToolError("cancelled".to_owned())),
        };
        match page {
            Ok(page) => tell(&page, &prompt, context, &call.cancel).await,
            Err(elsewhere) => Ok(format!(
                "{url} redirects to another host: {elsewhere}\nCall WebFetch with that address to \
                 go on."
            )),
        }
    }
}

/// The reader's answer, or the page itself where there is no reader.
async fn tell(
    page: &Page,
    prompt: &str,
    context: &Context,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let cut_note = "\n\n(The page was too long; it is cut here.)";
    let Some(reader) = context.page_reader() else {
        let note = if page.cut { cut_note } else { "" };
        return Ok(bound(format!("{}{note}", page.text), context, "WebFetch"));
    };
    let shown = bound::first(&page.text, READER_CHARS);
    let note = if page.cut || shown.len() < page.text.len() {
        cut_note
    } else {
        ""
    };
    let shown = format!("{shown}{note}");
    let answer = reader.read(&shown, prompt, cancel.clone());
    answer.await.map_err(ToolError)
}

#[async_trait]
impl Tool for WebFetch {
    fn name(&self) -> &str {
        "WebFetch"
    }

    fn description(&self) -> &str {
        "Fetches a public web page (http or https) as markdown and answers the prompt from it. \
         Local and private addresses are refused. A redirect to another host is reported, not \
         followed."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, input: &RawValue, _context: &Context) -> Result<Intent, ToolError> {
        let (url, _) = self.check(input)?;
        Ok(Intent {
            summary: url.to_string(),
            access: vec![Access::Fetch(url)],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let answer = self.answer(&call, context).await;
        answer.map_or_else(ToolOutput::from, ToolOutput::text)
    }
}
