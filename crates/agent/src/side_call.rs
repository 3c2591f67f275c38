//! Model calls beside the conversation: asked by tools, counted by the loop.
//!
//! A tool that asks a model (a fetched page is read by one) cannot append to the transcript: the
//! loop owns it. It leaves the call here, and the loop records it after the results of the message.
//! The budget is charged at once, as for any call; only the record comes later. A crash in between
//! loses the record of the cost, not of the conversation.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use codespar_model::{
    Answered, Asker, Budget, Catalogue, Counted, Exchange, LostCall, Model, ModelError, Request,
    request_tokens,
};
use codespar_policy::Redactor;
use codespar_protocol::{Cost, EntryBody, Message, Usage};
use codespar_tools::PageReader;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

const PAGE_PROMPT: &str = include_str!("prompts/page.md");
const HOOK_PROMPT: &str = include_str!("prompts/hook.md");
/// Where the prompt of a hook has what it is asked about.
const ARGUMENTS: &str = "$ARGUMENTS";
/// The limit on the answer to a hook.
const HOOK_ANSWER_TOKENS: u32 = 1_024;
/// The limit on what is said about a page.
const PAGE_ANSWER_TOKENS: u32 = 4_096;

/// Calls made but not yet written to the transcript. Tools add, the loop takes.
#[derive(Debug, Default)]
pub struct SideCalls {
    calls: Mutex<Vec<SideCall>>,
    /// Of the agent whose tools make them.
    budget: OnceLock<Arc<Budget>>,
}

/// One such call.
#[derive(Debug, Clone)]
pub(crate) struct SideCall {
    /// For the record, in words.
    purpose: &'static str,
    model: String,
    usage: Usage,
    cost: Cost,
}

impl SideCall {
    pub(crate) fn entry(self) -> EntryBody {
        EntryBody::SideCall {
            purpose: self.purpose.to_owned(),
            model: self.model,
            usage: self.usage,
            cost: self.cost,
        }
    }
}

impl From<LostCall> for SideCall {
    fn from(lost: LostCall) -> Self {
        Self {
            purpose: match lost.counted {
                Counted::ByProvider => "an answer that broke off",
                Counted::Estimated => "an answer that broke off (input estimated)",
            },
            model: lost.model,
            usage: lost.usage,
            cost: lost.cost,
        }
    }
}

impl SideCalls {
    /// Says what the calls are paid from.
    pub(crate) fn pay_from(&self, budget: &Arc<Budget>) {
        // An agent has its side calls to itself, so there is no other budget.
        let _ = self.budget.set(budget.clone());
    }

    /// One without limits if no agent was made with these calls.
    fn budget(&self) -> &Arc<Budget> {
        self.budget.get_or_init(Arc::default)
    }

    fn add(&self, calls: impl IntoIterator<Item = SideCall>) {
        self.calls.lock().extend(calls);
    }

    /// Each call is given once.
    pub(crate) fn take(&self) -> Vec<SideCall> {
        std::mem::take(&mut *self.calls.lock())
    }
}

/// One question, one answer, no tools. The exchange comes back with attempts that were charged and
/// lost; the caller puts them on record.
pub(crate) async fn ask(
    asker: Asker<'_>,
    id: &str,
    system: &str,
    question: String,
    max_tokens: u32,
) -> Exchange {
    let request = Request {
        web_searches: 0,
        model: id.to_owned(),
        system: system.into(),
        messages: vec![Arc::new(Message::user(question))],
        tools: Arc::from([]),
        max_tokens,
        temperature: None,
        effort: None,
        thinking: None,
        stop_sequences: Vec::new(),
    };
    let tokens = request_tokens(&request);
    asker.ask(request, tokens, |_| {}).await
}

/// A (small) model for questions beside the conversation: about fetched pages, and of hooks.
///
/// What it reads is untrusted text: it has no tools, and only its answer goes anywhere.
pub struct SideModel {
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Which model, by its own id.
    pub model_id: String,
    /// Prices.
    pub catalogue: Arc<Catalogue>,
    /// Where the call is counted.
    pub side_calls: Arc<SideCalls>,
    /// Takes secrets out of the question.
    pub redactor: Arc<Redactor>,
}

/// What is asked beside the conversation.
struct SideQuestion {
    /// For the record, in words.
    purpose: &'static str,
    /// The system prompt.
    system: &'static str,
    text: String,
    max_tokens: u32,
}

impl SideModel {
    /// Whether what a hook's prompt describes may happen: the text of an answer in the format of
    /// hooks. `event` is what the hook is told, as JSON; it stands in place of `$ARGUMENTS`.
    pub async fn judge(
        &self,
        prompt: &str,
        event: &str,
        model_id: Option<&str>,
        cancel: &CancellationToken,
    ) -> Result<String, ModelError> {
        let text = match prompt.contains(ARGUMENTS) {
            true => prompt.replace(ARGUMENTS, event),
            false => format!("{prompt}\n\n{event}"),
        };
        let question = SideQuestion {
            purpose: "asked for a hook",
            system: HOOK_PROMPT,
            text,
            max_tokens: HOOK_ANSWER_TOKENS,
        };
        let model_id = model_id.unwrap_or(&self.model_id);
        let text = self.answer(&question, model_id, cancel).await?;
        // Models like to put a fence around an object.
        let object = text.find('{').zip(text.rfind('}'));
        let object = object.filter(|(start, end)| start < end);
        Ok(match object {
            Some((start, end)) => text[start..=end].to_owned(),
            None => format!("{{no object: {text}"),
        })
    }

    /// One question, charged at once and recorded later.
    async fn answer(
        &self,
        question: &SideQuestion,
        model_id: &str,
        cancel: &CancellationToken,
    ) -> Result<String, ModelError> {
        let asker = Asker {
            model: &*self.model,
            catalogue: &self.catalogue,
            budget: self.side_calls.budget(),
            cancel,
            deadline: None,
        };
        let text = self.redactor.redact(&question.text).into_owned();
        let exchange = ask(asker, model_id, question.system, text, question.max_tokens).await;
        self.side_calls
            .add(exchange.lost.into_iter().map(SideCall::from));
        let Answered { response, cost, .. } = exchange.result?;
        self.side_calls.add([SideCall {
            purpose: question.purpose,
            model: response.model,
            usage: response.usage,
            cost,
        }]);
        Ok(response.message.text())
    }
}

#[async_trait]
impl PageReader for SideModel {
    async fn read(
        &self,
        page: &str,
        prompt: &str,
        cancel: CancellationToken,
    ) -> Result<String, String> {
        let question = SideQuestion {
            purpose: "read a page",
            system: PAGE_PROMPT,
            text: format!("<page>\n{page}\n</page>\n\n{prompt}"),
            max_tokens: PAGE_ANSWER_TOKENS,
        };
        let answered = self.answer(&question, &self.model_id, &cancel).await;
        answered.map_err(|error| format!("the page was fetched but could not be read: {error}"))
    }
}
