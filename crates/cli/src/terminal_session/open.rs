//! Opening: the surface, the session, and what is said at the beginning.

use std::{collections::BTreeMap, sync::Arc};

use codespar_protocol::{NoticeLevel, Role};
use codespar_runtime::{Project, Surface};
use codespar_tasks::AtEnd;
use codespar_tui::{
    Keymap, Motion, TuiOptions,
    theme::{Background, Colours},
};

use super::{TerminalSession, completion::Completions, diverted};
use crate::{
    error::CommandError,
    headless::{mode_notice, recovery_notices},
    slash::ProjectCommands,
    style,
};

/// Messages of a resumed conversation that are shown.
const RECALLED: usize = 6;

/// What the surface needs to know of the environment and the settings.
pub(super) fn options(
    project: &Arc<Project>,
    commands: &Arc<ProjectCommands>,
) -> Result<TuiOptions, CommandError> {
    let environment = &project.dir.environment;
    let variable = |name: &str| environment.var(name).map(str::to_owned);
    let keys: &BTreeMap<String, String> = &project.settings.terminal.keys;
    let keymap = Keymap::with(keys).map_err(|error| CommandError::Usage(error.to_string()))?;
    let colours = match variable("NO_COLOR") {
        Some(_) => Colours::None,
        None => Colours::Palette,
    };
    let motion = match project.settings.terminal.reduced_motion {
        Some(true) => Motion::Reduced,
        _ => Motion::Full,
    };
    let kept = project.dir.state().join("terminal").join(key_of(project));
    Ok(TuiOptions {
        colours,
        background: variable("COLORFGBG").and_then(|value| background(&value)),
        motion,
        keymap,
        redactor: project.redactor.clone(),
        history: kept.join("history.jsonl"),
        draft: kept.join("draft.json"),
        completion: Arc::new(Completions::new(project, commands)),
        editor: variable("VISUAL").or_else(|| variable("EDITOR")),
        term: variable("TERM").unwrap_or_default(),
        term_program: variable("TERM_PROGRAM"),
    })
}

/// History and drafts are kept for each project: a directory by a hash of its root.
fn key_of(project: &Project) -> String {
    use sha2::{Digest, Sha256};
    let root = project.dir.root.as_os_str().as_encoded_bytes();
    let hash = Sha256::digest(root);
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// `15;0` is light on dark: the last number is the background.
fn background(value: &str) -> Option<Background> {
    let number: u8 = value.rsplit(';').next()?.parse().ok()?;
    Some(match number {
        7 | 9..=15 => Background::Light,
        _ => Background::Dark,
    })
}

impl TerminalSession {
    /// The agent on its session, opened when it is first needed.
    ///
    /// MCP servers are waited for here, once: the tools of an agent are set when it is made.
    pub(super) async fn open(&mut self) -> Result<(), CommandError> {
        if self.agent.is_some() {
            return Ok(());
        }
        let project = &self.project;
        let session = project.open_session(&self.which).await?;
        let notices = recovery_notices(&session.recovered)
            .into_iter()
            .chain(mode_notice(project, &session));
        for notice in notices {
            self.tui.notice(NoticeLevel::Warning, notice);
        }
        if session.is_resumed {
            self.recall(session.transcript.messages());
        }
        tokio::select! {
            () = project.mcp.settled() => {}
            () = self.signals.token().cancelled() => {}
        }
        for notice in codespar_runtime::mcp::notices(&project.mcp) {
            self.tui.notice(NoticeLevel::Warning, notice);
        }
        let (tui, status) = (self.tui.clone(), self.status.clone());
        let surface = Surface {
            sink: Arc::new(move |event| {
                status.event(&event);
                tui.event(event);
            }),
            note: None,
            steering: Some(self.steering.clone()),
        };
        self.mode = session.mode;
        let mut agent = project.main_agent(session, surface, AtEnd::Return)?;
        agent.report_command_output();
        if let Some(model) = &self.choice {
            let choice = project.provider.choice_for(Some(model), &project.settings);
            agent.set_choice(choice);
        }
        self.status.context(&agent.context_usage());
        self.agent = Some(agent);
        Ok(())
    }

    /// The end of a conversation that is taken up again.
    fn recall(&self, messages: &[Arc<codespar_protocol::Message>]) {
        let from = messages.len().saturating_sub(RECALLED);
        for message in &messages[from..] {
            let text = message.text();
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            match message.role {
                Role::User => self.say(&format!("{} {text}", style::good("›"))),
                Role::Assistant => self.tui.output(codespar_tui::markdown(text)),
            }
        }
        self.tui
            .output(diverted::lines(&style::faint("— resumed —")));
    }
}
