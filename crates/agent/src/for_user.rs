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

use crate::{
    Agent, AgentError, permit::Permitted, stop::Stop, tally::Tally, user_answer::UserChanges,
};

const COMMAND: &str = "I ran this command:\n\n    ";
const PRINTED: &str = "\n\nIt printed:\n\n";

/// The command of a message that [`Agent::run_for_user`] has put into the conversation.
pub(crate) fn command_in(text: &str) -> Option<String> {
    let (command, _) = text.strip_prefix(COMMAND)?.split_once(PRINTED)?;
    Some(command.replace("\n    ", "\n"))
}

/// Why a call of the user was not made.
#[derive(Debug, thiserror::Error)]
pub enum UserCallError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Agent(#[from] AgentError),
}

/// Who named a file that goes with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// The user, just now.
    User,
    /// The file of a command.
    File,
}

fn call_of_user(name: &str, input: &serde_json::Value) -> Result<ToolUse, UserCallError> {
    let input = to_raw_value(input).map_err(|error| UserCallError::Refused(error.to_string()))?;
    Ok(ToolUse {
        id: ToolUseId(format!("user-{}", EntryId::new())),
        name: name.to_owned(),
        input,
        extra: RawObject::default(),
    })
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
            "{COMMAND}{}{PRINTED}{}",
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

    /// What a command prints that a file of the user or the project names, not the user: the
    /// permission rules decide, and ask, as for a call of the model.
    pub async fn run_by_rules(
        &mut self,
        command: &str,
        cancel: &CancellationToken,
    ) -> Result<String, UserCallError> {
        let input = json!({"command": command});
        let (content, _) = self.call_by_rules("Bash", &input, cancel).await?;
        Ok(content.text())
    }

    /// A file as the model would read it, to go with a message of the user. It counts as read.
    /// Where the user did not name it, the rules decide.
    pub async fn read_for_user(
        &mut self,
        path: &str,
        named_by: NamedBy,
        cancel: &CancellationToken,
    ) -> Result<Vec<ContentBlock>, UserCallError> {
        let input = json!({"file_path": path});
        let (content, succeeded) = match named_by {
            NamedBy::User => self.call_for_user("Read", &input, cancel).await?,
            NamedBy::File => self.call_by_rules("Read", &input, cancel).await?,
        };
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

    /// A resource of an MCP server that the user names, by the tool that reads those of the server.
    /// What a rule denies is not read.
    pub async fn read_resource_for_user(
        &mut self,
        tool: &str,
        uri: &str,
        named_by: NamedBy,
        cancel: &CancellationToken,
    ) -> Result<Vec<ContentBlock>, UserCallError> {
        let input = json!({"uri": uri});
        let (content, succeeded) = match named_by {
            NamedBy::User => self.call_for_user(tool, &input, cancel).await?,
            NamedBy::File => self.call_by_rules(tool, &input, cancel).await?,
        };
        match (succeeded, content) {
            (false, content) => Err(UserCallError::Refused(content.text())),
            (true, ToolResultContent::Text(text)) => Ok(vec![ContentBlock::text(text)]),
            (true, ToolResultContent::Blocks(blocks)) => Ok(blocks),
        }
    }

    async fn call_by_rules(
        &mut self,
        name: &str,
        input: &serde_json::Value,
        cancel: &CancellationToken,
    ) -> Result<(ToolResultContent, bool), UserCallError> {
        let call = call_of_user(name, input)?;
        let stop = Stop::new(cancel, self.parts.limits.max_wall);
        let tool = self.parts.tools.get(name);
        match self.permit(call, tool, &mut Tally::default(), &stop).await {
            Ok(permitted) => Ok(self.make(permitted, &stop).await),
            Err((_, output)) => Err(UserCallError::Refused(output.content.text())),
        }
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
        let call = call_of_user(name, input)?;
        let intent = tool
            .inspect(&call.input, &self.parts.context)
            .map_err(|error| refused(error.to_string()))?;
        if let Decision::Deny { reason } = self.decide(name, &*tool, &intent) {
            return Err(refused(reason));
        }
        let stop = Stop::new(cancel, self.parts.limits.max_wall);
        let permitted = Permitted {
            call,
            tool,
            access: intent.access,
            approval: Approval::Person,
            summary: intent.summary,
            changes: UserChanges::default(),
        };
        Ok(self.make(permitted, &stop).await)
    }

    /// Makes a call that is permitted, and tells of its end.
    async fn make(&mut self, permitted: Permitted, stop: &Stop) -> (ToolResultContent, bool) {
        let ran = self.start(permitted, stop).await;
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
        (content, !ran.output.is_error)
    }
}
