//! A second, simpler reading of a command line, by the shell's quoting rules alone. The grammar's
//! tree is believed only where this agrees with it about what separates what.
//!
//! It knows quotes, comments, operators and one here-document, and refuses everything else that
//! could hide a command: substitutions, `${…}` with anything but a name in it, arithmetic on
//! anything but numbers. What passes consists of words and operators whose positions are certain.

/// Where things are, as byte offsets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// Unquoted characters out of `; & | < > ( )` and newline.
    pub(crate) operators: Vec<usize>,
    /// Where comments start.
    pub(crate) comments: Vec<usize>,
    /// The text of a here-document: where it begins and where its last line begins.
    pub(crate) heredoc: Option<(usize, usize)>,
}

/// Why a command line cannot be analysed. Completes the sentence "the command cannot be analysed:
/// …".
pub(crate) type Obstacle = &'static str;

const SUBSTITUTION: Obstacle = "it has a command substitution";
const EXPANSION: Obstacle = "it has an expansion that cannot be followed";
const UNTERMINATED: Obstacle = "a quote is not closed";

/// Reads the text; an obstacle is something that only running it could resolve. One pass from left
/// to right, without going back.
pub(crate) fn scan(text: &str) -> Result<Scan, Obstacle> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        word_start: true,
        pending: None,
        found: Scan::default(),
    };
    while scanner.at < scanner.bytes.len() {
        scanner.step()?;
    }
    match scanner.pending {
        Some(_) => Err("a here-document has no end"),
        None => Ok(scanner.found),
    }
}

/// A here-document whose text has not begun. Its text starts after the next newline, whatever
/// follows the mark on the same line. `tabs` is the `<<-` form, which strips them from the front of
/// each line.
struct Pending {
    delimiter: String,
    quoted: bool,
    tabs: bool,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// A word would begin here, so `#` begins a comment.
    word_start: bool,
    pending: Option<Pending>,
    found: Scan,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    /// Consumes one character, one quoted string or one operator. Every call advances at least one
    /// byte.
    fn step(&mut self) -> Result<(), Obstacle> {
        let Some(byte) = self.peek(0) else {
            return Ok(());
        };
        let mut word_start = false;
        match byte {
            b'\\' => {
                word_start = self.escape()?;
            }
            b'\'' => self.single_quoted()?,
            b'"' => self.double_quoted()?,
            b'$' if self.peek(1) == Some(b'\'') => self.ansi_quoted()?,
            b'$' => self.dollar()?,
            b'`' => return Err(SUBSTITUTION),
            b'#' if self.word_start => {
                self.found.comments.push(self.at);
                while self.peek(0).is_some_and(|byte| byte != b'\n') {
                    self.at += 1;
                }
                word_start = true;
            }
            b' ' | b'\t' => {
                word_start = true;
                self.at += 1;
            }
            b'\n' => {
                word_start = true;
                self.operator();
                self.heredoc_text()?;
            }
            b'<' | b'>' if self.peek(1) == Some(b'(') => {
                return Err("it has a process substitution");
            }
            b'<' if self.peek(1) == Some(b'<') && self.peek(2) != Some(b'<') => {
                self.heredoc_start()?;
            }
            b'<' if self.peek(1) == Some(b'<') => {
                word_start = true;
                for _ in 0..3 {
                    self.operator();
                }
            }
            b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => {
                word_start = true;
                self.operator();
            }
            _ => self.at += 1,
        }
        self.word_start = word_start;
        Ok(())
    }

    /// Offsets are pushed in ascending order; `agree` searches them by halves.
    fn operator(&mut self) {
        self.found.operators.push(self.at);
        self.at += 1;
    }

    /// Says whether a word would begin after it. A backslash before a newline joins two lines.
    /// Inside a word that is refused, since the grammar and the shell disagree about it.
    fn escape(&mut self) -> Result<bool, Obstacle> {
        match self.peek(1) {
            None => Err("it ends in a backslash"),
            Some(b'\n') => {
                let blank = |byte: Option<u8>| matches!(byte, None | Some(b' ' | b'\t' | b'\n'));
                // Glued words are one word to the shell and two to the grammar.
                if !self.word_start && !blank(self.peek(2)) {
                    return Err("a word goes on over the end of a line");
                }
                self.at += 2;
                Ok(self.word_start)
            }
            Some(_) => {
                self.at += 2;
                Ok(false)
            }
        }
    }

    /// Nothing within is special, a backslash neither.
    fn single_quoted(&mut self) -> Result<(), Obstacle> {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if byte == b'\'' {
                return Ok(());
            }
        }
        Err(UNTERMINATED)
    }

    /// `$'…'`: a backslash escapes the quote. What the escapes stand for is not decoded here; only
    /// the end matters.
    fn ansi_quoted(&mut self) -> Result<(), Obstacle> {
        self.at += 2;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' => self.at += 2,
                b'\'' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => self.at += 1,
            }
        }
        Err(UNTERMINATED)
    }

    /// Expansions are followed inside double quotes as well, and refused by the same rules.
    fn double_quoted(&mut self) -> Result<(), Obstacle> {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' => self.at += 2,
                b'`' => return Err(SUBSTITUTION),
                b'$' => self.dollar()?,
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => self.at += 1,
            }
        }
        Err(UNTERMINATED)
    }

    /// `$name` and `${name}` are followed, and arithmetic on plain numbers; nothing else is.
    fn dollar(&mut self) -> Result<(), Obstacle> {
        let rest = &self.bytes[self.at..];
        match rest.get(1) {
            Some(b'(') if rest.get(2) == Some(&b'(') => {
                let inner = &rest[3..];
                let numbers = inner
                    .iter()
                    .position(|byte| !(byte.is_ascii_digit() || b" +-*/%".contains(byte)))
                    .unwrap_or(inner.len());
                if !inner[numbers..].starts_with(b"))") {
                    return Err("it has arithmetic that cannot be followed");
                }
                self.at += 3 + numbers + 2;
            }
            Some(b'(') => return Err(SUBSTITUTION),
            Some(b'[') => return Err("it has arithmetic that cannot be followed"),
            Some(b'{') => {
                let name = rest[2..]
                    .iter()
                    .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))
                    .unwrap_or(0);
                if name == 0 || rest.get(2 + name) != Some(&b'}') {
                    return Err(EXPANSION);
                }
                self.at += 2 + name + 1;
            }
            _ => self.at += 1,
        }
        Ok(())
    }

    /// Only one here-document is followed, and its mark must be a plain name, bare or in one pair
    /// of quotes: then its end can be found by comparing lines.
    fn heredoc_start(&mut self) -> Result<(), Obstacle> {
        if self.pending.is_some() || self.found.heredoc.is_some() {
            return Err("it has more than one here-document");
        }
        self.operator();
        self.operator();
        let tabs = self.peek(0) == Some(b'-');
        self.at += usize::from(tabs);
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let quote = self.peek(0).filter(|byte| matches!(byte, b'\'' | b'"'));
        self.at += usize::from(quote.is_some());
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))
            .unwrap_or(rest.len());
        let delimiter = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length;
        let ended = match quote {
            Some(quote) => {
                self.at += 1;
                rest.get(length) == Some(&quote)
            }
            None => true,
        };
        let alone = self
            .peek(0)
            .is_none_or(|byte| b" \t\n;&|<>()".contains(&byte));
        if length == 0 || !ended || !alone {
            return Err("the end mark of a here-document is not a plain word");
        }
        self.pending = Some(Pending {
            delimiter,
            quoted: quote.is_some(),
            tabs,
        });
        Ok(())
    }

    /// After a newline: the text of a here-document that began on the line before. With an unquoted
    /// mark the shell expands the text, so it must not contain `$`, backquotes or backslashes. The
    /// recorded range ends at the start of the line with the mark; the line itself is skipped.
    fn heredoc_text(&mut self) -> Result<(), Obstacle> {
        let Some(pending) = self.pending.take() else {
            return Ok(());
        };
        let begin = self.at;
        loop {
            let rest = &self.bytes[self.at..];
            let length = rest.iter().position(|byte| *byte == b'\n');
            let line = &rest[..length.unwrap_or(rest.len())];
            let tabs = match pending.tabs {
                true => line.iter().take_while(|byte| **byte == b'\t').count(),
                false => 0,
            };
            if &line[tabs..] == pending.delimiter.as_bytes() {
                let text = &self.bytes[begin..self.at];
                if !pending.quoted && text.iter().any(|byte| b"`\\$".contains(byte)) {
                    return Err("a here-document expands what is in it");
                }
                self.found.heredoc = Some((begin, self.at));
                self.at += line.len();
                return Ok(());
            }
            match length {
                Some(length) => self.at += length + 1,
                None => return Err("a here-document has no end"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn operators_count_outside_quotes_only() {
        let found = scan("a 'b;c' \"d|e\" f\\;g; h # i; j").unwrap();
        assert_eq!(
            found,
            Scan {
                operators: vec![18],
                comments: vec![22],
                heredoc: None
            }
        );
    }

    #[test]
    fn a_quoted_here_document_is_text() {
        let found = scan("cat <<'E'\n$(id)\nE\nls").unwrap();
        assert_eq!(found.heredoc, Some((10, 16)));
        assert_eq!(found.operators, vec![4, 5, 9, 17]);
    }

    #[rstest]
    #[case("a $(b)")]
    #[case("a `b`")]
    #[case("a \"$(b)\"")]
    #[case("a <(b)")]
    #[case("a ${b:-c}")]
    #[case("a $((b))")]
    #[case("a $[1]")]
    #[case("a 'b")]
    #[case("a \"b")]
    #[case("a $'b")]
    #[case("a \\")]
    #[case("a b\\\nc")]
    #[case("cat <<E\n$x\nE")]
    #[case("cat <<E\nx")]
    #[case("cat <<E <<F\nE\nF")]
    #[case("cat <<\"E\"F\nE\nEF")]
    fn what_only_running_would_tell_is_an_obstacle(#[case] text: &str) {
        assert!(scan(text).is_err(), "{text}");
    }
}
