//! What we say of ourselves, and the modes and commands that a client can offer.

use agent_client_protocol::{
    schema::ProtocolVersion,
    v1::schema::{
        AgentCapabilities, AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate,
        Implementation, InitializeResponse, McpCapabilities, PromptCapabilities,
        SessionAdditionalDirectoriesCapabilities, SessionCapabilities, SessionCloseCapabilities,
        SessionListCapabilities, SessionMode, SessionModeState, SessionResumeCapabilities,
        UnstructuredCommandInput,
    },
};
use codespar_policy::{Mode, printable};
use codespar_runtime::{Project, ProjectCommands};

use crate::session::hosted_commands;

/// The answer to `initialize`. There is nothing to sign in to: keys of models come from the
/// environment.
pub(super) fn initialized() -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true))
        .session_capabilities(sessions);
    let name =
        Implementation::new("codespar", env!("CARGO_PKG_VERSION")).title("CodeSpar".to_owned());
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(name)
}

/// The modes to choose from. `bypassPermissions` is for a command line, where it is written down:
/// it is offered where sessions begin with it.
pub(super) fn modes(project: &Project) -> SessionModeState {
    let current = project.mode.get();
    let offered = Mode::ALL
        .into_iter()
        .filter(|mode| may_choose(project, *mode));
    let modes = offered.map(|mode| {
        let (name, description) = match mode {
            Mode::Default => (
                "Default",
                "Asks before it changes something or runs a command",
            ),
            Mode::AcceptEdits => ("Accept edits", "Edits files of the project without asking"),
            Mode::Plan => ("Plan", "Only reads"),
            Mode::DontAsk => ("Don't ask", "What would be asked is refused"),
            Mode::BypassPermissions => ("Bypass permissions", "Only deny rules hold"),
        };
        SessionMode::new(mode.name(), name).description(description.to_owned())
    });
    SessionModeState::new(current.name(), modes.collect())
}

pub(super) fn may_choose(project: &Project, mode: Mode) -> bool {
    mode != Mode::BypassPermissions || project.options.permission_mode == Some(mode)
}

/// Slash commands, ours and those of the project's and the user's files.
pub(super) fn commands(of_files: &ProjectCommands) -> AvailableCommandsUpdate {
    let hint = |hint: &str| {
        AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint.to_owned()))
    };
    let own = hosted_commands().map(|one| {
        let command = AvailableCommand::new(one.name, one.help);
        // A review of a pull request is published: that is for a command line.
        let takes_more = !one.arguments.is_empty() && one.name != "review";
        command.input(takes_more.then(|| hint(one.arguments)))
    });
    let of_files = of_files.iter().map(|(name, one)| {
        let command = AvailableCommand::new(name, printable(&one.description).into_owned());
        command.input(hint("arguments"))
    });
    AvailableCommandsUpdate::new(own.chain(of_files).collect())
}
