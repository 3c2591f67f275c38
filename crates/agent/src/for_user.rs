//! Calls that the user makes, not the model: a command typed at the prompt, a file named in it.
//!
//! They run as the same call of the model would, confined in the same way, and deny rules hold for
//! them too. What the rules would ask about needs no asking: the user has just said it. The model
//! sees what came of them in a message of the user.

use codespar_policy::Decision;
use codespar_protocol::{
    ContentBlock, EntryBody, EntryId, Event, Message, RawObject, ToolResultContent, ToolUse,
    ToolUseId,
};
use codespar_tools::sandbox::Approval;
use serde_json::{json, value::to_raw_value};
use tokio_util::sync::CancellationToken;

use crate::{Agent, AgentError, permit::Permitted, stop::Stop, user_answer::UserChanges};

/// Why a call of the user was not made.
#[derive(Debug, thiserror::Error)]
pub enum UserCallError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Agent(#[from] AgentError),
}

impl Agent {
    /// Runs a command and puts it, with its output, into the conversation. The model reads it when
    /// it is asked next. Events are emitted as for any command. Also gives whether it succeeded.
    pub async fn run_for_user(
        &mut self,
        command: &str,
        cancel: &CancellationToken,
    ) -> Result<bool, UserCallError> {
        let (content, succeeded) = self
            .call_for_user("Bash", &json!({"command": command}), cancel)
            .await?;
        let text = format!(
            "I ran this command:\n\n    {}\n\nIt printed:\n\n{}",
            command.replace('\n', "\n    "),
            content.text()
        );
        let body = EntryBody::User {
            message: Message::user(self.parts.redactor.redact(&text)),
            synthetic: true,
        };
        let appended = self.transcript.append(body).await;
        appended.map_err(AgentError::from)?;
        Ok(succeeded)
    }

    /// A file as the model would read it, to go with a message of the user. It counts as read.
    pub async fn read_for_user(
        &mut self,
        path: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<ContentBlock>, UserCallError> {
        let input = json!({"file_path": path});
        let (content, succeeded) = self.call_for_user("Read", &input, cancel).await?;
        if !succeeded {
            return Err(UserCallError::Refused(content.text()));
        }
        Ok(match content {
            ToolResultContent::Text(text) => {
                vec![ContentBlock::text(format!("The file {path}:\n\n{text}"))]
            }
            ToolResultContent::Blocks(blocks) => blocks,
        })
    }

    async fn call_for_user(
        &mut self,
        name: &str,
        input: &serde_json::Value,
        cancel: &CancellationToken,
    ) -> Result<(ToolResultContent, bool), UserCallError> {
        let refused = |reason: String| UserCallError::Refused(reason);
        let tool = self.parts.tools.get(name);
        let tool = tool.ok_or_else(|| refused(format!("{name} is not available here")))?;
        let input = to_raw_value(input).map_err(|error| refused(error.to_string()))?;
        let intent = tool
            .inspect(&input, &self.parts.context)
            .map_err(|error| refused(error.to_string()))?;
        if let Decision::Deny { reason } = self.decide(name, &*tool, &intent) {
            return Err(refused(reason));
        }
        let stop = Stop::new(cancel, self.parts.limits.max_wall);
        let permitted = Permitted {
            call: ToolUse {
                id: ToolUseId(format!("user-{}", EntryId::new())),
                name: name.to_owned(),
                input,
                extra: RawObject::default(),
            },
            tool,
            access: intent.access,
            approval: Approval::Person,
            summary: intent.summary,
            changes: UserChanges::default(),
        };
        let ran = self.start(permitted, &stop).await;
        let content = self.redacted(ran.output.content);
        self.emit(Event::ToolFinished {
            tool_use_id: ran.call.id,
            tool: ran.call.name,
            is_error: ran.output.is_error,
            duration_ms: ran.took.map_or(0, |took| {
                u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
            }),
            result: content.clone(),
        });
        Ok((content, !ran.output.is_error))
    }
}
