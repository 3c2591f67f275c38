//! One question to the model: no files are read or written, nothing is recorded.

use std::path::PathBuf;

use codespar_dev::{AskRequest, Consent, Reply, ask, keep_images};
use codespar_model::ModelEvent;
use codespar_protocol::Usd;
use tokio_util::sync::CancellationToken;

use crate::{
    AnswerPiece, AnswerWatcher, OneCall, ProjectDir, RuntimeError, one_call, simulated_call,
};

/// As for one response of the dev agent.
const MOST_TOKENS: u32 = 4_096;

/// A question to the model.
#[derive(Debug, Clone, Default)]
pub struct AskOnce {
    pub question: String,
    pub images: Vec<PathBuf>,
    /// An alias or a provider's id; `TASK_MODEL`, the settings or the usual one otherwise.
    pub model: Option<String>,
    pub max_budget: Option<Usd>,
    /// Call no model, whatever keys are set.
    pub simulation: Consent,
    /// Hears of the answer while it is written.
    pub watch: Option<AnswerWatcher>,
}

/// Asks; `cancel` stops it.
pub async fn ask_once(
    request: AskOnce,
    project_dir: &ProjectDir,
    cancel: &CancellationToken,
) -> Result<Reply, RuntimeError> {
    if request.question.trim().is_empty() {
        return Err(RuntimeError::Usage("the question is empty".to_owned()));
    }
    let OneCall {
        provider,
        redactor,
        stop,
    } = match request.simulation {
        Consent::Granted => simulated_call(project_dir, cancel)?,
        Consent::Withheld => one_call(project_dir, request.model.as_deref(), cancel)?,
    };
    if provider.lacks_key {
        return Err(RuntimeError::Usage(format!(
            "a question needs a model: {}; --simulate runs without one",
            provider.why
        )));
    }
    let dir = tempfile::tempdir()?;
    let images = keep_images(&request.images, dir.path())
        .map_err(|error| RuntimeError::Usage(error.to_string()))?;
    let watcher = request.watch;
    let watch = |event: ModelEvent| {
        let Some(watcher) = &watcher else { return };
        match event {
            ModelEvent::TextDelta(text) => watcher.tell(AnswerPiece::Text(text)),
            ModelEvent::Retrying { .. } => watcher.tell(AnswerPiece::Anew),
            ModelEvent::Counted(_) | ModelEvent::ThinkingDelta(_) | ModelEvent::Finished(_) => {}
        }
    };
    let question = AskRequest {
        model: &provider.model,
        catalogue: &provider.catalogue,
        redactor: &redactor,
        model_id: provider.choice.id.clone(),
        max_tokens: MOST_TOKENS,
        max_budget: request.max_budget,
        text: request.question,
        images,
        watch: &watch,
    };
    let reply = ask(question, &stop).await;
    reply.map_err(|error| RuntimeError::Failed(error.to_string()))
}
