//! A session of the binary in a pseudo-terminal, its screen on an emulator.

use std::{
    fs,
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use codespar_testkit::ScreenEmulator;

use crate::common::{Bench, PATIENCE};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_codespar");
pub(crate) const COLUMNS: u16 = 90;
pub(crate) const ROWS: u16 = 30;
/// A terminal that says what it is marks its pastes.
const VERSION: &str = "\x1bP>|emulator 1\x1b\\\x1b[?62c";

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) struct Output {
    pub(crate) screen: ScreenEmulator,
    bytes: Vec<u8>,
}

/// A session and the terminal it runs in.
pub(crate) struct Terminal {
    child: Child,
    input: ChildStdin,
    pub(crate) output: Arc<Mutex<Output>>,
}

impl Terminal {
    pub(crate) fn start(bench: &Bench, args: &str) -> Self {
        let mut terminal = Self::run(bench, &format!("exec {PROGRAM} {args}"));
        terminal.is_ready();
        terminal
    }

    /// The same with variables of the environment, as a shell takes them.
    pub(crate) fn start_with(bench: &Bench, variables: &str) -> Self {
        let mut terminal = Self::run(bench, &format!("{variables} exec {PROGRAM}"));
        terminal.is_ready();
        terminal
    }

    /// The same in a directory that the user does not trust.
    pub(crate) fn start_untrusted(bench: &Bench) -> Self {
        let mut terminal = Self::run(bench, &format!("exec {PROGRAM}"));
        terminal.shows("Trust these files as they are?");
        terminal.types("n\n");
        terminal.is_ready();
        terminal
    }

    /// A shell with job control, in which the session is to be started.
    pub(crate) fn shell(bench: &Bench) -> Self {
        Self::run(
            bench,
            "PS1='shell> ' exec bash --norc --noprofile --noediting -i",
        )
    }

    /// Waits for the prompt of the session, and answers what it asks the terminal.
    pub(crate) fn is_ready(&mut self) {
        self.shows("/help shows the commands");
        self.types(VERSION);
    }

    fn run(bench: &Bench, program: &str) -> Self {
        let mut child = in_terminal(bench, program, "linux").spawn().unwrap();
        let mut written = child.stdout.take().unwrap();
        let output = Arc::new(Mutex::new(Output {
            screen: ScreenEmulator::new(
                ROWS.try_into().unwrap(),
                COLUMNS.try_into().unwrap(),
                200_000,
            ),
            bytes: Vec::new(),
        }));
        let seen = output.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while let Ok(count @ 1..) = written.read(&mut buffer) {
                let mut seen = seen.lock().unwrap();
                seen.screen.process(&buffer[..count]);
                seen.bytes.extend_from_slice(&buffer[..count]);
            }
        });
        let input = child.stdin.take().unwrap();
        Self {
            child,
            input,
            output,
        }
    }

    /// The rows of the screen that are not blank.
    pub(crate) fn rows(&self) -> Vec<String> {
        let output = self.output.lock().unwrap();
        let rows = output.screen.screen().rows(0, COLUMNS);
        let rows = rows.map(|row| row.trim_end().to_owned());
        rows.filter(|row| !row.is_empty()).collect()
    }

    pub(crate) fn screen(&self) -> String {
        self.rows().join("\n")
    }

    pub(crate) fn shows(&self, text: &str) {
        let began = Instant::now();
        while !self.screen().contains(text) {
            assert!(
                began.elapsed() < PATIENCE,
                "waited in vain for {text:?}:\n{}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// The terminal has another width; the session hears of it after the terminal.
    pub(crate) fn resize(&self, bench: &Bench, columns: u16) {
        let mut output = self.output.lock().unwrap();
        let screen = output.screen.screen_mut();
        screen.set_size(ROWS.try_into().unwrap(), columns.try_into().unwrap());
        drop(output);
        tell_columns(bench, columns);
    }

    /// All rows that the terminal has, from the oldest on, without blanks at their ends.
    pub(crate) fn scrollback(&self, columns: u16) -> Vec<String> {
        let mut output = self.output.lock().unwrap();
        let screen = output.screen.screen_mut();
        screen.set_scrollback(usize::MAX);
        let mut offset = screen.scrollback();
        let mut seen = Vec::new();
        // A screen at a time.
        loop {
            screen.set_scrollback(offset);
            let rows: Vec<String> = screen.rows(0, columns).collect();
            let take = if offset == 0 {
                rows.len()
            } else {
                rows.len().min(offset)
            };
            seen.extend(
                rows.into_iter()
                    .take(take)
                    .map(|row| row.trim_end().to_owned()),
            );
            if offset == 0 {
                return seen;
            }
            offset -= take;
        }
    }

    /// Everything that was ever written, as text.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap().bytes).into_owned()
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        let mut status = None;
        until("the end of the session", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }

    /// What was switched on is switched off, and the cursor is visible.
    pub(crate) fn is_restored(&self) {
        let written = self.written();
        for (on, off) in [
            ("\x1b[?2004h", "\x1b[?2004l"),
            ("\x1b[?1004h", "\x1b[?1004l"),
        ] {
            let (on, off) = (written.rfind(on), written.rfind(off));
            assert!(on.is_some() && off > on, "{on:?} {off:?}");
        }
        assert!(!self.output.lock().unwrap().screen.screen().hide_cursor());
    }
}

/// A program in a pseudo-terminal, with pipes for what it reads and writes.
pub(crate) fn in_terminal(bench: &Bench, program: &str, term: &str) -> Command {
    let program = format!("stty rows {ROWS} cols {COLUMNS}; {program}");
    let mut command = bench.room.command("script");
    command
        .current_dir(bench.work())
        .args(["-qec", &program, "/dev/null"])
        .env("TERM", term)
        .env("SHELL", "/bin/sh")
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Tells the session of another width, as a terminal does.
pub(crate) fn tell_columns(bench: &Bench, columns: u16) {
    let tty = fs::read_link(format!("/proc/{}/fd/0", pid_of_session(bench))).unwrap();
    let set = Command::new("stty")
        .arg("-F")
        .arg(tty)
        .args(["cols", &columns.to_string()])
        .status();
    assert!(set.unwrap().success());
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn pid_of_session(bench: &Bench) -> u32 {
    let program = fs::canonicalize(PROGRAM).unwrap();
    let is_ours =
        |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program);
    let alive = bench.room.alive().unwrap();
    alive.into_iter().find(is_ours).unwrap()
}

pub(crate) fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Gives the focus to the question on the screen, once it may have it.
pub(crate) fn focus(terminal: &mut Terminal) {
    // Only a part of the frame may have been read.
    std::thread::sleep(Duration::from_millis(100));
    until("the focus", || {
        !terminal.screen().contains("tab answers this question")
    });
}
