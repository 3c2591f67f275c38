//! Raw mode and what else is switched on for a session, and always switched off again.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use ratatui_core::layout::Size;
use rustix::{
    fs::fstat,
    io::{self, Errno},
    process::{Signal, kill_current_process_group},
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};

use crate::painter::{Reflow, SizeNews};

/// Asks for the colour of the background. Terminals without it do not answer.
pub const QUERY_BACKGROUND: &[u8] = b"\x1b]11;?\x1b\\";
/// Asks for name and version.
pub const QUERY_VERSION: &[u8] = b"\x1b[>q";
/// Asks for the size in rows and columns: the terminal's own, which may be newer than what the
/// system says.
pub const QUERY_SIZE: &[u8] = crate::painter::QUERY_SIZE.as_bytes();
/// Asks for the primary attributes. Every terminal answers this one, and answers in order: sent
/// last, its answer says that no other will come.
pub const QUERY_ATTRIBUTES: &[u8] = b"\x1b[c";

// Bracketed paste, focus reports, and keys of the kitty protocol told apart.
const ENTER: &[u8] = b"\x1b[?2004h\x1b[?1004h\x1b[>1u";
const MODIFY_OTHER_KEYS: &[u8] = b"\x1b[>4;2m";
/// Undoes all of the above and what a painter that was interrupted can leave. Each part is harmless
/// where it was not needed.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?7h\x1b[m\x1b[>4m\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?25h";
/// Below what is left of a live region.
const FRESH_LINE: &[u8] = b"\r\n\x1b[J";

/// How Ctrl and Shift with other keys are told on terminals without the kitty protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModifyOtherKeys {
    #[default]
    Off,
    /// Level 2 of xterm: all of them as sequences.
    All,
}

/// A terminal in the modes of a session, until [`Modes::leave`] or drop.
pub struct Modes {
    terminal: Terminal,
    keys: ModifyOtherKeys,
    /// Whether it is the one that [`restore_after_panic`] restores.
    is_registered: bool,
    is_entered: bool,
}

/// A terminal and how it was before us.
struct Terminal {
    input: OwnedFd,
    output: OwnedFd,
    device: u64,
    original: Termios,
}

/// The terminal of this process, for handlers that are given nothing. Written once, so that
/// reading it takes no lock.
static REGISTERED: OnceLock<Terminal> = OnceLock::new();
/// Whoever swaps it to false restores. So a panic hook and a drop cannot both do it.
static IS_TO_RESTORE: AtomicBool = AtomicBool::new(false);

impl Modes {
    /// Switches everything on. The terminal is the one that [`restore_after_panic`] restores,
    /// unless there was another before it in this process.
    pub fn enter(
        input: impl AsFd,
        output: impl AsFd,
        keys: ModifyOtherKeys,
    ) -> std::io::Result<Self> {
        let terminal = Terminal::of(input.as_fd(), output.as_fd())?;
        if REGISTERED.get().is_none() {
            let same = Terminal::of(input.as_fd(), output.as_fd())?;
            // Another thread may have been first; then that one is the terminal.
            let _ = REGISTERED.set(same);
        }
        let registered = REGISTERED.get();
        let mut modes = Self {
            is_registered: registered.is_some_and(|one| one.device == terminal.device),
            terminal,
            keys,
            is_entered: false,
        };
        modes.switch_on()?;
        Ok(modes)
    }

    /// What a signal handler restores in between may not have been changed yet, which does no harm.
    fn switch_on(&mut self) -> std::io::Result<()> {
        let mut raw = self.terminal.original.clone();
        raw.make_raw();
        // Before the first change: a signal may come in between.
        if self.is_registered {
            IS_TO_RESTORE.store(true, Ordering::SeqCst);
        }
        self.is_entered = true;
        tcsetattr(&self.terminal.input, OptionalActions::Now, &raw)?;
        write_all(&self.terminal.output, ENTER)?;
        if self.keys == ModifyOtherKeys::All {
            write_all(&self.terminal.output, MODIFY_OTHER_KEYS)?;
        }
        Ok(())
    }

    /// Switches everything off. Doing so again does nothing.
    pub fn leave(&mut self) -> std::io::Result<()> {
        if !self.is_entered {
            return Ok(());
        }
        self.is_entered = false;
        // To restore twice would take keyboard flags away that are another program's.
        let is_restored = self.is_registered && !IS_TO_RESTORE.swap(false, Ordering::SeqCst);
        if !is_restored {
            self.terminal.restore(&[])?;
        }
        Ok(())
    }

    /// Leaves, stops the process and its group as Ctrl-Z does, and enters again when it is
    /// continued. The painter has to be suspended before and resumed after.
    pub fn suspend(&mut self) -> std::io::Result<()> {
        self.leave()?;
        kill_current_process_group(Signal::TSTP)?;
        // The signal may be taken by another thread, and this one run on for a moment: it must not
        // switch on again before the process stops.
        thread::sleep(Duration::from_millis(50));
        self.switch_on()
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.leave();
    }
}

impl Terminal {
    fn of(input: impl AsFd, output: impl AsFd) -> io::Result<Self> {
        Ok(Self {
            original: tcgetattr(&input)?,
            device: fstat(&input)?.st_rdev,
            input: io::fcntl_dupfd_cloexec(input, 0)?,
            output: io::fcntl_dupfd_cloexec(output, 0)?,
        })
    }

    fn restore(&self, end: &[u8]) -> io::Result<()> {
        let written = write_all(&self.output, LEAVE).and_then(|()| write_all(&self.output, end));
        tcsetattr(&self.input, OptionalActions::Now, &self.original)?;
        written
    }
}

/// Restores the terminal of the process if it is in the modes of a session, and goes to a fresh
/// line. For panic hooks and signal handlers: it allocates nothing, takes no lock, and calls only
/// what may be called there.
pub fn restore_after_panic() {
    if !IS_TO_RESTORE.swap(false, Ordering::SeqCst) {
        return;
    }
    if let Some(terminal) = REGISTERED.get() {
        // There is no way left to report that it failed.
        let _ = terminal.restore(FRESH_LINE);
    }
}

/// Also to a descriptor that does not block, for a limited time.
fn write_all(fd: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    let mut attempts = 0;
    while !bytes.is_empty() {
        match io::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if attempts < 200 => {
                attempts += 1;
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Of the terminal; `None` if it does not know.
pub fn size(fd: impl AsFd) -> Option<Size> {
    let size = tcgetwinsize(fd).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size {
        width: size.ws_col,
        height: size.ws_row,
    })
}

/// What a terminal does with its rows on a resize, by `TERM`, `TERM_PROGRAM` and its answer to
/// [`QUERY_VERSION`]; where there is none, `XTERM_VERSION` says the same.
pub fn reflows(term: &str, term_program: Option<&str>, version: Option<&str>) -> Reflow {
    let version = version.unwrap_or_default();
    let is_tmux = version.starts_with("tmux") || term_program == Some("tmux");
    let is_screen = term == "screen" || term.starts_with("screen-") || term.starts_with("screen.");
    if is_tmux {
        Reflow::Yes
    } else if version.starts_with("xterm.js") || term_program == Some("vscode") {
        Reflow::XtermJs
    } else if version.starts_with("XTerm(") || is_screen || matches!(term, "linux" | "dumb") {
        Reflow::No
    } else {
        Reflow::Yes
    }
}

/// When a program learns of a resize: tmux tells it later than it happens.
pub fn size_news(term: &str, term_program: Option<&str>, version: Option<&str>) -> SizeNews {
    let is_tmux = term.starts_with("tmux")
        || term_program == Some("tmux")
        || version.is_some_and(|version| version.starts_with("tmux"));
    match is_tmux {
        true => SizeNews::Late,
        false => SizeNews::AtOnce,
    }
}

#[cfg(test)]
mod tests {
    use rustix::{
        fs::{Mode, OFlags, open},
        pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
        termios::{LocalModes, Winsize, tcsetwinsize},
    };

    use super::*;

    /// The side of the terminal and the side of the program.
    fn terminal() -> (OwnedFd, OwnedFd) {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let programs = open(&name, flags, Mode::empty()).unwrap();
        (ours, programs)
    }

    fn is_raw(fd: &OwnedFd) -> bool {
        !tcgetattr(fd)
            .unwrap()
            .local_modes
            .intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    fn received(fd: &OwnedFd) -> String {
        let mut bytes = [0; 200];
        let count = io::read(fd, &mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).replace('\u{1b}', "")
    }

    const ENTERED: &str = "[?2004h[?1004h[>1u";
    const LEFT: &str = "[?2026l[?7h[m[>4m[<u[?1004l[?2004l[?25h";

    #[test]
    fn what_is_switched_on_is_switched_off_by_leaving_and_by_dropping() {
        let (screen, program) = terminal();
        let mut modes = Modes::enter(&program, &program, ModifyOtherKeys::Off).unwrap();
        assert!(is_raw(&program));
        assert_eq!(received(&screen), ENTERED);
        modes.leave().unwrap();
        modes.leave().unwrap();
        assert!(!is_raw(&program));
        assert_eq!(received(&screen), LEFT);

        let modes = Modes::enter(&program, &program, ModifyOtherKeys::All).unwrap();
        assert_eq!(received(&screen), format!("{ENTERED}[>4;2m"));
        drop(modes);
        assert!(!is_raw(&program));
        assert_eq!(received(&screen), LEFT);
    }

    #[test]
    fn only_a_terminal_can_be_entered() {
        let file = tempfile::tempfile().unwrap();
        assert!(Modes::enter(&file, &file, ModifyOtherKeys::Off).is_err());
        assert_eq!(size(&file), None);
    }

    #[test]
    fn the_size_is_that_of_the_terminal_unless_it_has_none() {
        let (screen, program) = terminal();
        assert_eq!(size(&program), None);
        let window = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&screen, window).unwrap();
        assert_eq!(size(&program), Some(Size::new(80, 24)));
    }

    #[test]
    fn terminals_that_cut_rows_are_known() {
        assert_eq!(reflows("xterm-256color", None, None), Reflow::Yes);
        assert_eq!(reflows("xterm", None, Some("XTerm(390)")), Reflow::No);
        assert_eq!(reflows("linux", None, None), Reflow::No);
        assert_eq!(reflows("dumb", None, None), Reflow::No);
        assert_eq!(reflows("screen.xterm-256color", None, None), Reflow::No);
        assert_eq!(reflows("screen", Some("tmux"), None), Reflow::Yes);
        assert_eq!(reflows("screen", None, Some("tmux 3.4")), Reflow::Yes);
        let code = reflows("xterm-256color", Some("vscode"), Some("xterm.js(6.0.0)"));
        assert_eq!(code, Reflow::XtermJs);
    }
}
