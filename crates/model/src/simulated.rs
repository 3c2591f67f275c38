//! The model that answers when there is no key: it says so, and what to do about it.
//!
//! It keeps the rest of the program working without a provider: runs, records and reports are real,
//! only the answer is not. It never calls a tool and its usage is zero.

use codespar_protocol::{ContentBlock, Message, Role, StopReason, Usage};
use futures::{StreamExt, stream, stream::BoxStream};
use tokio_util::sync::CancellationToken;

use crate::{Model, ModelError, ModelEvent, Request, Response, failure::excerpt};

/// Answers without calling anything. The request is not looked at except for the last prompt, which
/// the answer quotes.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimulatedModel;

impl SimulatedModel {
    /// What its answers are signed with, and its id in the catalogue.
    pub const NAME: &'static str = "simulated";
}

impl Model for SimulatedModel {
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        if cancel.is_cancelled() {
            return stream::iter([Err(ModelError::Cancelled)]).boxed();
        }
        let text = answer(&request);
        let response = Response {
            id: None,
            model: Self::NAME.to_owned(),
            message: Message::assistant(vec![ContentBlock::text(text.clone())]),
            stop_reason: StopReason::EndTurn,
            usage: Usage::default(),
        };
        let events = [ModelEvent::TextDelta(text), ModelEvent::Finished(response)];
        stream::iter(events.map(Ok)).boxed()
    }

    fn provider(&self) -> &'static str {
        Self::NAME
    }

    fn may_charge(&self) -> bool {
        false
    }
}

fn answer(request: &Request) -> String {
    let asked = match last_prompt(request) {
        Some(line) => format!("You asked: \"{}\".", excerpt(&line)),
        None => "You asked nothing.".to_owned(),
    };
    format!(
        "[Simulated] No model was called. {asked}\n\n\
         To get a real answer, set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or OPENAI_API_KEY \
         for OpenAI; a local server of that kind needs only OPENAI_BASE_URL."
    )
}

/// The first line of what the user said last; tool results have no text of theirs.
fn last_prompt(request: &Request) -> Option<String> {
    let messages = request.messages.iter().rev();
    let mut prompts = messages.filter(|message| message.role == Role::User);
    prompts.find_map(|message| {
        let mut texts = message.content.iter().filter_map(ContentBlock::as_text);
        let mut lines = texts.find_map(|text| text.lines().find(|line| !line.trim().is_empty()));
        lines.take().map(|line| line.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::TryStreamExt;

    use super::*;

    fn request(messages: Vec<Message>) -> Request {
        Request {
            web_searches: 0,
            model: "claude-opus-5-5".to_owned(),
            system: Arc::from(""),
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: Arc::from([]),
            max_tokens: 10,
            temperature: None,
            effort: None,
            thinking: None,
            stop_sequences: Vec::new(),
        }
    }

    #[tokio::test]
    async fn it_says_that_no_model_was_called_and_which_key_to_set() {
        let prompt = Message::user("\n  Fix the login.\nIt fails.");
        let stream = SimulatedModel.stream(request(vec![prompt]), CancellationToken::new());
        let events: Vec<ModelEvent> = stream.try_collect().await.unwrap();
        let [ModelEvent::TextDelta(text), ModelEvent::Finished(response)] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(
            text,
            "[Simulated] No model was called. \
             You asked: \"Fix the login.\".\n\n\
             To get a real answer, set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or \
             OPENAI_API_KEY for OpenAI; a local server of that kind needs only OPENAI_BASE_URL."
        );
        let expected = Response {
            id: None,
            model: "simulated".to_owned(),
            message: Message::assistant(vec![ContentBlock::text(text.clone())]),
            stop_reason: StopReason::EndTurn,
            usage: Usage::default(),
        };
        assert_eq!(response, &expected);
    }

    #[tokio::test]
    async fn a_tool_result_is_not_taken_for_the_prompt() {
        let result = Message {
            role: Role::User,
            content: vec![ContentBlock::tool_result("t".into(), "out", false)],
        };
        let text = answer(&request(vec![Message::user("Go."), result]));
        assert!(text.contains("You asked: \"Go.\"."), "{text}");
    }

    #[tokio::test]
    async fn a_cancelled_call_is_not_answered() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let stream = SimulatedModel.stream(request(Vec::new()), cancel);
        let error = stream.try_collect::<Vec<_>>().await.unwrap_err();
        assert!(matches!(error, ModelError::Cancelled));
    }
}
