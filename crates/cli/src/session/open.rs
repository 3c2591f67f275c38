//! Opening a session, and what is shown of one that is resumed.

use std::sync::Arc;

use codespar_protocol::{NoticeLevel, Role};
use codespar_runtime::Surface;
use codespar_tasks::AtEnd;

use super::SessionDriver;
use crate::{
    error::CommandError,
    headless::{mode_notice, recovery_notices},
    style,
};

/// Messages of a resumed conversation that are shown.
const RECALLED: usize = 6;

impl SessionDriver {
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
            self.view.notice(NoticeLevel::Warning, notice);
        }
        if session.is_resumed && !self.view.resumed(session.transcript.messages()) {
            self.recall(session.transcript.messages());
        }
        tokio::select! {
            () = project.mcp.settled() => {}
            () = self.signals.token().cancelled() => {}
        }
        for notice in codespar_runtime::mcp::notices(&project.mcp) {
            self.view.notice(NoticeLevel::Warning, notice);
        }
        let (view, status) = (self.view.clone(), self.status.clone());
        let surface = Surface {
            sink: Arc::new(move |event| {
                status.event(&event);
                view.event(event);
            }),
            note: None,
            steering: Some(self.steering.clone()),
        };
        self.mode = session.mode;
        let mut agent = project.main_agent(session, surface, AtEnd::Return)?;
        if self.view.shows_command_output() {
            agent.report_command_output();
        }
        if let Some(model) = &self.choice {
            let choice = project.provider.choice_for(Some(model), &project.settings);
            agent.set_choice(choice);
        }
        self.status.context(&agent.context_usage());
        self.set_session(Some(agent.session()));
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
                Role::Assistant => self.view.markdown(text),
            }
        }
        self.say(&style::faint("— resumed —"));
    }
}
