//! Colours, by meaning. `anstream` drops them in pipes and under NO_COLOR.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Something is wrong.
pub(crate) fn error(text: impl Display) -> String {
    paint(AnsiColor::Red.on_default().bold(), text)
}

/// Something is not as asked.
pub(crate) fn warning(text: impl Display) -> String {
    paint(AnsiColor::Yellow.on_default(), text)
}

/// Something went well.
pub(crate) fn good(text: impl Display) -> String {
    paint(AnsiColor::Green.on_default(), text)
}

/// A name worth finding.
pub(crate) fn strong(text: impl Display) -> String {
    paint(Style::new().bold(), text)
}

/// Less important.
pub(crate) fn faint(text: impl Display) -> String {
    paint(Style::new().dimmed(), text)
}
