//! Words of a command: as written, and as the shell would pass them on.
//!
//! Unquoting follows bash: single, double, `$'…'` and `$"…"` quotes and backslashes. Nothing is
//! expanded. A word that contains anything the shell would expand is marked as not literal, and
//! everything that needs certainty goes through [`Word::value`].

/// One word of a command line, in both forms. Rules that permit are compared with `source`, rules
/// that forbid with both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// As written.
    pub(crate) source: String,
    /// Without quotes and escapes; expansions stay as written.
    pub(crate) bare: String,
    /// What the shell passes on is `bare`, whatever the variables and files are.
    pub(crate) literal: bool,
}

impl Word {
    pub(crate) fn new(source: &str) -> Self {
        let (bare, literal) = unquote(source);
        Self {
            source: source.to_owned(),
            bare,
            literal,
        }
    }

    /// What the shell passes on, when that is certain. `None` for a variable, a substitution, a
    /// glob, a brace expansion or a leading `~`.
    pub(crate) fn value(&self) -> Option<&str> {
        self.literal.then_some(self.bare.as_str())
    }
}

/// Splits on blanks outside quotes. A quote that is not closed extends to the end of the text.
/// Operators are not separators here; the text is expected to be one simple command, or a fragment.
pub(crate) fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut start = None;
    let mut quotes = Quotes::default();
    for (at, c) in text.char_indices() {
        if quotes.outside() && c.is_ascii_whitespace() {
            if let Some(from) = start.take() {
                words.push(Word::new(&text[from..at]));
            }
        } else {
            start.get_or_insert(at);
        }
        quotes.step(c);
    }
    if let Some(from) = start {
        words.push(Word::new(&text[from..]));
    }
    words
}

/// The text with every run of blanks outside quotes as one space. The normal form in which commands
/// and the patterns of rules are compared.
pub(crate) fn tidy(text: &str) -> String {
    let words: Vec<String> = split(text).into_iter().map(|word| word.source).collect();
    words.join(" ")
}

/// Where a character stands with regard to quotes and backslashes.
#[derive(Debug, Default)]
struct Quotes {
    open: Option<char>,
    escaped: bool,
}

impl Quotes {
    fn outside(&self) -> bool {
        self.open.is_none() && !self.escaped
    }

    fn step(&mut self, c: char) {
        if self.escaped {
            self.escaped = false;
            return;
        }
        match (self.open, c) {
            (None | Some('"'), '\\') => self.escaped = true,
            (None, '\'' | '"') => self.open = Some(c),
            (Some(quote), c) if quote == c => self.open = None,
            _ => {}
        }
    }
}

/// Takes quotes and escapes away; says whether nothing is left for the shell to expand. A `$` at
/// the very end stands for itself. Braces count as an expansion even where bash would leave them
/// alone, as in `{}`.
fn unquote(source: &str) -> (String, bool) {
    let mut bare = String::with_capacity(source.len());
    let mut literal = !source.starts_with('~');
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(next) => bare.push(next),
            },
            '\'' => bare.extend(chars.by_ref().take_while(|c| *c != '\'')),
            '"' => literal &= double_quoted(&mut chars, &mut bare),
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                ansi_quoted(&mut chars, &mut bare);
            }
            // A translated string reads like a plain one.
            '$' if chars.peek() == Some(&'"') => {}
            '$' | '`' => {
                literal &= c == '$' && chars.peek().is_none();
                bare.push(c);
            }
            '*' | '?' | '[' | ']' | '{' | '}' => {
                literal = false;
                bare.push(c);
            }
            _ => bare.push(c),
        }
    }
    (bare, literal)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Reads up to the closing quote; the opening one has been consumed. Returns whether the content
/// has no expansion in it. A backslash is kept unless it escapes one of the four characters that it
/// can escape there.
fn double_quoted(chars: &mut Chars<'_>, bare: &mut String) -> bool {
    let mut literal = true;
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(next) => {
                    if !matches!(next, '$' | '`' | '"' | '\\') {
                        bare.push('\\');
                    }
                    bare.push(next);
                }
            },
            '$' | '`' => {
                literal &= c == '$' && matches!(chars.peek(), Some(' ' | '"'));
                bare.push(c);
            }
            _ => bare.push(c),
        }
    }
    literal
}

/// Decodes `$'…'`, in which any character can be written as an escape: `$'\x72m'` is `rm`.
fn ansi_quoted(chars: &mut Chars<'_>, bare: &mut String) {
    while let Some(c) = chars.next() {
        match c {
            '\'' => break,
            '\\' => match chars.next() {
                None => {}
                Some('n') => bare.push('\n'),
                Some('t') => bare.push('\t'),
                Some('r') => bare.push('\r'),
                Some('a') => bare.push('\u{7}'),
                Some('b') => bare.push('\u{8}'),
                Some('e' | 'E') => bare.push('\u{1b}'),
                Some('f') => bare.push('\u{c}'),
                Some('v') => bare.push('\u{b}'),
                Some('x') => push_code(chars, bare, 16, 2, 0),
                Some('u') => push_code(chars, bare, 16, 4, 0),
                Some('U') => push_code(chars, bare, 16, 8, 0),
                Some(digit @ '0'..='7') => {
                    push_code(chars, bare, 8, 2, digit.to_digit(8).unwrap_or(0));
                }
                Some(other) => bare.push(other),
            },
            _ => bare.push(c),
        }
    }
}

/// Up to `most` digits after `first`. A number that is no character becomes the replacement
/// character.
fn push_code(chars: &mut Chars<'_>, bare: &mut String, radix: u32, most: usize, first: u32) {
    let mut code = first;
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else {
            break;
        };
        code = code.saturating_mul(radix).saturating_add(digit);
        chars.next();
    }
    bare.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("plain", "plain", true)]
    #[case(r#""rm""#, "rm", true)]
    #[case(r"\rm", "rm", true)]
    #[case(r"r'm'", "rm", true)]
    #[case(r"$'\x72m'", "rm", true)]
    #[case(r"$'\162m'", "rm", true)]
    #[case(r#"$"rm""#, "rm", true)]
    #[case(r#""a\"b\c""#, r#"a"b\c"#, true)]
    #[case("'$x'", "$x", true)]
    #[case("$x", "$x", false)]
    #[case(r#""$x""#, "$x", false)]
    #[case("a*", "a*", false)]
    #[case("{a,b}", "{a,b}", false)]
    #[case("~/x", "~/x", false)]
    #[case("'*'", "*", true)]
    #[case("5$", "5$", true)]
    fn a_word_loses_its_quotes(#[case] source: &str, #[case] bare: &str, #[case] literal: bool) {
        let word = Word::new(source);
        assert_eq!((word.bare.as_str(), word.literal), (bare, literal));
    }

    #[test]
    fn blanks_are_tidied_outside_quotes_only() {
        assert_eq!(
            tidy("  git\t commit  -m 'two  blanks' \"a  b\"  c\\  d "),
            "git commit -m 'two  blanks' \"a  b\" c\\  d"
        );
    }
}
