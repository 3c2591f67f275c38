//! `codespar chat`: the chat channel of the terminal.
//!
//! A line is a message to the same core that serves Slack and the others, in this process or in
//! another on the same state directory. What is shown is read from the record, so every process
//! shows the whole conversation.

mod display;
mod line;

use std::{io::IsTerminal, process::ExitCode, sync::Arc};

use clap::Args;
use codespar_channels::{
    ChannelCore, ChannelSetup, ImageSource, Inbound, InboundImage, Privacy, Speaker, SpeakerKind,
    StoredChannel, TERMINAL, ThreadRef, Unlinked,
};
use codespar_protocol::SessionId;
use codespar_runtime::{
    ProcessRole, ProjectConfig, ProjectDir, ProjectOptions, Runtime, crash_point,
};
use codespar_store::{ChangeKind, StoreChange};
use codespar_tasks::Attendance;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::{display::Display, line::ChatLine};
use crate::{error::CommandError, printer, signals::Signals};

/// The terminal has one room.
const ROOM: &str = "terminal";

/// Talk to @codespar as in a chat channel, in this terminal.
///
/// Each line is a message: `@codespar fix the timeout`, `@codespar review PR #1`, `@codespar help`.
/// A thread remembers its pull request, so `@codespar also update the tests` adds to it. Questions
/// of the agent are answered by a number or a text. Exit with Ctrl-D: what is under way goes on with
/// the next `codespar chat` or `codespar worker`. Input that is not a terminal is read to its end,
/// and the work is waited for.
///
/// You are an admin in this channel. With --as you speak as another user, who has the role that
/// `channels.access.terminal` in the settings gives (docs/channels.md).
///
/// Lines that begin with a slash: /thread NAME, /image FILE (for the next message), /quit.
///
/// Examples:
///   codespar chat
///   codespar chat --as bob --thread payments
///   echo "@codespar fix the typo in README.md" | codespar chat
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ChatArgs {
    /// The user to speak as.
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,

    /// The thread to speak in.
    #[arg(long, value_name = "NAME", default_value = "main")]
    thread: String,

    /// Call no model, whatever keys are set.
    #[arg(long)]
    simulate: bool,
}

pub(crate) async fn run(args: ChatArgs, project_dir: ProjectDir) -> Result<ExitCode, CommandError> {
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?.and_closed_output();
    let owner = project_dir.var("USER").unwrap_or("owner").to_owned();
    let options = ProjectOptions {
        simulate: args.simulate,
        ..ProjectOptions::for_dev_runs(&project_dir.root, None)
    };
    let config = ProjectConfig::load(project_dir.clone(), options)?;
    let (runtime, home) =
        Runtime::with_project(config, Attendance::Elsewhere, ProcessRole::Session).await?;
    for warning in &home.warnings {
        printer::err(format_args!(
            "{} {warning}",
            crate::style::warning("warning:")
        ));
    }
    // What an earlier process left is gone on with.
    runtime.start_tasks();
    let core = ChannelCore::new(ChannelSetup {
        runtime: runtime.clone(),
        home,
        unlinked: Unlinked::Home,
        pages: Vec::new(),
        owner: Some(owner.clone()),
        crash_point: crash_point(&project_dir, "CODESPAR_TEST_DIE_AT"),
    });
    let serving = {
        let (core, cancel) = (core.clone(), cancel.clone());
        let adapter = Arc::new(StoredChannel {
            name: TERMINAL.to_owned(),
        });
        tokio::spawn(async move { core.serve(adapter, cancel).await })
    };
    let mut chat = Chat {
        user: args.user.unwrap_or(owner),
        thread: args.thread,
        images: Vec::new(),
        display: Display::new(runtime.store().clone()),
        core,
    };
    let outcome = chat.talk(&runtime, &cancel).await;
    cancel.cancel();
    let served = serving.await;
    let closed = runtime.close().await;
    outcome?;
    if let Ok(served) = served {
        served?;
    }
    closed?;
    Ok(signals
        .exit_code()
        .map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// One user at this terminal.
struct Chat {
    user: String,
    thread: String,
    /// For the next message.
    images: Vec<InboundImage>,
    display: Display,
    core: Arc<ChannelCore>,
}

/// Whether the conversation goes on.
enum Next {
    More,
    Quit,
}

impl Chat {
    async fn talk(
        &mut self,
        runtime: &Arc<Runtime>,
        cancel: &CancellationToken,
    ) -> Result<(), CommandError> {
        let is_shown = |change: &StoreChange| matches!(&change.kind, ChangeKind::Outbox { channel } if channel == TERMINAL);
        let mut changes = runtime.changes().follow().await?;
        self.display.begin(&self.thread).await?;
        let mut lines = line::read_lines()?;
        loop {
            tokio::select! {
                line = lines.recv() => match line {
                    Some(line) => {
                        if let Next::Quit = self.take(&line).await? {
                            return Ok(());
                        }
                    }
                    None => break,
                },
                () = changes.until(is_shown) => self.display.show().await?,
                () = cancel.cancelled() => return Ok(()),
            }
        }
        if std::io::stdin().is_terminal() {
            return Ok(());
        }
        // A task of its own: it may hold the connection to the store that showing waits for.
        let core = self.core.clone();
        let mut idle = tokio::spawn(async move { core.idle(TERMINAL).await });
        loop {
            tokio::select! {
                done = &mut idle => {
                    if let Ok(done) = done {
                        done?;
                    }
                    return self.display.show().await;
                }
                () = changes.until(is_shown) => self.display.show().await?,
                () = cancel.cancelled() => return Ok(()),
            }
        }
    }

    async fn take(&mut self, line: &str) -> Result<Next, CommandError> {
        match ChatLine::of(line) {
            ChatLine::Empty => {}
            ChatLine::Quit => return Ok(Next::Quit),
            ChatLine::Thread(name) => self.thread = name,
            ChatLine::Image(path) => match path.canonicalize() {
                Ok(path) => self.images.push(InboundImage {
                    name: line::file_name(&path),
                    source: ImageSource::File(path),
                }),
                Err(error) => printer::err(format_args!("codespar: {}: {error}", path.display())),
            },
            ChatLine::Unknown(word) => printer::err(format_args!(
                "codespar: there is no /{word}; there are /thread NAME, /image FILE and /quit"
            )),
            ChatLine::Message(text) => {
                let inbound = self.inbound(text);
                self.core.receive(inbound).await?;
            }
        }
        Ok(Next::More)
    }

    fn inbound(&mut self, text: String) -> Inbound {
        Inbound {
            identity: format!("{TERMINAL}:{}", SessionId::new()),
            at: ThreadRef {
                channel: TERMINAL.to_owned(),
                conversation: ROOM.to_owned(),
                thread: self.thread.clone(),
            },
            speaker: Speaker {
                id: self.user.clone(),
                name: self.user.clone(),
                kind: SpeakerKind::Person,
            },
            mentioned: false,
            privacy: Privacy::Room,
            text,
            images: std::mem::take(&mut self.images),
            reply_to: None,
        }
    }
}

/// Lines of the person, as they come.
type Lines = mpsc::UnboundedReceiver<String>;
