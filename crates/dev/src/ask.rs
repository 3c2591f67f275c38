//! A question: one call of the model, nothing is written.

use std::sync::Arc;

use codespar_agent::{Asking, Bill, Budget, Catalogue, Model, ModelEvent, Redactor, Stop};
use codespar_change::answer;
use codespar_protocol::{ContentBlock, Cost, Message, Usage, Usd};

use crate::{Failure, ImageRef, images};

const SYSTEM: &str = include_str!("prompts/ask.md");
/// Calls for one answer: each continues where the one before was cut at `max_tokens`.
const MOST_ROUNDS: u32 = 4;

/// A question to a model.
pub struct AskRequest<'a> {
    /// Who is asked.
    pub model: &'a Arc<dyn Model>,
    /// Prices.
    pub catalogue: &'a Catalogue,
    /// Takes secrets out of the question.
    pub redactor: &'a Redactor,
    /// The provider's id of the model.
    pub model_id: String,
    /// Limit on the answer.
    pub max_tokens: u32,
    /// Limit on money.
    pub max_budget: Option<Usd>,
    pub text: String,
    pub images: Vec<ImageRef>,
    /// Hears of the answer while it is written.
    pub watch: &'a (dyn Fn(ModelEvent) + Send + Sync),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The words.
    pub text: String,
    /// The model that answered.
    pub model: String,
    /// Tokens.
    pub usage: Usage,
    pub cost: Cost,
}

/// Asks, until `stop` says otherwise. The budget is for this question alone. Pictures are read from
/// disk here, so one that is gone fails before anything is paid.
pub async fn ask(question: AskRequest<'_>, stop: &Stop) -> Result<Reply, Failure> {
    let budget = Arc::new(Budget::new(question.max_budget, None));
    let asking = Asking {
        model: &**question.model,
        catalogue: question.catalogue,
        budget: &budget,
        stop,
        redactor: question.redactor,
        id: question.model_id,
        max_tokens: question.max_tokens,
        max_rounds: MOST_ROUNDS,
        join: answer::join,
        watch: question.watch,
    };
    let mut message = Message::user(question.text);
    let pictures: Vec<ContentBlock> = images::blocks(&question.images)?;
    message.content.extend(pictures);
    let asked = asking
        .ask(SYSTEM.trim(), vec![message], &mut Bill::default())
        .await?;
    Ok(Reply {
        cost: asked.cost(),
        text: asked.text,
        model: asked.model,
        usage: asked.usage,
    })
}
