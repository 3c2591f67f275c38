//! Asks about MCP servers that come with the repository, before anything of theirs is started, and
//! sends their prompts.
//!
//! A server is a program that runs with the rights of the user, or an address that sees what its
//! tools are given. So each is asked about, also in a trusted project, unless the user's settings
//! enable it.

use codespar_mcp::{Endpoint, ServerConfig};
use codespar_protocol::{
    Answer, Message, NoticeLevel, PermissionRequest, QuestionRequest, Role, ToolUseId,
};
use codespar_runtime::{mcp::remember, trust::ProjectFileKind};
use codespar_tui::QuestionReply;
use tokio_util::sync::CancellationToken;

use super::SessionDriver;
use crate::{error::CommandError, style};

impl SessionDriver {
    /// Each MCP server that comes with the repository, once; a no holds for this session. `always`
    /// is kept by definition: a server that is changed later is asked about again.
    pub(super) async fn ask_about_servers(&mut self) {
        // What an untrusted project brings is not even offered; the user was told.
        if !self.project.dir.trust.trusts_kind(ProjectFileKind::Servers) {
            return;
        }
        let mcp = self.project.mcp.clone();
        for server in mcp.unapproved() {
            let request = QuestionRequest::Permission(question(server.config()));
            let view = self.view.clone();
            let nothing = CancellationToken::new();
            let ending = self.signals.token().clone();
            let asked = async move {
                tokio::select! {
                    reply = view.ask(request, None) => reply,
                    () = ending.cancelled() => QuestionReply::Interrupted,
                }
            };
            let reply = self.attend(asked, &nothing).await;
            if !matches!(
                reply,
                QuestionReply::ForSession | QuestionReply::Answer(Answer::Once | Answer::Always)
            ) {
                continue;
            }
            server.approve();
            server.begin();
            let dir = &self.project.dir;
            if reply == QuestionReply::Answer(Answer::Always)
                && let Err(error) = remember(dir.state(), &dir.root, server.config())
            {
                let message = format!("allowed for this session only: {error}");
                self.say(&style::warning(message));
            }
        }
    }
}

impl SessionDriver {
    /// What the server answers is sent as it is: it names no files of the user's, and runs nothing.
    pub(super) async fn server_prompt(
        &mut self,
        name: &str,
        arguments: &str,
    ) -> Result<(), CommandError> {
        self.open().await?;
        let prompts = self.project.mcp.prompts();
        let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
            let known: Vec<&str> = prompts.iter().map(|one| one.name.as_str()).collect();
            let known = match known.is_empty() {
                true => "no connected MCP server has prompts".to_owned(),
                false => format!("there are: /{}", known.join(", /")),
            };
            let text = format!("there is no /{name}; {known}");
            self.view.notice(NoticeLevel::Warning, text);
            return Ok(());
        };
        let cancel = self.signals.token().child_token();
        let content = prompt.get(arguments, &cancel).await;
        let content = content.map_err(CommandError::Failed)?;
        let message = Message {
            role: Role::User,
            content,
        };
        self.turn(Some(message)).await
    }
}

/// It has the form of a permission, so that it is shown and answered like one; no tool call is
/// behind it.
fn question(config: &ServerConfig) -> PermissionRequest {
    let reason = match config.endpoint {
        Endpoint::Program { .. } => {
            "the repository brings this server; the program runs outside of the sandbox, with your \
             rights"
        }
        Endpoint::Http { .. } => {
            "the repository names this server; it sees what its tools are given"
        }
        Endpoint::Client => "a client brings this server",
    };
    let taken = (!config.variables.is_empty()).then(|| {
        format!(
            "takes from your environment: {}",
            config.variables.join(", ")
        )
    });
    PermissionRequest {
        tool_use_id: ToolUseId(format!("mcp-{}", config.name)),
        tool: format!("MCP server {}", config.name),
        summary: config.summary(),
        input: serde_json::Value::Null,
        preview: taken,
        change: None,
        confinement: None,
        reason: reason.to_owned(),
        suggested_rules: vec!["this server as it is now, in this project".to_owned()],
    }
}
