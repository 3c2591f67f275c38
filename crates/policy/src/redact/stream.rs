//! Takes secrets out of text that comes in pieces, with bounded memory.
//!
//! Output of a process arrives in chunks that may end inside a secret. Text is passed on when no
//! secret can extend over its end any more: usually at each newline, later if a key of several
//! lines has begun. For lines and keys within the limits below, the result is that of redacting the
//! whole text at once.

use std::sync::Arc;

use super::Redactor;

/// How much of an unfinished line is kept back, so that a secret over the border of two pieces is
/// seen whole. Longer than any token.
const KEPT_BACK: usize = 8 << 10;

/// What may be a key that goes on is kept back up to this; no key is so long.
const LONGEST_SECRET: usize = 64 << 10;

/// How a private key begins; it goes over many lines.
const KEY: &str = "-----BEGIN";

/// Redacts a text piece by piece. Whole lines are passed on at once, unless a secret of several
/// lines may have begun in them. If it is dropped without [`RedactedStream::finish`], the text kept
/// back is lost but nothing leaks.
pub struct RedactedStream {
    redactor: Arc<Redactor>,
    pending: String,
}

impl RedactedStream {
    /// Takes out what this redactor takes out.
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self {
            redactor,
            pending: String::new(),
        }
    }

    /// Takes the next piece; what is settled is appended to `out`.
    pub fn push(&mut self, text: &str, out: &mut String) {
        self.pending.push_str(text);
        let end = self.settled();
        if end > 0 {
            let rest = self.pending.split_off(end);
            out.push_str(&self.redactor.redact(&self.pending));
            self.pending = rest;
        }
    }

    /// The rest.
    pub fn finish(self, out: &mut String) {
        out.push_str(&self.redactor.redact(&self.pending));
    }

    /// Where the pending text can be cut without cutting a secret. Starts with the end of the last
    /// whole line, or with a place inside a very long one, and moves back to the start of any match
    /// that crosses it or of a private key without its end.
    fn settled(&self) -> usize {
        let text = self.pending.as_str();
        let lines = text.rfind('\n').map_or(0, |at| at + 1);
        let cut = match text.len() - lines > 2 * KEPT_BACK {
            true => {
                let kept = KEPT_BACK.max(self.redactor.longest);
                let cut = text.floor_char_boundary(text.len().saturating_sub(kept));
                cut.max(lines)
            }
            false => lines,
        };
        let cut = cut.min(self.begun(&text[..cut]));
        let spots = self.redactor.spots(text);
        let across = spots
            .iter()
            .find(|(range, _)| range.start < cut && range.end > cut);
        let open = spots.last().filter(|(range, _)| {
            text[range.clone()].starts_with(KEY)
                && range.end >= text[..cut].trim_end().len()
                && !text[range.clone()].contains("-----END")
        });
        let start = [across, open]
            .into_iter()
            .flatten()
            .map(|(range, _)| range.start)
            .min();
        match start {
            Some(start) if text.len() - start <= LONGEST_SECRET => start.min(cut),
            _ => cut,
        }
    }

    /// Where a known value of several lines may have begun.
    fn begun(&self, text: &str) -> usize {
        let mut begun = text.len();
        for form in &self.redactor.multiline {
            let first_line = form.find('\n').map_or(form.as_str(), |end| &form[..=end]);
            let near = text.floor_char_boundary(text.len().saturating_sub(form.len()));
            for (at, _) in text[near..].match_indices(first_line) {
                if form.starts_with(&text[near + at..]) {
                    begun = begun.min(near + at);
                }
            }
        }
        begun
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    const PEM: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\nQyNTUxOQAAACDMARKER5d1AAAAAAAAAAAAAA\n-----END OPENSSH PRIVATE KEY-----\n";

    fn redactor() -> Arc<Redactor> {
        Arc::new(Redactor::new([
            ("K", "hunter22hunter22"),
            ("M", "first line\nsecond line"),
        ]))
    }

    fn streamed(text: &str, size: usize) -> String {
        let mut stream = RedactedStream::new(redactor());
        let mut out = String::new();
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(size) {
            stream.push(&piece.iter().collect::<String>(), &mut out);
        }
        stream.finish(&mut out);
        out
    }

    #[rstest]
    #[case(1)]
    #[case(7)]
    #[case(64)]
    #[case(100_000)]
    fn a_secret_over_the_border_of_two_pieces_is_taken_out(#[case] size: usize) {
        let text =
            format!("a\nb {TOKEN} c\n{PEM}after\nhunter22hunter22\nfirst line\nsecond line\nend é");
        let expected = redactor().redact(&text).into_owned();
        assert_eq!(streamed(&text, size), expected);
        assert!(!expected.contains("MARKER"), "{expected}");
        assert!(!expected.contains("second"), "{expected}");
    }

    #[rstest]
    #[case(8_192)]
    #[case(65_536)]
    fn in_one_endless_line_it_is_taken_out_too(#[case] size: usize) {
        let mut text = String::new();
        for number in 0..20_000 {
            text.push_str(&format!("{number} "));
            if number % 977 == 0 {
                text.push_str(TOKEN);
                text.push_str(" hunter22hunter22 ");
            }
        }
        let out = streamed(&text, size);
        assert!(!out.contains("ghp_"), "a token came out");
        assert!(!out.contains("hunter22"), "a value came out");
        assert!(out.ends_with("19999 "));
    }

    #[test]
    fn whole_lines_are_passed_on_at_once_and_memory_is_bounded() {
        let mut stream = RedactedStream::new(redactor());
        let mut out = String::new();
        stream.push("listening\n", &mut out);
        assert_eq!(out, "listening\n");
        stream.push("first line\n", &mut out);
        stream.push("another line\n", &mut out);
        assert_eq!(out, "listening\nfirst line\nanother line\n");
        stream.push("-----BEGIN PRIVATE KEY-----\n", &mut out);
        for _ in 0..10_000 {
            stream.push("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo\n", &mut out);
            assert!(stream.pending.len() < 2 * LONGEST_SECRET);
        }
    }
}
