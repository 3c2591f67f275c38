//! The one way to the terminal: text from a model or a repository cannot move the cursor, set the
//! title, reach the clipboard or turn the order of characters round, and known secrets are left
//! out.
//!
//! Styles travel as marks, never as escape sequences, so that every escape sequence in the text
//! is foreign and is shown escaped. Nothing else in this crate writes to standard output or
//! standard error.

use std::{
    borrow::Cow,
    fmt,
    io::{self, Write},
    sync::{Arc, OnceLock},
};

use codespar_policy::{Redactor, is_unprintable};
use parking_lot::RwLock;

use crate::style::Mark;

/// The secrets of the environment; unknown until the environment is read.
static SECRETS: OnceLock<Redactor> = OnceLock::new();

/// Where text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    Stdout,
    Stderr,
}

/// From now on these values are left out of everything that people read.
///
/// The first call counts; what is printed before it has no secrets in it, since none were read.
pub(crate) fn hide(secrets: Redactor) {
    let _ = SECRETS.set(secrets);
}

/// Takes what would be printed: text with marks for styles, without secrets.
pub(crate) type Diverted = dyn Fn(&str) + Send + Sync;

static DIVERTED: RwLock<Option<Arc<Diverted>>> = RwLock::new(None);

/// Ends the diversion when it is dropped.
pub(crate) struct Diversion(());

impl Drop for Diversion {
    fn drop(&mut self) {
        *DIVERTED.write() = None;
    }
}

/// From now on text goes to `taker` instead of the terminal, which somebody else draws on.
pub(crate) fn divert(taker: Arc<Diverted>) -> Diversion {
    *DIVERTED.write() = Some(taker);
    Diversion(())
}

pub(crate) fn is_diverted() -> bool {
    DIVERTED.read().is_some()
}

/// Whether somebody took the text.
fn diverted(text: &str) -> bool {
    let taker = DIVERTED.read().clone();
    match taker {
        Some(taker) => {
            taker(&redacted(text));
            true
        }
        None => false,
    }
}

/// Prints to standard output, in one piece.
pub(crate) fn out(text: fmt::Arguments<'_>) -> io::Result<()> {
    let text = text.to_string();
    write(To::Stdout, &text)
}

/// Prints text with marks for styles.
pub(crate) fn write(to: To, text: &str) -> io::Result<()> {
    match diverted(text) {
        true => Ok(()),
        false => send(to, &rendered(to, text)),
    }
}

/// Prints a line to standard error. Nobody reading it is no reason to stop the work.
pub(crate) fn err(line: fmt::Arguments<'_>) {
    let line = format!("{line}\n");
    let _ = write(To::Stderr, &line);
}

/// Prints a question to standard error; the answer comes on the same line.
pub(crate) fn ask(question: fmt::Arguments<'_>) -> io::Result<()> {
    let question = question.to_string();
    send(To::Stderr, &rendered(To::Stderr, &question))
}

/// Prints a line with a secret in it to standard output: for the one who is to have it.
pub(crate) fn secret(line: &str) -> io::Result<()> {
    send(To::Stdout, &format!("{}\n", render(line, Styles::Dropped)))
}

/// Prints a serialised JSON value and a line end to standard output.
pub(crate) fn json(value: &str) -> io::Result<()> {
    let text = format!("{}\n", escaped_json(value));
    match diverted(&text) {
        true => Ok(()),
        false => send(To::Stdout, &text),
    }
}

/// Sends a line of a protocol, which is JSON, to standard output. Not diverted: the program at the
/// other end is the surface.
pub(crate) fn protocol_line(line: &str) -> io::Result<()> {
    send(To::Stdout, &format!("{}\n", escaped_json(line)))
}

/// Sends text together with movements of the cursor. Everything in it but those movements is from
/// [`rendered`].
pub(crate) fn send(to: To, text: &str) -> io::Result<()> {
    match to {
        To::Stdout => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            stdout.flush()
        }
        To::Stderr => {
            let mut stderr = io::stderr().lock();
            stderr.write_all(text.as_bytes())?;
            stderr.flush()
        }
    }
}

/// The text as it may be sent there: without secrets, harmless, styled where styles are shown.
pub(crate) fn rendered(to: To, text: &str) -> String {
    let choice = match to {
        To::Stdout => anstream::AutoStream::choice(&io::stdout()),
        To::Stderr => anstream::AutoStream::choice(&io::stderr()),
    };
    let styles = match choice {
        anstream::ColorChoice::Never => Styles::Dropped,
        _ => Styles::Shown,
    };
    render(&redacted(text), styles)
}

/// The characters that [`out`] shows for this text.
pub(crate) fn visible(text: &str) -> String {
    render(&redacted(text), Styles::Dropped)
}

/// What another program printed, without the sequences that style it.
pub(crate) fn without_styles(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn redacted(text: &str) -> Cow<'_, str> {
    match SECRETS.get() {
        Some(secrets) => secrets.redact(text),
        None => Cow::Borrowed(text),
    }
}

/// Whether styles become escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Styles {
    Shown,
    Dropped,
}

fn render(text: &str, styles: Styles) -> String {
    let mut result = String::with_capacity(text.len() + 16);
    let mut is_styled = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match Mark::of(c) {
            Some(mark) if styles == Styles::Shown => {
                is_styled = mark != Mark::End;
                result.push_str(&mark.sequence());
            }
            Some(_) => {}
            // The line end of another system.
            None if c == '\r' && chars.peek() == Some(&'\n') => {}
            None if is_unprintable(c) => result.extend(c.escape_unicode()),
            None => result.push(c),
        }
    }
    if is_styled {
        result.push_str(&Mark::End.sequence());
    }
    result
}

/// Foreign text for a place where its width or its lines matter: escaped as the printer would, and
/// without marks of a style.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    codespar_policy::printable(text)
}

/// JSON escapes some control characters by itself, not these.
fn escaped_json(value: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !is_unprintable(c) || c == '\r';
    if value.chars().all(is_plain) {
        return Cow::Borrowed(value);
    }
    let mut escaped = String::with_capacity(value.len() + 16);
    for c in value.chars() {
        // All of them are in the basic plane, and can only be inside a string.
        match is_plain(c) {
            true => escaped.push(c),
            false => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    Cow::Owned(escaped)
}

/// The log, on standard error or in a file.
#[derive(Debug, Clone)]
pub(crate) enum Log {
    Stderr,
    File(Arc<std::fs::File>),
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        match self {
            Self::Stderr => write(To::Stderr, &text)?,
            Self::File(file) => {
                let text = render(&redacted(&text), Styles::Dropped);
                (&**file).write_all(text.as_bytes())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style;

    #[test]
    fn foreign_sequences_are_shown_not_obeyed() {
        assert_eq!(plain("a\tb\nc é\r\n"), "a\tb\nc é\r\n".replace('\r', ""));
        assert_eq!(
            plain("x\u{1b}[2K\r\u{202e}gnp"),
            "x\\u{1b}[2K\\u{d}\\u{202e}gnp"
        );
        let hostile = "\u{1b}]0;t\u{7}\u{9b}31m\u{90}q\u{7f}\u{8}\u{1b}[31mred";
        for styles in [Styles::Shown, Styles::Dropped] {
            let shown = render(hostile, styles);
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            assert!(shown.contains("red"), "{shown:?}");
        }
        assert_eq!(plain("👩\u{200d}💻"), "👩\u{200d}💻");
    }

    #[test]
    fn only_our_own_styles_become_sequences() {
        let text = format!("{} rest", style::error("bad \u{1b}[8mhidden"));
        assert_eq!(
            render(&text, Styles::Shown),
            "\u{1b}[1m\u{1b}[31mbad \\u{1b}[8mhidden\u{1b}[0m rest"
        );
        assert_eq!(render(&text, Styles::Dropped), "bad \\u{1b}[8mhidden rest");
    }

    #[test]
    fn a_style_that_foreign_text_opens_ends_with_the_text() {
        let mark: String = style::strong("x").chars().take(1).collect();
        let shown = render(&format!("{mark}forged"), Styles::Shown);
        assert!(shown.ends_with("\u{1b}[0m"), "{shown:?}");
        assert_eq!(plain(&format!("{mark}forged")), "forged");
    }

    #[test]
    fn json_has_no_control_characters_and_the_same_value() {
        let value = serde_json::json!({"a": "\u{1b}[2J\u{9b}31m\u{7f}\u{202e}x\u{7} é"});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let escaped = escaped_json(&text);
        assert!(!escaped.chars().any(is_unprintable), "{escaped:?}");
        let back: serde_json::Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(back, value);
    }

    /// Whatever else prints would pass foreign text on.
    #[test]
    fn nothing_else_in_this_crate_writes_to_the_terminal() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut directories = vec![root.clone()];
        let mut found = Vec::new();
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|end| end == "rs")
                    && path != root.join("printer.rs")
                {
                    let text = std::fs::read_to_string(&path).unwrap();
                    for (number, line) in (1..).zip(text.lines()) {
                        let prints = ["print!(", "println!(", "anstream::", "dbg!("]
                            .iter()
                            .any(|word| line.contains(word));
                        let opens = ["io::stderr", "io::stdout"]
                            .iter()
                            .any(|word| line.contains(word))
                            && !line.contains("is_terminal")
                            && !line.contains("termios");
                        if prints || opens {
                            found.push(format!("{}:{number}: {line}", path.display()));
                        }
                    }
                }
            }
        }
        assert!(found.is_empty(), "print through printer.rs: {found:#?}");
    }
}
