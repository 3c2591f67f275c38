//! The thread that has the terminal: waits for input and messages, and paints.
//!
//! It sleeps until the terminal or a message wakes it, or until something that is shown changes by
//! itself; when nothing does, it is not woken at all. It paints at most 60 times a second.
//!
//! One turn of the loop: what is due by time, paint if due, wait, read the terminal, take all
//! messages, carry out effects. An error of the terminal ends the loop; `run` then leaves the
//! terminal as it was and tells the driver that the user has left.

mod clipboard;
mod external;
mod input;
mod notify;
mod size;
mod wake;

use std::{
    collections::VecDeque,
    io::{self, Write},
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{Arc, mpsc},
    time::Instant,
};

use codespar_policy::Redactor;
use codespar_terminal::{
    Size,
    burst::Burst,
    editor::EditMode,
    history::History,
    keys::KeyParser,
    modes::{self, Modes, ModifyOtherKeys},
    painter::Painter,
    theme::{Background, Colours, Theme},
};
use rustix::io::Errno;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(crate) use self::{clipboard::LARGEST_COPY, wake::Waker};
use self::{size::SizeAnswers, wake::Woken};
use crate::{
    CompletionSource, Keymap, Tui, UserAction,
    activity::Motion,
    app::{App, AppParts, Effect},
    composer::Composer,
    draft::DraftFile,
    handle::{Message, Messages},
    pace::{Pace, Urgency},
    pager::Pager,
    text::Cleaner,
};

/// The thread that has the terminal.
pub const THREAD_NAME: &str = "terminal";

/// What the surface is made with. Values of the environment are handed in.
pub struct TuiOptions {
    pub colours: Colours,
    /// From `COLORFGBG`; the terminal is asked too, and knows better.
    pub background: Option<Background>,
    pub motion: Motion,
    pub keymap: Keymap,
    /// The composer has the keys of vim.
    pub vim: bool,
    /// Secrets that are never shown.
    pub redactor: Arc<Redactor>,
    pub history: PathBuf,
    pub draft: PathBuf,
    pub completion: Arc<dyn CompletionSource>,
    /// The user's editor, as a command line.
    pub editor: Option<String>,
    /// `TERM`, `TERM_PROGRAM`.
    pub term: String,
    pub term_program: Option<String>,
}

/// The terminal cannot be used.
#[derive(Debug)]
pub struct TuiError(io::Error);

impl std::fmt::Display for TuiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot use this terminal: {}; `codespar --plain` works everywhere",
            self.0
        )
    }
}

impl std::error::Error for TuiError {}

impl From<Errno> for TuiError {
    fn from(error: Errno) -> Self {
        Self(error.into())
    }
}

impl From<io::Error> for TuiError {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

impl Tui {
    /// Takes the terminal. The receiver gives what the user does, until the terminal is gone.
    pub fn start(options: TuiOptions) -> Result<(Self, UnboundedReceiver<UserAction>), TuiError> {
        let (send, messages) = mpsc::channel();
        let (actions, done) = unbounded_channel();
        let (waker, woken) = wake::pipe()?;
        let ui = Ui::new(options, messages, woken, actions)?;
        std::thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(move || ui.run())?;
        Ok((Self::new(send, waker), done))
    }
}

fn enter() -> io::Result<Modes> {
    let (input, output) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    Modes::enter(input, output, ModifyOtherKeys::Off)
}

/// The answers come among the keys, whenever they come; nothing waits for them.
fn ask_terminal() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(modes::QUERY_BACKGROUND)?;
    out.write_all(modes::QUERY_VERSION)?;
    out.write_all(modes::QUERY_SIZE)?;
    out.write_all(modes::QUERY_ATTRIBUTES)?;
    out.flush()
}

/// Whether the loop goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

/// Owned by the thread; nothing of it is shared.
struct Ui {
    app: App,
    painter: Painter<io::Stdout>,
    /// `None` while something else has the terminal.
    modes: Option<Modes>,
    tty: OwnedFd,
    woken: Woken,
    messages: Messages,
    /// What came while something else had the terminal.
    backlog: VecDeque<Message>,
    actions: UnboundedSender<UserAction>,
    parser: KeyParser,
    burst: Burst,
    last_read: Option<Instant>,
    size: Size,
    sizes: SizeAnswers,
    theme: Theme,
    term: String,
    term_program: Option<String>,
    editor: Option<String>,
    pager: Option<Pager>,
    pace: Pace,
}

impl Ui {
    fn new(
        options: TuiOptions,
        messages: Messages,
        woken: Woken,
        actions: UnboundedSender<UserAction>,
    ) -> Result<Self, TuiError> {
        let tty = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 0)?;
        let size = size::by_system();
        let modes = enter()?;
        let theme = Theme {
            background: options.background.unwrap_or_default(),
            colours: options.colours,
        };
        let reflow = modes::reflows(&options.term, options.term_program.as_deref(), None);
        let mut painter = Painter::new(io::stdout(), size, reflow);
        let program = options.term_program.as_deref();
        let news = modes::size_news(&options.term, program, None);
        painter.set_size_news(news);
        let mut history = History::open(&options.history);
        let warning = history.warning();
        let composer = Composer::new(
            history,
            Some(DraftFile::new(options.draft)),
            options.completion,
        );
        let composer = composer.with_mode(match options.vim {
            true => EditMode::Vim,
            false => EditMode::Emacs,
        });
        let mut app = App::new(AppParts {
            theme,
            motion: options.motion,
            keymap: options.keymap,
            cleaner: Cleaner::new(options.redactor),
            composer,
            size,
        });
        if let Some(warning) = warning {
            app.message(
                Message::Notice(codespar_protocol::NoticeLevel::Warning, warning),
                Instant::now(),
            );
        }
        ask_terminal()?;
        let mut pace = Pace::default();
        pace.changed(Urgency::Next);
        Ok(Self {
            app,
            painter,
            modes: Some(modes),
            tty,
            woken,
            messages,
            backlog: VecDeque::new(),
            actions,
            parser: KeyParser::new(),
            burst: Burst::new(),
            last_read: None,
            size,
            sizes: SizeAnswers::new(news),
            theme,
            term: options.term,
            term_program: options.term_program,
            editor: options.editor,
            pager: None,
            pace,
        })
    }

    /// Ends with the terminal as it was. When the terminal is gone the user has left.
    fn run(mut self) {
        let end = self.go_on();
        self.app.save();
        let _ = self.paint_and_settle();
        if let Some(pager) = self.pager.take() {
            let _ = pager.close();
        }
        let _ = self.painter.finish();
        drop(self.modes.take());
        if let Ok(Some(stopped)) = end {
            let _ = stopped.send(());
        }
        let _ = self.actions.send(UserAction::Leave);
    }

    /// `Some` if it was asked to stop: whoever asked is told when the terminal is free.
    fn go_on(&mut self) -> Result<Option<tokio::sync::oneshot::Sender<()>>, TuiError> {
        loop {
            let now = Instant::now();
            self.app.on_time(now);
            self.flush_keys(now);
            if self.pace.is_due(now) || self.sizes.held().is_some_and(|until| now >= until) {
                self.paint(now)?;
            }
            self.wait(Instant::now())?;
            let now = Instant::now();
            if self.modes.is_some() && self.read(now)? == Next::End {
                return Ok(None);
            }
            self.woken_by_messages();
            while let Some(message) = self.next_message() {
                if let Message::Stop(done) = message {
                    return Ok(Some(done));
                }
                self.message(message, now)?;
            }
            self.effects()?;
        }
    }

    /// In the order in which they were sent; while something else has the terminal only what gives
    /// it back.
    fn next_message(&mut self) -> Option<Message> {
        let is_away = self.modes.is_none();
        if !is_away && let Some(message) = self.backlog.pop_front() {
            return Some(message);
        }
        while let Ok(message) = self.messages.try_recv() {
            match (&message, is_away) {
                (Message::Resume | Message::Stop(_), _) | (_, false) => return Some(message),
                (_, true) => self.backlog.push_back(message),
            }
        }
        None
    }

    /// Messages about the terminal are handled here, the others by the state.
    fn message(&mut self, message: Message, now: Instant) -> Result<(), TuiError> {
        let urgency = Urgency::of(&message);
        match message {
            Message::Suspend(done) => {
                self.paint_and_settle()?;
                self.give_away()?;
                let _ = done.send(());
            }
            Message::Resume => self.take_back()?,
            Message::Resized => self.told_of_resize()?,
            Message::Continued => {
                if self.modes.is_some() {
                    self.give_away()?;
                    self.take_back()?;
                }
            }
            Message::Copy(text) => {
                let mut out = io::stdout();
                out.write_all(clipboard::sequence(&text).as_bytes())?;
                out.flush()?;
            }
            Message::Page { title, items } => {
                self.paint_and_settle()?;
                self.pager = Some(Pager::open(title, items, self.theme, self.size)?);
            }
            message => self.app.message(message, now),
        }
        self.pace.changed(urgency);
        Ok(())
    }

    /// Someone else may use the terminal, below the last line of output.
    fn give_away(&mut self) -> Result<(), TuiError> {
        self.app.save();
        self.settle()?;
        self.painter.suspend()?;
        drop(self.modes.take());
        Ok(())
    }

    fn take_back(&mut self) -> Result<(), TuiError> {
        if self.modes.is_none() {
            self.modes = Some(enter()?);
            self.sizes.forget();
            self.painter.resume();
            self.resized();
        }
        Ok(())
    }

    /// Effects that come up while others are carried out wait for the next turn of the loop.
    fn effects(&mut self) -> Result<(), TuiError> {
        for effect in self.app.take_effects() {
            self.pace.changed(Urgency::Next);
            match effect {
                Effect::Action(action) => {
                    let _ = self.actions.send(action);
                }
                Effect::ExternalEditor(text) => {
                    let edited = self.external_editor(&text)?;
                    if let Some(edited) = edited {
                        self.app.set_composer_text(&edited, Instant::now());
                    }
                }
                Effect::Suspend => {
                    self.app.save();
                    self.settle()?;
                    self.painter.suspend()?;
                    // Until the shell continues it.
                    if let Some(modes) = &mut self.modes {
                        modes.suspend()?;
                    }
                    self.sizes.forget();
                    self.painter.resume();
                    self.resized();
                }
                Effect::Repaint => {
                    self.give_away()?;
                    self.take_back()?;
                }
                Effect::Notify(text) => {
                    let sequence =
                        notify::sequence(&self.term, self.term_program.as_deref(), &text);
                    let mut out = io::stdout();
                    out.write_all(sequence.as_bytes())?;
                    out.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Nothing while another program has the terminal. The size is asked for first, each time.
    fn paint(&mut self, now: Instant) -> Result<(), TuiError> {
        self.pace.painted(now);
        if self.modes.is_none() {
            return Ok(());
        }
        // A frame for another width than the terminal's would leave pieces of itself behind.
        self.resized();
        if let Some(pager) = &mut self.pager {
            return Ok(pager.draw(self.size)?);
        }
        if self.must_wait_for_answer(now) {
            return Ok(());
        }
        self.choose_queries();
        let output = self.app.take_output();
        self.painter.commit(&output);
        let frame = self.app.frame(self.size, now);
        self.painter.draw(&frame.buffer, frame.cursor)?;
        Ok(())
    }

    fn woken_by_messages(&self) {
        self.woken.drain();
    }
}
