//! The one request of `codespar doctor --online`: whether key, base URL and model work.
//!
//! The request goes through the same code as any other, so it also proves proxy, headers and
//! streaming. Errors of the provider are shown as they are, followed by what can be done.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_model::{Asker, Budget, Meter, ModelError, Request};
use codespar_protocol::Message;
use codespar_runtime::Provider;
use tokio_util::sync::CancellationToken;

/// Enough for a word; some providers refuse less.
const MAX_TOKENS: u32 = 16;

/// Sends one small request. What is wrong is said with what to do about it.
///
/// Nothing is sent if the provider is simulated or replayed; that is an error, since it was asked
/// for. The time limit covers the whole answer.
pub(crate) async fn probe(provider: &Provider, limit: Duration) -> Result<String, String> {
    let Some(base_url) = &provider.base_url else {
        return Err(format!("nothing was requested: {}", provider.why));
    };
    let request = Request {
        web_searches: 0,
        model: provider.choice.id.clone(),
        system: Arc::from(""),
        messages: vec![Arc::new(Message::user("Answer with the word OK."))],
        tools: Arc::from([]),
        max_tokens: MAX_TOKENS,
        temperature: None,
        effort: None,
        thinking: None,
        stop_sequences: Vec::new(),
    };
    let (budget, cancel) = (Arc::new(Budget::new(None, None)), CancellationToken::new());
    let asker = Asker {
        model: &*provider.model,
        catalogue: &provider.catalogue,
        budget: &budget,
        cancel: &cancel,
        deadline: None,
    };
    let tokens = Meter::default().measure(&request);
    let began = Instant::now();
    let asked = tokio::time::timeout(limit, asker.ask(request, tokens, |_| {}));
    let Ok(exchange) = asked.await else {
        return Err(format!(
            "no answer from {base_url} within {} s; check {} and the network, or give more time \
             with --timeout",
            limit.as_secs(),
            base_url_variable(provider)
        ));
    };
    match exchange.result {
        Ok(answered) => Ok(format!(
            "{} answered in {} ms",
            answered.response.model,
            began.elapsed().as_millis()
        )),
        Err(error) => Err(match advice(provider, &error) {
            Some(advice) => format!("{error}; {advice}"),
            None => error.to_string(),
        }),
    }
}

/// What to do, where the error does not say it itself. `None` if the text of the error already says
/// it.
fn advice(provider: &Provider, error: &ModelError) -> Option<String> {
    let variable = base_url_variable(provider);
    match error {
        ModelError::Api { status: 403, .. } => {
            Some("check that the key may use this API and this model".to_owned())
        }
        // The provider names what is missing; a server that is not a provider does not, and the
        // error then says to check the base URL.
        ModelError::Api {
            status: 404, kind, ..
        } if kind != "unknown" => Some(format!(
            "check the name of the model `{}` (--model, CODESPAR_MODEL or `model` in the settings)",
            provider.choice.id
        )),
        ModelError::Api { status: 429, .. } => {
            Some("wait, or check the limits and the credit of the account".to_owned())
        }
        ModelError::Api { status, .. } if *status >= 500 => {
            Some("the provider has a problem; try again later".to_owned())
        }
        ModelError::Connection { .. } => Some(format!(
            "check {variable}, that the server runs, and the network or proxy (HTTPS_PROXY)"
        )),
        ModelError::BrokenStream { .. } | ModelError::Malformed { .. } => Some(format!(
            "check that {variable} is the address of the API, and what proxies are in between"
        )),
        _ => None,
    }
}

/// Named in the advice; a replayed provider does not come here.
fn base_url_variable(provider: &Provider) -> &'static str {
    match provider.model.provider() {
        "openai" => "OPENAI_BASE_URL",
        _ => "ANTHROPIC_BASE_URL",
    }
}
