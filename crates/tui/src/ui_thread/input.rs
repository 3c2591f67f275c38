//! Waiting for the terminal, reading from it, and what it says about itself.

use std::{
    os::fd::AsFd,
    time::{Duration, Instant},
};

use codespar_terminal::{
    keys::{Input, TerminalReply},
    modes,
    theme::Background,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
};

use super::{Next, TuiError, Ui};
use crate::{pace::Urgency, pager::Paged};

/// An escape character that nothing follows for so long is the Esc key.
const ESCAPE: Duration = Duration::from_millis(30);
/// Read at once.
const READ: usize = 64 * 1024;

impl Ui {
    /// Waits for the terminal, a message, or the time of the next change. Without a deadline
    /// nothing wakes it but input and messages. While another program has the terminal, its input
    /// is not watched: it would be read away from that program.
    pub(super) fn wait(&mut self, now: Instant) -> Result<(), TuiError> {
        let is_away = self.modes.is_none();
        let until = |at: Option<Instant>| at.map(|at| at.saturating_duration_since(now));
        let escape = self.last_read.filter(|_| self.parser.is_waiting());
        let soonest = [
            self.app.next_time(now),
            until(escape.map(|at| at + ESCAPE)),
            until(self.burst.deadline()),
            self.pace.left(now),
            until(self.sizes.held()),
        ];
        let soonest = soonest.into_iter().flatten().min().filter(|_| !is_away);
        let timeout = soonest.map(timespec);
        let mut waiting = vec![PollFd::new(&self.woken.read, PollFlags::IN)];
        if !is_away {
            waiting.push(PollFd::new(&self.tty, PollFlags::IN));
        }
        match rustix::event::poll(&mut waiting, timeout.as_ref()) {
            Ok(0) => {
                // Time has passed: whatever counts it is shown again.
                self.pace.changed(Urgency::Streamed);
                Ok(())
            }
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn read(&mut self, now: Instant) -> Result<Next, TuiError> {
        self.read_within(Duration::ZERO, now)
    }

    /// What comes within this time. `End` if the terminal is gone.
    pub(super) fn read_within(&mut self, time: Duration, now: Instant) -> Result<Next, TuiError> {
        let mut ready = [PollFd::new(&self.tty, PollFlags::IN)];
        match rustix::event::poll(&mut ready, Some(&timespec(time))) {
            Ok(0) | Err(Errno::INTR) => return Ok(Next::GoOn),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = vec![0; READ];
        let count = match rustix::io::read(self.tty.as_fd(), &mut bytes) {
            Ok(0) => return Ok(Next::End),
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(Next::GoOn),
            // The terminal was closed.
            Err(_) => return Ok(Next::End),
        };
        self.last_read = Some(now);
        let inputs = self.parser.feed(&bytes[..count]);
        let inputs = self.burst.on_read(inputs, now);
        self.inputs(inputs, now)?;
        Ok(Next::GoOn)
    }

    /// Keys that waited for what did not come.
    pub(super) fn flush_keys(&mut self, now: Instant) {
        let is_due = self.last_read.is_some_and(|at| now >= at + ESCAPE);
        let mut inputs = Vec::new();
        if self.parser.is_waiting() && is_due {
            let flushed = self.parser.flush();
            inputs = self.burst.on_read(flushed, now);
        }
        inputs.extend(self.burst.on_time(now));
        if !inputs.is_empty() {
            let _ = self.inputs(inputs, now);
            let _ = self.effects();
        }
    }

    /// An open pager gets the keys; pastes go to the composer all the same. Answers about the size
    /// alone do not cause a frame.
    fn inputs(&mut self, inputs: Vec<Input>, now: Instant) -> Result<(), TuiError> {
        let is_size = |input: &Input| matches!(input, Input::Reply(TerminalReply::Size { .. }));
        if !inputs.iter().all(is_size) {
            self.pace.changed(Urgency::Next);
        }
        for input in inputs {
            match (input, &mut self.pager) {
                (Input::Reply(reply), _) => self.reply(reply, now),
                (Input::Key(key), Some(pager)) => {
                    if pager.key(&key) == Paged::Closed
                        && let Some(pager) = self.pager.take()
                    {
                        pager.close()?;
                        self.app.uncover(now);
                    }
                }
                (input, _) => self.app.input(input, now),
            }
        }
        Ok(())
    }

    /// What the terminal says about itself. Green counts most for brightness, blue least.
    fn reply(&mut self, reply: TerminalReply, now: Instant) {
        match reply {
            TerminalReply::Background { red, green, blue } => {
                let bright = u32::from(red) * 3 + u32::from(green) * 6 + u32::from(blue);
                self.theme.background = match bright > 10 * 0x8000 {
                    true => Background::Light,
                    false => Background::Dark,
                };
                self.app.set_theme(self.theme);
            }
            TerminalReply::Version(version) => {
                let program = self.term_program.as_deref();
                let reflow = modes::reflows(&self.term, program, Some(&version));
                self.painter.set_reflow(reflow);
                let news = modes::size_news(&self.term, program, Some(&version));
                self.painter.set_size_news(news);
                self.sizes.news = news;
            }
            TerminalReply::Size { rows, columns } => {
                self.size_answered((rows, columns), now);
            }
            _ => {}
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}
