//! Patterns over text with `*` for any text, matched in one pass.

/// `*` stands for any text, also none. A tail (` *` or `:*` at the end) also matches the text
/// without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextPattern {
    /// The literal pieces between the stars.
    pieces: Vec<String>,
    /// A space and anything may follow.
    tail: bool,
}

impl TextPattern {
    /// Reads a command pattern. The text is in normal form already.
    pub(crate) fn command(text: &str) -> Self {
        let (body, tail) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
            Some(body) => (body.trim_end(), true),
            None => (text, false),
        };
        Self {
            pieces: body.split('*').map(str::to_owned).collect(),
            tail,
        }
    }

    /// Reads a pattern over a name: no tail.
    pub(crate) fn name(text: &str) -> Self {
        Self {
            pieces: text.split('*').map(str::to_owned).collect(),
            tail: false,
        }
    }

    /// Matches everything there is.
    pub(crate) fn is_everything(&self) -> bool {
        self.pieces.len() > 1 && self.pieces.iter().all(String::is_empty)
    }

    /// Says nothing but that something may follow.
    pub(crate) fn is_blank(&self) -> bool {
        self.pieces.iter().all(String::is_empty)
    }

    /// The text before the first star. For commands: what the rule spells out. Hazardous words and
    /// assignments must lie within it.
    pub(crate) fn head(&self) -> &str {
        self.pieces.first().map_or("", String::as_str)
    }

    /// Whether the whole text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        glob(&mut self.pieces.iter().map(String::as_str), text)
            || (self.tail
                && match self.pieces.split_last() {
                    Some((last, front)) => {
                        let last = format!("{last} ");
                        let mut pieces =
                            front.iter().map(String::as_str).chain([last.as_str(), ""]);
                        glob(&mut pieces, text)
                    }
                    None => false,
                })
    }
}

/// The first piece starts the text, the last ends it, those between are found leftmost in order:
/// with stars alone, that is enough, and it never goes back.
fn glob(pieces: &mut dyn Iterator<Item = &str>, text: &str) -> bool {
    let Some(first) = pieces.next() else {
        return text.is_empty();
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(mut piece) = pieces.next() else {
        return rest.is_empty();
    };
    for next in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
        piece = next;
    }
    rest.ends_with(piece)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("git log", "git log", true)]
    #[case("git log", "git log -1", false)]
    #[case("git log *", "git log", true)]
    #[case("git log *", "git log -1", true)]
    #[case("git log *", "git logx", false)]
    #[case("git log:*", "git log", true)]
    #[case("git log:*", "git log -1", true)]
    #[case("git log:*", "git logx", false)]
    #[case("git log*", "git logx", true)]
    #[case("* --help", "cargo --help", true)]
    #[case("* --help", "cargo --helpx", false)]
    #[case("git * main", "git push origin main", true)]
    #[case("git * main", "git main", false)]
    #[case("git * main *", "git push main", true)]
    #[case("git * main *", "git push main --force", true)]
    #[case("a*a", "a", false)]
    #[case("a*b*a", "abba", true)]
    #[case("*", "anything at all", true)]
    fn a_star_is_any_text(#[case] pattern: &str, #[case] text: &str, #[case] matches: bool) {
        assert_eq!(TextPattern::command(pattern).matches(text), matches);
    }

    #[test]
    fn many_stars_on_a_long_text_come_to_an_end() {
        let pattern = TextPattern::command(&format!("{}b", "a*".repeat(2_000)));
        assert!(!pattern.matches(&"a".repeat(60_000)));
    }
}
