//! One line of code -> pieces with their kinds.
//!
//! Every byte of the line is in exactly one piece, in order, so the text that is drawn is the text
//! that came, whatever the lexer makes of it. It never goes back. A wrong guess costs a colour,
//! nothing else.

use super::{
    Kind, State,
    languages::{Attribute, Grammar, Language, Lines, Quote},
};

/// In characters.
const MAX_ATTRIBUTE: usize = 200;

pub(super) struct Lexer<'a> {
    language: &'static Language,
    text: &'a str,
    at: usize,
    state: State,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(language: &'static Language, text: &'a str, state: State) -> Self {
        Self {
            language,
            text,
            at: 0,
            state,
        }
    }

    /// The state that the next line begins in.
    pub(super) fn state_at_end(&self) -> State {
        match self.state {
            State::Quote(which) => match self.language.quotes[which].lines {
                Lines::Many => self.state,
                // A backslash at the end of a line does not carry it on: better one line wrong
                // than the rest of the text.
                Lines::One => State::Code,
            },
            state => state,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The next piece: what it is, and where it ends. Pieces are not empty.
    pub(super) fn next(&mut self) -> Option<(Kind, usize)> {
        if self.rest().is_empty() {
            return None;
        }
        let kind = match self.state {
            State::Comment { depth } => self.comment(depth),
            State::Quote(which) => self.quoted(which),
            State::Raw(hashes) => self.raw(hashes),
            State::Code | State::Tag => self.code(),
        };
        Some((kind, self.at))
    }

    fn code(&mut self) -> Kind {
        if self.at == 0
            && let Some(kind) = self.whole_line()
        {
            self.at = self.text.len();
            return kind;
        }
        if self.starts_comment() {
            self.at = self.text.len();
            return Kind::Comment;
        }
        if let Some((open, _)) = self.language.block_comment
            && self.rest().starts_with(open)
        {
            self.at += open.len();
            return self.comment(1);
        }
        if let Some(kind) = self.of_rust() {
            return kind;
        }
        let may_quote = self.language.grammar != Grammar::Markup || self.state == State::Tag;
        let mut quotes = self.language.quotes.iter();
        if let Some(which) = quotes.position(|quote| self.rest().starts_with(quote.open))
            && may_quote
        {
            let open = &self.language.quotes[which];
            self.at += open.open.len();
            let kind = self.quoted(which);
            return match self.language.grammar == Grammar::Data && self.is_before_mark() {
                true => Kind::Key,
                false => kind,
            };
        }
        match self.language.grammar {
            Grammar::Markup => self.markup(),
            Grammar::Markdown => self.skip_to_mark(),
            _ => self.word(),
        }
    }

    /// Grammars that colour lines as a whole.
    fn whole_line(&self) -> Option<Kind> {
        let text = self.text;
        match self.language.grammar {
            Grammar::Markdown if text.starts_with('#') => Some(Kind::Heading),
            Grammar::Markdown if text.starts_with('>') => Some(Kind::Faint),
            Grammar::Diff if text.starts_with("+++") || text.starts_with("---") => {
                Some(Kind::Heading)
            }
            Grammar::Diff if text.starts_with('+') => Some(Kind::Added),
            Grammar::Diff if text.starts_with('-') => Some(Kind::Removed),
            Grammar::Diff if text.starts_with("@@") => Some(Kind::Attribute),
            Grammar::Diff => Some(Kind::Plain),
            _ => None,
        }
    }

    fn starts_comment(&self) -> bool {
        let mut comments = self.language.comments.iter();
        comments.any(|mark| {
            let after_word = self.text[..self.at].ends_with(|c: char| !c.is_whitespace());
            // `a#b` and `http://x` in data are words.
            let needs_blank = *mark == "#" || *mark == ";";
            let is_attribute = *mark == "#" && self.rest().starts_with("#[");
            self.rest().starts_with(mark) && !(needs_blank && after_word) && !is_attribute
        })
    }

    /// Only Rust nests them.
    fn comment(&mut self, mut depth: usize) -> Kind {
        let Some((open, close)) = self.language.block_comment else {
            self.state = State::Code;
            return Kind::Comment;
        };
        while depth > 0 && self.at < self.text.len() {
            if self.rest().starts_with(close) {
                depth -= 1;
                self.at += close.len();
            } else if self.language.name == "rust" && self.rest().starts_with(open) {
                depth += 1;
                self.at += open.len();
            } else {
                self.skip_char();
            }
        }
        self.state = match depth {
            0 => State::Code,
            depth => State::Comment { depth },
        };
        Kind::Comment
    }

    /// Until its end or that of the line; `state_at_end` decides whether the next line goes on in
    /// it.
    fn quoted(&mut self, which: usize) -> Kind {
        let quote: &Quote = &self.language.quotes[which];
        let after = match self.language.grammar {
            Grammar::Markup => State::Tag,
            _ => State::Code,
        };
        while self.at < self.text.len() {
            if self.rest().starts_with(quote.close) {
                self.at += quote.close.len();
                self.state = after;
                return Kind::Text;
            }
            if quote.escape == self.rest().bytes().next() {
                self.at += 1;
            }
            self.skip_char();
        }
        self.state = State::Quote(which);
        Kind::Text
    }

    /// Raw strings, and `'`, which begins a character or a lifetime.
    fn of_rust(&mut self) -> Option<Kind> {
        if self.language.name != "rust" {
            return None;
        }
        let rest = self.rest();
        let prefix = ["br", "cr", "r"].iter().find(|p| rest.starts_with(**p));
        if let Some(prefix) = prefix
            && !self.text[..self.at].ends_with(is_word)
        {
            let after = &rest[prefix.len()..];
            let hashes = after.bytes().take_while(|b| *b == b'#').count();
            if after[hashes..].starts_with('"') {
                self.at += prefix.len() + hashes + 1;
                return Some(self.raw(hashes));
            }
        }
        let inside = rest.strip_prefix('\'')?;
        let end = match inside.strip_prefix('\\') {
            Some(escaped) => {
                let first = escaped.chars().next().map_or(0, char::len_utf8);
                escaped[first..].find('\'').map(|at| 1 + first + at)
            }
            None => {
                let first = inside.chars().next().map_or(0, char::len_utf8);
                inside[first..].starts_with('\'').then_some(first)
            }
        };
        Some(match end {
            Some(end) => {
                self.at += 1 + end + 1;
                Kind::Text
            }
            None => {
                self.at += 1;
                self.skip_word();
                Kind::Attribute
            }
        })
    }

    fn raw(&mut self, hashes: usize) -> Kind {
        let close = format!("\"{}", "#".repeat(hashes));
        match self.rest().find(&close) {
            Some(end) => {
                self.at += end + close.len();
                self.state = State::Code;
            }
            None => {
                self.at = self.text.len();
                self.state = State::Raw(hashes);
            }
        }
        Kind::Text
    }

    /// A word before `(` or `!` is taken for a function, one with a capital letter for a type.
    fn word(&mut self) -> Kind {
        let rest = self.rest();
        if let Some(kind) = self.attribute() {
            return kind;
        }
        let Some(first) = rest.chars().next() else {
            return Kind::Plain;
        };
        if first.is_ascii_digit() {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
            let number = rest.trim_start_matches(is_part);
            // `0..10` is two numbers.
            let end = rest.len() - number.len();
            self.at += rest[..end].find("..").unwrap_or(end);
            return Kind::Number;
        }
        if !is_word(first) {
            self.skip_char();
            return Kind::Plain;
        }
        let from = self.at;
        self.skip_word();
        let word = &self.text[from..self.at];
        if self.language.grammar == Grammar::Data && self.is_before_mark() {
            return Kind::Key;
        }
        let is_keyword = |keyword: &str| match self.language.name {
            "sql" | "dockerfile" => keyword.eq_ignore_ascii_case(word),
            _ => keyword == word,
        };
        if self
            .language
            .keywords
            .split_ascii_whitespace()
            .any(is_keyword)
        {
            Kind::Keyword
        } else if self.language.grammar == Grammar::Code && self.rest().starts_with(['(', '!']) {
            match self.rest().starts_with("!=") {
                true => Kind::Plain,
                false => Kind::Function,
            }
        } else if self.language.grammar == Grammar::Code && first.is_uppercase() {
            Kind::Type
        } else {
            Kind::Plain
        }
    }

    fn attribute(&mut self) -> Option<Kind> {
        let rest = self.rest();
        // The end must be near, so that a text full of beginnings takes linear time.
        let end = |mark: char| {
            rest.char_indices()
                .take(MAX_ATTRIBUTE)
                .find(|(_, c)| *c == mark)
        };
        let named = |mark: char| {
            let name = rest.strip_prefix(mark)?;
            name.starts_with(is_word).then_some(mark.len_utf8())
        };
        let length = match self.language.attribute {
            Attribute::At => named('@')?,
            Attribute::Preprocessor if rest.starts_with('#') => {
                let is_first = self.text[..self.at].trim_start().is_empty();
                named('#').filter(|_| is_first)?
            }
            Attribute::Dollar if rest.starts_with("${") => end('}').map(|(at, _)| at + 1)?,
            Attribute::Dollar => named('$')?,
            Attribute::Bracket if rest.starts_with("#[") || rest.starts_with("#![") => {
                end(']').map(|(at, _)| at + 1)?
            }
            _ => return None,
        };
        self.at += length;
        if !rest[..length].ends_with(['}', ']']) {
            self.skip_word();
        }
        Some(Kind::Attribute)
    }

    /// Outside of tags everything is plain text, up to the next `<`.
    fn markup(&mut self) -> Kind {
        let rest = self.rest();
        if self.state == State::Code {
            if !rest.starts_with('<') {
                self.at += rest.find('<').unwrap_or(rest.len());
                return Kind::Plain;
            }
            self.state = State::Tag;
            let name = rest[1..].trim_start_matches(['/', '!', '?']);
            self.at += rest.len() - name.len();
            self.skip_word();
            return Kind::Keyword;
        }
        let is_end = |c| matches!(c, '>' | '/' | '?');
        if rest.starts_with(is_end) {
            self.skip_char();
            if rest.starts_with('>') {
                self.state = State::Code;
            }
            return Kind::Keyword;
        }
        if rest.starts_with(is_word) {
            self.skip_word();
            return Kind::Attribute;
        }
        self.skip_char();
        Kind::Plain
    }

    fn skip_to_mark(&mut self) -> Kind {
        self.skip_char();
        self.at += self.rest().find('`').unwrap_or(self.rest().len());
        Kind::Plain
    }

    fn skip_char(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    /// Names of data and markup may contain `-`.
    fn skip_word(&mut self) {
        let has_dashes = matches!(self.language.grammar, Grammar::Data | Grammar::Markup);
        let is_part = |c: char| is_word(c) || (has_dashes && matches!(c, '-' | '.'));
        self.at = self.text.len() - self.rest().trim_start_matches(is_part).len();
    }

    /// Whether `:` or `=` comes next.
    fn is_before_mark(&self) -> bool {
        let rest = self.rest().trim_start();
        let assigns = self.language.name == "toml" && rest.starts_with('=');
        assigns || (rest.starts_with(':') && !rest.starts_with("://"))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
