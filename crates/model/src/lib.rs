//! The `Model` trait and its providers. Wire formats are apart from transport, and nothing here
//! reads the environment: the binary hands in keys, addresses and the catalogue.

mod anthropic;
mod base_url;
mod call;
mod cassette;
mod catalogue;
mod endpoint;
mod error;
mod failure;
mod http;
mod openai;
mod request;
mod retry;
mod simulated;
mod wire;

pub use anthropic::{AnthropicConfig, AnthropicModel};
pub use base_url::BaseUrl;
pub use cassette::{CassettePlayer, CassetteRecorder, Redaction};
pub use catalogue::{Catalogue, CatalogueError, ModelEntry, Prices, Resolved};
pub use error::{ModelError, SetupError};
pub use http::{HttpClient, HttpOptions};
pub use openai::{OpenAiConfig, OpenAiModel};
pub use request::{Effort, ModelEvent, Request, Response, ToolSpec};
pub use retry::RetryPolicy;
pub use simulated::SimulatedModel;

use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

/// Something that answers a conversation.
pub trait Model: Send + Sync {
    /// Sends the request and yields what happens. The stream ends with exactly one
    /// `ModelEvent::Finished`, or with one error and nothing after it. Cancelling the token or
    /// dropping the stream drops the connection.
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>>;

    /// What answers: `anthropic`, `openai`, `simulated` or `cassette`.
    fn provider(&self) -> &'static str;
}
