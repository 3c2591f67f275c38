//! Model calls beside the conversation: asked by tools, counted by the loop.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_model::{Catalogue, Model, ModelError, ModelEvent, Request, Response};
use codespar_protocol::{Cost, EntryBody, Message, Usage};
use codespar_tools::PageReader;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

const PAGE_PROMPT: &str = include_str!("prompts/page.md");
const PAGE_ANSWER_TOKENS: u32 = 4_096;

/// Calls made but not yet written to the transcript. Tools add, the loop takes.
#[derive(Debug, Default)]
pub struct SideCalls(Mutex<Vec<SideCall>>);

/// One such call.
#[derive(Debug, Clone)]
pub(crate) struct SideCall {
    pub(crate) purpose: &'static str,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
}

impl SideCall {
    pub(crate) fn entry(&self) -> EntryBody {
        EntryBody::SideCall {
            purpose: self.purpose.to_owned(),
            model: self.model.clone(),
            usage: self.usage,
            cost: self.cost,
        }
    }
}

impl SideCalls {
    fn add(&self, call: SideCall) {
        self.0.lock().push(call);
    }

    pub(crate) fn take(&self) -> Vec<SideCall> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// One question, one answer, no tools.
pub(crate) async fn ask(
    model: &dyn Model,
    id: &str,
    system: &str,
    question: String,
    max_tokens: u32,
    cancel: CancellationToken,
) -> Result<Response, ModelError> {
    let request = Request {
        model: id.to_owned(),
        system: system.into(),
        messages: vec![Arc::new(Message::user(question))],
        tools: Arc::from([]),
        max_tokens,
        temperature: None,
        effort: None,
        stop_sequences: Vec::new(),
    };
    let mut events = model.stream(request, cancel);
    while let Some(event) = events.next().await {
        if let ModelEvent::Finished(response) = event? {
            return Ok(response);
        }
    }
    Err(ModelError::BrokenStream {
        provider: model.provider(),
        message: "it ended without an answer".to_owned(),
    })
}

/// Reads fetched pages with a (small) model.
pub struct ModelPageReader {
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Which model, by its own id.
    pub model_id: String,
    /// Prices.
    pub catalogue: Arc<Catalogue>,
    /// Where the call is counted.
    pub side_calls: Arc<SideCalls>,
}

#[async_trait]
impl PageReader for ModelPageReader {
    async fn read(
        &self,
        page: &str,
        prompt: &str,
        cancel: CancellationToken,
    ) -> Result<String, String> {
        let question = format!("<page>\n{page}\n</page>\n\n{prompt}");
        let response = ask(
            &*self.model,
            &self.model_id,
            PAGE_PROMPT,
            question,
            PAGE_ANSWER_TOKENS,
            cancel,
        )
        .await
        .map_err(|error| format!("the page was fetched but could not be read: {error}"))?;
        self.side_calls.add(SideCall {
            purpose: "read a page",
            cost: self.catalogue.cost(&response.model, &response.usage),
            model: response.model.clone(),
            usage: response.usage,
        });
        Ok(response.message.text())
    }
}
