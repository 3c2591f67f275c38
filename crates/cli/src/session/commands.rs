//! Lines that the user sends: prompts and slash commands.
//!
//! `slash::read` says what a line is, the same for every surface. While the agent works, only what
//! needs no agent is carried out; text becomes a message that the agent gets at its next step, and
//! commands that need the agent are put back before the user.

use codespar_agent::{Agent, NamedBy, SessionEndReason};
use codespar_protocol::{Message, NoticeLevel, Role};
use codespar_runtime::{WhichSession, find_session};
use codespar_store::SessionFilter;
use codespar_tui::Choice;
use tokio_util::sync::CancellationToken;

use super::{SessionDriver, tasks};
use crate::{
    error::CommandError,
    slash::{self, Typed},
    style,
};

/// Sessions to choose from.
const SESSIONS: u32 = 50;

impl SessionDriver {
    pub(super) fn is_quit(&self, text: &str) -> bool {
        matches!(slash::read(text, &self.project_commands), Typed::Quit)
    }

    /// A line at the prompt. Quitting is handled by the caller.
    pub(super) async fn obey(&mut self, text: &str) -> Result<(), CommandError> {
        match slash::read(text, &self.project_commands) {
            Typed::Nothing | Typed::Quit => {}
            Typed::Prompt(prompt) => self.prompt(prompt, NamedBy::User).await?,
            Typed::Mention(text) => self.carry_out(&text).await?,
            Typed::Shell(command) => self.shell(&command).await?,
            Typed::Compact => self.compact().await?,
            Typed::Clear => {
                self.leave(SessionEndReason::Clear).await;
                self.notice("a new session begins with your next prompt");
            }
            Typed::Init => self.own_prompt(slash::INIT_PROMPT).await?,
            Typed::Review(None) => self.own_prompt(slash::REVIEW_PROMPT).await?,
            Typed::Review(Some(which)) => self.carry_out(&format!("review {which}")).await?,
            Typed::Resume(id) => self.resume(id).await?,
            Typed::Rewind(wish) => self.rewind(wish).await?,
            Typed::Model(name) => self.model(name)?,
            Typed::Context => match &self.agent {
                Some(agent) => self.say(&slash::context(&agent.context_usage())),
                None => self.notice("nothing was said yet"),
            },
            Typed::Copy(place) => self.copy(place),
            Typed::Export(file) => match self.agent.as_ref().map(Agent::session) {
                Some(id) => {
                    let text = slash::export(&self.project, id, file.as_deref()).await?;
                    self.notice(text);
                }
                None => self.notice("there is no conversation to export"),
            },
            Typed::Project(name, arguments) => self.project_command(&name, &arguments).await?,
            Typed::ServerPrompt(name, arguments) => self.server_prompt(&name, &arguments).await?,
            typed => self.small_command(typed).await?,
        }
        Ok(())
    }

    /// A line while the agent works: what does not need the agent is done at once.
    pub(super) async fn obey_beside(&mut self, text: &str, cancel: &CancellationToken) {
        let typed = slash::read(text, &self.project_commands);
        let done = match typed {
            Typed::Quit => {
                cancel.cancel();
                self.signals.token().cancel();
                Ok(())
            }
            Typed::Prompt(text) => {
                self.steering.push(text);
                Ok(())
            }
            Typed::Nothing => Ok(()),
            Typed::Mention(_)
            | Typed::Shell(_)
            | Typed::Compact
            | Typed::Clear
            | Typed::Init
            | Typed::Review(_)
            | Typed::Resume(_)
            | Typed::Rewind(_)
            | Typed::Model(_)
            | Typed::Context
            | Typed::Copy(_)
            | Typed::Export(_)
            | Typed::Project(..)
            | Typed::ServerPrompt(..) => {
                self.notice("that waits for the end of the turn: Esc interrupts it");
                self.view.suggest(text);
                Ok(())
            }
            typed => self.small_command(typed).await,
        };
        if let Err(error) = done {
            self.say(&style::error(error));
        }
    }

    /// Commands that need no agent and take no long time.
    async fn small_command(&mut self, typed: Typed) -> Result<(), CommandError> {
        let dir = self.project.dir.clone();
        match typed {
            Typed::Help => {
                self.say(&slash::help(self.view.keys()));
                for (name, one) in self.project_commands.iter() {
                    self.say(&format!("/{name:<19} {}", one.description));
                }
                for one in self.project.mcp.prompts() {
                    let usage = format!("{} {}", one.name, one.usage());
                    self.say(&format!("/{:<19} {}", usage.trim_end(), one.description));
                }
            }
            Typed::Cost => self.show_cost(),
            Typed::Tasks(which) => self.show_tasks(which).await?,
            Typed::TaskStatus(id) => self.say(&tasks::status(&self.project, &id).await?),
            Typed::Stop(id) => self.say(&tasks::stop(&self.project, &id).await?),
            Typed::Mode(name) => {
                let text = slash::mode(&self.project, name.as_deref())?;
                self.status.mode(self.project.mode.get());
                self.say(&text);
            }
            Typed::Permissions => self.say(&slash::permissions(&self.project)),
            Typed::Memory => self.say(&slash::memory(&self.project)),
            Typed::Note(note) => self.say(&slash::memory_note(&dir.root, &note)?),
            Typed::Agents => slash::run_line(&self.project, &["agents", "list"]).await?,
            Typed::Sessions => {
                slash::run_line(&self.project, &["session", "list", "--here"]).await?;
            }
            Typed::Mcp => slash::run_line(&self.project, &["mcp", "list"]).await?,
            Typed::Hooks => slash::run_line(&self.project, &["hooks", "list"]).await?,
            Typed::Doctor => slash::run_line(&self.project, &["doctor"]).await?,
            Typed::Diff => {
                let text = slash::diff(&self.project).await?;
                match text.trim().is_empty() {
                    true => self.notice("no uncommitted changes"),
                    false => self.view.diff(&text),
                }
            }
            Typed::Unknown(word, nearest) => {
                let text = slash::unknown(&word, nearest.as_deref());
                self.view.notice(NoticeLevel::Warning, text);
            }
            _ => {}
        }
        Ok(())
    }

    /// Opens the session if it is the first prompt, and attaches what the text names.
    pub(super) async fn prompt(
        &mut self,
        text: String,
        named_by: NamedBy,
    ) -> Result<(), CommandError> {
        self.open().await?;
        let message = self.with_attachments(text, named_by).await;
        self.turn(Some(message)).await
    }

    /// A text of ours names no files.
    async fn own_prompt(&mut self, text: &str) -> Result<(), CommandError> {
        self.turn(Some(Message::user(text))).await
    }

    /// Esc and Ctrl-C stop it.
    async fn shell(&mut self, command: &str) -> Result<(), CommandError> {
        self.open().await?;
        let Some(mut agent) = self.agent.take() else {
            return Ok(());
        };
        let cancel = self.signals.token().child_token();
        self.view.turn_started();
        let (command, stop) = (command.to_owned(), cancel.clone());
        let run = async move {
            let done = agent.run_for_user(&command, &stop).await;
            (agent, done)
        };
        let (agent, done) = self.attend(run, &cancel).await;
        self.agent = Some(agent);
        self.view.turn_ended(None);
        done.map(|_| ())
            .map_err(|error| CommandError::Failed(error.to_string()))
    }

    async fn compact(&mut self) -> Result<(), CommandError> {
        let Some(mut agent) = self.agent.take() else {
            self.notice("there is no conversation to summarise");
            return Ok(());
        };
        let cancel = self.signals.token().child_token();
        self.view.turn_started();
        let stop = cancel.clone();
        let run = async move {
            let done = agent.compact_now(&stop).await;
            (agent, done)
        };
        let (agent, done) = self.attend(run, &cancel).await;
        self.status.context(&agent.context_usage());
        self.agent = Some(agent);
        self.view.turn_ended(None);
        match done {
            Ok(true) => {}
            Ok(false) => self.notice("the conversation is too short to summarise"),
            Err(error) if error.is_interrupt() => {
                self.notice("interrupted; the conversation is as it was");
            }
            Err(error) => return Err(CommandError::Failed(error.to_string())),
        }
        Ok(())
    }

    /// Without an id the user chooses from a list.
    async fn resume(&mut self, id: Option<String>) -> Result<(), CommandError> {
        let id = match id {
            Some(id) => id,
            None => match self.choose_session().await? {
                Some(id) => id,
                None => return Ok(()),
            },
        };
        // Looked for before the current one is let go.
        let id = find_session(&*self.project.store, &id).await?;
        self.leave(SessionEndReason::Clear).await;
        self.which = WhichSession::Id(id.to_string());
        let opened = self.open().await;
        self.which = WhichSession::New;
        opened
    }

    async fn choose_session(&mut self) -> Result<Option<String>, CommandError> {
        let filter = SessionFilter {
            cwd: Some(self.project.dir.cwd.clone()),
            limit: Some(SESSIONS),
        };
        let mut sessions = self.project.store.sessions(filter).await?;
        sessions.retain(|session| session.last_seq > 0);
        if sessions.is_empty() {
            self.notice("no sessions in this directory yet");
            return Ok(None);
        }
        let choices = sessions.iter().map(|session| Choice {
            label: codespar_policy::printable(session.title.as_deref().unwrap_or("(no title)"))
                .into_owned(),
            detail: format!(
                "{} · {}",
                session.updated_at.strftime("%Y-%m-%d %H:%M"),
                session.id
            ),
        });
        let chosen = self.choose("Resume a session", choices.collect()).await;
        Ok(chosen.map(|number| sessions[number].id.to_string()))
    }

    /// For the next turn. A name that may not be used is refused now and not with the next prompt;
    /// without a name the current one is shown.
    fn model(&mut self, name: Option<String>) -> Result<(), CommandError> {
        let project = &self.project;
        let Some(name) = name else {
            let current = match &self.choice {
                Some(name) => {
                    project
                        .provider
                        .choice_for(Some(name), &project.settings)
                        .id
                }
                None => project.provider.choice.id.clone(),
            };
            let aliases = project.provider.catalogue.aliases().join(", ");
            self.say(&format!(
                "{current}\n{}",
                style::faint(format!("/model NAME changes it: {aliases}, or an id"))
            ));
            return Ok(());
        };
        (project.provider.model_gate())(&name).map_err(CommandError::Usage)?;
        let choice = project.provider.choice_for(Some(&name), &project.settings);
        self.status.model(&choice.id, choice.context_window);
        self.notice(format!("{} answers from now on", choice.id));
        if let Some(agent) = &mut self.agent {
            agent.set_choice(choice);
        }
        self.choice = Some(name);
        Ok(())
    }

    /// Tokens that were written to the cache count as input.
    pub(super) fn show_cost(&self) {
        self.say(&format!(
            "{} tokens in, {} from the cache, {} out · {}",
            self.usage.input_tokens + self.usage.cache_creation_input_tokens,
            self.usage.cache_read_input_tokens,
            self.usage.output_tokens,
            self.cost
        ));
    }

    /// The text of the last answers, as they were written.
    fn copy(&self, place: usize) {
        let answers = self.agent.iter().flat_map(|agent| {
            let messages = agent.transcript().messages().iter().rev();
            messages.filter(|message| message.role == Role::Assistant)
        });
        let mut texts = answers.map(|message| message.text());
        let mut found = texts.by_ref().filter(|text| !text.trim().is_empty());
        match found.nth(place - 1) {
            Some(text) => match self.view.copy(text) {
                Ok(()) => self.notice("copied"),
                Err(why) => self.view.notice(NoticeLevel::Warning, why),
            },
            None => self.notice("there is no such answer"),
        }
    }

    /// The whole conversation on a screen of its own.
    pub(super) fn show_transcript(&self) {
        let Some(agent) = &self.agent else {
            self.notice("the transcript is there when the turn is over");
            return;
        };
        let messages = agent.transcript().messages();
        self.view.transcript(messages, &self.project.redactor);
    }
}
