//! The `Model` trait and its providers. Wire formats are apart from transport, and nothing here
//! reads the environment: the binary hands in keys, addresses and the catalogue.
//!
//! The layers, from the caller down:
//!
//! ```text
//! Asker        budget, booking, the only caller of Model::stream
//! Model        one per provider: AnthropicModel, OpenAiModel, SimulatedModel, CassettePlayer
//! call         tries and waits between them
//! endpoint     one HTTP exchange, as a stream of server-sent events
//! wire         request to JSON, events to an answer; no I/O
//! ```

mod anthropic;
mod asker;
mod base_url;
mod budget;
mod call;
mod cassette;
mod catalogue;
mod endpoint;
mod error;
mod estimate;
mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod http;
mod openai;
mod request;
mod retry;
mod simulated;
mod wire;

pub use anthropic::{AnthropicConfig, AnthropicModel};
pub use asker::{Answered, Asker, Counted, Exchange, LostCall};
pub use base_url::BaseUrl;
pub use budget::{Account, Budget};
pub use cassette::{CassettePlayer, CassetteRecorder, Redaction};
pub use catalogue::{Catalogue, CatalogueError, ModelEntry, Prices, Resolved, price_lines};
pub use error::{ModelError, SetupError};
pub use estimate::{Meter, request_tokens, tokens_at_most};
pub use http::{HttpClient, HttpOptions};
pub use openai::{OpenAiConfig, OpenAiModel};
pub use request::{Effort, ModelEvent, Request, Response, ThinkingChoice, ToolSpec};
pub use retry::RetryPolicy;
pub use simulated::SimulatedModel;

use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

/// Something that answers a conversation.
pub trait Model: Send + Sync {
    /// Sends the request and yields what happens. The stream ends with exactly one
    /// `ModelEvent::Finished`, or with one error and nothing after it. Cancelling the token or
    /// dropping the stream drops the connection.
    ///
    /// `Asker` is the one caller: it keeps to the budget and books what a call came to.
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>>;

    /// What answers: `anthropic`, `openai`, `simulated` or `cassette`.
    fn provider(&self) -> &'static str;

    /// Whether its answers cost something. Where they do, tokens that it does not count are
    /// estimated.
    fn may_charge(&self) -> bool {
        true
    }

    /// Whether it searches the web while it answers, if a request lets it.
    fn searches_web(&self) -> bool {
        false
    }
}
