//! Both ends of a text that comes line by line, in bounded memory.

use std::{collections::VecDeque, fmt::Write as _};

/// Keeps the first and the last bytes of a text, whole lines where it can.
#[derive(Debug, Clone)]
pub(crate) struct Clip {
    head: String,
    head_limit: usize,
    tail: VecDeque<String>,
    tail_bytes: usize,
    tail_limit: usize,
    /// Lines between the two ends that were dropped.
    dropped: usize,
}

impl Clip {
    pub(crate) fn new(head_limit: usize, tail_limit: usize) -> Self {
        Self {
            head: String::new(),
            head_limit,
            tail: VecDeque::new(),
            tail_bytes: 0,
            tail_limit,
            dropped: 0,
        }
    }

    /// Takes a line without its end. The first lines go to the head until one does not fit; from
    /// then on all go to the tail, from whose front lines are dropped.
    pub(crate) fn push(&mut self, line: &str) {
        if self.tail.is_empty() && self.dropped == 0 && self.head.len() < self.head_limit {
            let room = self.head_limit - self.head.len();
            if line.len() < room {
                self.head.push_str(line);
                self.head.push('\n');
                return;
            }
        }
        let line = last_bytes(line, self.tail_limit);
        self.tail_bytes += line.len() + 1;
        self.tail.push_back(line.to_owned());
        while self.tail_bytes > self.tail_limit
            && self.tail.len() > 1
            && let Some(first) = self.tail.pop_front()
        {
            self.tail_bytes -= first.len() + 1;
            self.dropped += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty()
    }

    /// What is kept, with a line that says how much is not; no blank lines at the ends.
    pub(crate) fn text(&self) -> String {
        let mut out = self.head.clone();
        if self.dropped > 0 {
            let _ = writeln!(out, "[… {} lines …]", self.dropped);
        }
        out.push_str(&self.last_lines());
        trim_blank_lines(&out).to_owned()
    }

    /// The first lines alone.
    pub(crate) fn first_lines(&self) -> &str {
        &self.head
    }

    /// The last lines alone: those that did not fit into the first ones.
    pub(crate) fn last_lines(&self) -> String {
        let mut out = String::with_capacity(self.tail_bytes);
        for line in &self.tail {
            out.push_str(line);
            out.push('\n');
        }
        out
    }
}

/// Without blank lines before and after; the indentation of the first line stays.
pub(crate) fn trim_blank_lines(text: &str) -> &str {
    let text = text.trim_end();
    let blank = text.len() - text.trim_start().len();
    let start = text[..blank].rfind('\n').map_or(0, |at| at + 1);
    &text[start..]
}

/// At most this many bytes from the beginning, between characters.
pub(crate) fn first_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// At most this many bytes from the end, between characters.
pub(crate) fn last_bytes(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

/// A text cut to a size: two thirds from its beginning and the rest from its end.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mark = "\n[…]\n";
    let room = most.saturating_sub(mark.len());
    if room < 40 {
        return first_bytes(text, most).to_owned();
    }
    let head = first_bytes(text, room * 2 / 3);
    let tail = last_bytes(text, room - head.len());
    // Half a line at the cut is worth less than none.
    let head = head
        .rfind('\n')
        .filter(|at| *at > head.len() / 2)
        .map_or(head, |at| &head[..at]);
    let tail = tail
        .find('\n')
        .filter(|at| *at < tail.len() / 2)
        .map_or(tail, |at| &tail[at + 1..]);
    format!("{head}{mark}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_stay_and_the_middle_is_counted() {
        let mut clip = Clip::new(20, 20);
        for n in 1..=100 {
            clip.push(&format!("line {n}"));
        }
        assert_eq!(
            clip.text(),
            "line 1\nline 2\n[… 96 lines …]\nline 99\nline 100"
        );
        let mut short = Clip::new(20, 20);
        for line in ["", "  a", "b", ""] {
            short.push(line);
        }
        assert_eq!(short.text(), "  a\nb");
    }

    #[test]
    fn a_cut_text_keeps_its_ends_and_its_size() {
        let text: String = (0..200).map(|n| format!("line {n} ä\n")).collect();
        for most in [0, 1, 7, 40, 100, 500] {
            let cut = cut(&text, most);
            assert!(cut.len() <= most, "{most}: {}", cut.len());
        }
        let cut = cut(&text, 300);
        assert!(
            cut.starts_with("line 0 ä\n") && cut.ends_with("line 199 ä\n"),
            "{cut}"
        );
    }
}
