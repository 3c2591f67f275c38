//! Copies a text by OSC 52: to the clipboard of the terminal, also over ssh.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Terminals refuse more.
pub(crate) const LARGEST_COPY: usize = 100_000;

/// Within tmux it is passed through; tmux itself takes it where `set-clipboard` is on.
pub(super) fn sequence(text: &str) -> String {
    format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(text))
}
