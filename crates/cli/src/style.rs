//! Styles, by meaning. They are marks in the text; the printer turns them into sequences, or drops
//! them in pipes and under NO_COLOR.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

/// Where a style begins, or all end: code points that are no characters and never will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Error,
    Warning,
    Good,
    Strong,
    Faint,
    End,
}

impl Mark {
    const ALL: [(char, Self); 6] = [
        ('\u{fdd0}', Self::Error),
        ('\u{fdd1}', Self::Warning),
        ('\u{fdd2}', Self::Good),
        ('\u{fdd3}', Self::Strong),
        ('\u{fdd4}', Self::Faint),
        ('\u{fdd5}', Self::End),
    ];

    pub(crate) fn of(c: char) -> Option<Self> {
        if !('\u{fdd0}'..='\u{fdd5}').contains(&c) {
            return None;
        }
        Self::ALL.iter().find(|(own, _)| *own == c).map(|(_, m)| *m)
    }

    /// What a terminal understands.
    pub(crate) fn sequence(self) -> String {
        let style = match self {
            Self::Error => AnsiColor::Red.on_default().bold(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::End => return Style::new().bold().render_reset().to_string(),
        };
        style.render().to_string()
    }

    fn paint(self, text: impl Display) -> String {
        let mark = |wanted: Self| {
            let found = Self::ALL.iter().find(|(_, mark)| *mark == wanted);
            found.map(|(c, _)| *c)
        };
        let mut painted = String::new();
        painted.extend(mark(self));
        painted.push_str(&text.to_string());
        painted.extend(mark(Self::End));
        painted
    }
}

/// Something is wrong.
pub(crate) fn error(text: impl Display) -> String {
    Mark::Error.paint(text)
}

/// Something is not as asked.
pub(crate) fn warning(text: impl Display) -> String {
    Mark::Warning.paint(text)
}

/// Something went well.
pub(crate) fn good(text: impl Display) -> String {
    Mark::Good.paint(text)
}

/// A name worth finding.
pub(crate) fn strong(text: impl Display) -> String {
    Mark::Strong.paint(text)
}

/// Less important.
pub(crate) fn faint(text: impl Display) -> String {
    Mark::Faint.paint(text)
}
