//! What is typed: messages, and lines for this program.

use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use super::Lines;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatLine {
    Empty,
    Message(String),
    Thread(String),
    Image(PathBuf),
    Quit,
    Unknown(String),
}

impl ChatLine {
    pub(super) fn of(line: &str) -> Self {
        let line = line.trim();
        let Some(command) = line.strip_prefix('/') else {
            return match line {
                "" => Self::Empty,
                text => Self::Message(text.to_owned()),
            };
        };
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        match (word, rest.trim()) {
            ("thread", name) if !name.is_empty() => Self::Thread(name.to_owned()),
            ("image", path) if !path.is_empty() => Self::Image(PathBuf::from(path)),
            ("quit", "") => Self::Quit,
            _ => Self::Unknown(word.to_owned()),
        }
    }
}

/// A thread of its own: a read that never returns must not hold the end of the process.
pub(super) fn read_lines() -> std::io::Result<Lines> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::Builder::new().spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    })?;
    Ok(lines)
}

pub(super) fn file_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy());
    name.unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_unless_it_begins_with_a_slash() {
        for (typed, expected) in [
            ("  ", ChatLine::Empty),
            (" hi there ", ChatLine::Message("hi there".into())),
            ("/thread payments", ChatLine::Thread("payments".into())),
            ("/image a b.png", ChatLine::Image("a b.png".into())),
            ("/quit", ChatLine::Quit),
            ("/thread", ChatLine::Unknown("thread".into())),
        ] {
            assert_eq!(ChatLine::of(typed), expected, "{typed}");
        }
    }
}
