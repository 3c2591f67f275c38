//! The line-based session: a prompt, the answer as it comes, questions when the rules have them.

mod approver;
mod commands;
mod input;
mod screen;

use std::{io::IsTerminal, process::ExitCode, sync::Arc};

use codespar_agent::Agent;
use codespar_protocol::{Cost, Message, Usage};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub(crate) use self::screen::Screen;
use self::{approver::Person, commands::Typed, input::Input};
use crate::{
    args::Cli,
    assemble::{Company, Ground, SessionDirs},
    error::CommandError,
    headless::recovery_notices,
    place::Place,
    settings::local_file,
    style,
};

const TERMINATED: u8 = 143;

/// Runs it until the person leaves.
pub(crate) async fn run(cli: Cli, place: Place) -> Result<ExitCode, CommandError> {
    if !std::io::stdin().is_terminal() {
        return Err(CommandError::Usage(
            "standard input is not a terminal; use `codespar -p` for a headless run".to_owned(),
        ));
    }
    let first = Some(cli.prompt.join(" ")).filter(|text| !text.trim().is_empty());
    let wants_session = cli.session.resume.is_some() || cli.session.continue_last;
    let ground = Ground::prepare(place, cli.session).await?;
    let screen = Arc::new(Screen::default());
    screen.banner(&ground);
    let mut talk = Talk {
        input: Arc::new(Input::start()),
        screen,
        ground,
        agent: None,
        usage: Usage::default(),
        cost: Cost::default(),
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
    };
    if wants_session {
        talk.open().await?;
    }
    let code = talk.until_the_end(first).await;
    talk.leave().await;
    code
}

/// One sitting.
struct Talk {
    ground: Ground,
    input: Arc<Input>,
    screen: Arc<Screen>,
    agent: Option<Agent>,
    usage: Usage,
    cost: Cost,
    interrupt: Signal,
    terminate: Signal,
}

/// What the person did at the prompt.
enum Said {
    Words(String),
    Leave,
    Terminated,
}

impl Talk {
    async fn until_the_end(&mut self, mut next: Option<String>) -> Result<ExitCode, CommandError> {
        loop {
            let said = match next.take() {
                Some(words) => Said::Words(words),
                None => self.listen().await,
            };
            let words = match said {
                Said::Words(words) => words,
                Said::Leave => return Ok(ExitCode::SUCCESS),
                Said::Terminated => return Ok(ExitCode::from(TERMINATED)),
            };
            match commands::read(&words) {
                Typed::Nothing => {}
                Typed::Quit => return Ok(ExitCode::SUCCESS),
                Typed::Prompt(prompt) => self.turn(&prompt).await?,
                Typed::Help => self.screen.say(commands::HELP),
                Typed::Cost => self.show_cost(),
                Typed::Clear => {
                    self.leave().await;
                    self.screen
                        .say("a new session begins with your next prompt");
                }
                Typed::Compact => self.compact().await,
                Typed::Resume(id) => self.resume(id).await?,
                Typed::Unknown(word) => {
                    self.screen
                        .say(&format!("there is no {word}; /help shows what there is"));
                }
            }
        }
    }

    async fn listen(&mut self) -> Said {
        let mut warned = false;
        loop {
            self.screen.prompt();
            tokio::select! {
                line = self.input.paragraph() => return line.map_or(Said::Leave, Said::Words),
                _ = self.interrupt.recv() => {
                    if warned {
                        return Said::Leave;
                    }
                    warned = true;
                    self.screen.say("\n(Ctrl-C again, Ctrl-D or /quit leaves)");
                }
                _ = self.terminate.recv() => return Said::Terminated,
            }
        }
    }

    /// The agent on its session, opened when it is first needed.
    async fn open(&mut self) -> Result<&mut Agent, CommandError> {
        if self.agent.is_none() {
            let session = self.ground.open_session().await?;
            for notice in recovery_notices(&session.recovered) {
                self.screen.say(&style::warning(notice));
            }
            if session.is_resumed {
                self.screen.recall(session.transcript.messages());
            }
            let screen = self.screen.clone();
            let company = Company {
                sink: Arc::new(move |event| screen.event(&event)),
                approver: Arc::new(Person {
                    input: self.input.clone(),
                    screen: self.screen.clone(),
                    rules_file: local_file(&self.ground.place),
                    sandbox: self.ground.sandbox.clone(),
                }),
                note: None,
            };
            self.agent = Some(self.ground.agent(session, company)?);
        }
        self.agent
            .as_mut()
            .ok_or_else(|| CommandError::Failed("no session".to_owned()))
    }

    async fn turn(&mut self, prompt: &str) -> Result<(), CommandError> {
        self.open().await?;
        let Some(agent) = &mut self.agent else {
            return Ok(());
        };
        let cancel = CancellationToken::new();
        let run = agent.run(Some(Message::user(prompt)), cancel.clone());
        tokio::pin!(run);
        let result = loop {
            tokio::select! {
                result = &mut run => break result,
                _ = self.interrupt.recv() => cancel.cancel(),
                _ = self.terminate.recv() => cancel.cancel(),
            }
        };
        self.usage += result.usage;
        self.cost += result.cost;
        self.screen.end_of_turn(&result);
        Ok(())
    }

    fn show_cost(&self) {
        self.screen.say(&format!(
            "{} tokens in, {} from the cache, {} out · {}",
            self.usage.input_tokens + self.usage.cache_creation_input_tokens,
            self.usage.cache_read_input_tokens,
            self.usage.output_tokens,
            self.cost
        ));
    }

    async fn compact(&mut self) {
        let Some(agent) = &mut self.agent else {
            self.screen.say("there is nothing to summarise yet");
            return;
        };
        match agent.compact_now(&CancellationToken::new()).await {
            Ok(true) => {}
            Ok(false) => self
                .screen
                .say("the conversation is too short to summarise"),
            Err(error) => self.screen.say(&style::error(error)),
        }
    }

    async fn resume(&mut self, id: Option<String>) -> Result<(), CommandError> {
        let Some(id) = id else {
            return self
                .screen
                .sessions(&*self.ground.store, &self.ground.place)
                .await;
        };
        self.leave().await;
        self.ground.args.continue_last = false;
        self.ground.args.resume = Some(id);
        if let Err(error) = self.open().await {
            self.screen.say(&style::error(error));
        }
        self.ground.args.resume = None;
        Ok(())
    }

    /// Lets go of the session; it stays in the store.
    async fn leave(&mut self) {
        if let Some(agent) = self.agent.take() {
            let id = agent.session();
            drop(agent);
            SessionDirs::of(&self.ground.place.state, id).clean();
            self.screen.say(&style::faint(format!(
                "session {id} is kept; `codespar --resume {id}` takes it up"
            )));
        }
        self.ground.args.resume = None;
        self.ground.args.continue_last = false;
    }
}
