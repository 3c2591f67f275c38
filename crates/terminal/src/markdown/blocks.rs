//! Lines of markdown -> blocks, each as soon as it can no longer change.
//!
//! The block structure of CommonMark is followed line by line, so that a block inside a list or a
//! quote is finished when its own last line is known, not when the whole list is. What is inside
//! a paragraph is left to `inline`.

use super::{
    block::{Block, Container, Content, Last, Leaf},
    lines::{self, Cursor, Fence},
};

/// Deeper quotes and lists are shown as text.
pub(super) const MAX_DEPTH: usize = 24;

/// The blocks that are open. Its size does not depend on the length of the text before.
#[derive(Debug, Clone)]
pub(super) struct BlockParser {
    pub(super) containers: Vec<Container>,
    pub(super) leaf: Leaf,
    pub(super) last: Last,
    /// Whether a blank line came since the last block.
    pub(super) blank: bool,
    /// How many of the containers the last block was in too.
    pub(super) shared: usize,
}

impl BlockParser {
    pub(super) fn new() -> Self {
        Self {
            containers: Vec::new(),
            leaf: Leaf::None,
            last: Last::Nothing,
            blank: false,
            shared: 0,
        }
    }

    /// Whether a long line may be handed over in parts.
    pub(super) fn takes_parts(&self, line: &str) -> bool {
        let begins_text = !line.trim_start().starts_with(['#', '|', '<', '`', '~']);
        matches!(self.leaf, Leaf::None | Leaf::Paragraph { .. })
            && begins_text
            && Cursor::new(line).indent() < 4
    }

    /// More of the line before, of which only a part was handed over.
    pub(super) fn part(&mut self, text: &str, out: &mut Vec<Block>) {
        match &self.leaf {
            _ if text.trim().is_empty() => {}
            Leaf::Paragraph { .. } => self.add_to_paragraph(&format!("    {text}"), out),
            _ => self.start_paragraph(text.trim_start(), out),
        }
    }

    /// 1. Which containers does it go on with?
    /// 2. Does code or HTML in them go on?
    /// 3. Does it open containers or begin a block?
    /// 4. Otherwise it is text: of the paragraph or table that is open, or of a new paragraph.
    ///
    /// A paragraph may go on without the marks of its containers (a lazy line).
    pub(super) fn line(&mut self, line: &str, out: &mut Vec<Block>) {
        let mut cursor = Cursor::new(line);
        let matched = self.match_containers(&mut cursor);
        let all_matched = matched == self.containers.len();
        if all_matched && self.continue_verbatim(cursor, out) {
            return;
        }
        // HTML that is read as a paragraph must not go on outside of its container.
        let may_be_lazy = match &self.leaf {
            Leaf::Paragraph { source, .. } => {
                let first = source.lines().next().unwrap_or_default().trim_end();
                !(first.starts_with('<') && first.ends_with('>'))
            }
            _ => false,
        };
        if !all_matched && (cursor.is_blank() || !may_be_lazy) {
            self.close_containers(matched, out);
        }
        if cursor.is_blank() {
            self.close_leaf(out);
            self.blank = true;
            return;
        }
        let open = self.containers.len();
        if self.start_block(&mut cursor, matched, out) {
            return;
        }
        let lazy = self.containers.len() == open && matched < open;
        let is_text = lazy || open >= MAX_DEPTH;
        match &mut self.leaf {
            Leaf::Paragraph { .. } if is_text => {
                self.add_to_paragraph(&format!("    {}", cursor.trimmed()), out);
            }
            Leaf::Paragraph { .. } => self.add_to_paragraph(&cursor.text(), out),
            Leaf::Table { .. } => self.add_row(cursor.trimmed(), out),
            _ => self.start_paragraph(cursor.trimmed(), out),
        }
    }

    pub(super) fn finish(&mut self, out: &mut Vec<Block>) {
        self.close_containers(0, out);
        self.close_leaf(out);
    }

    /// How many containers the line is in; what belongs to them is taken from it.
    fn match_containers(&self, cursor: &mut Cursor<'_>) -> usize {
        for (at, container) in self.containers.iter().enumerate() {
            match container {
                Container::Quote => {
                    if cursor.indent() > 3 || !cursor.trimmed().starts_with('>') {
                        return at;
                    }
                    cursor.skip_mark(1);
                    cursor.skip_columns(1);
                }
                Container::Item { content, shown, .. } => {
                    // An item that begins with a blank line ends at a second one.
                    let is_empty = !shown && matches!(self.leaf, Leaf::None);
                    match cursor.is_blank() {
                        true if is_empty => return at,
                        true => {}
                        false if cursor.indent() >= *content => cursor.skip_columns(*content),
                        false => return at,
                    }
                }
            }
        }
        self.containers.len()
    }

    /// Code and HTML go on until their own end.
    fn continue_verbatim(&mut self, mut cursor: Cursor<'_>, out: &mut Vec<Block>) -> bool {
        match &mut self.leaf {
            Leaf::Fence(fence) => {
                if fence.is_closed_by(&cursor) {
                    self.leaf = Leaf::None;
                } else {
                    cursor.skip_columns(fence.indent);
                    self.emit(Content::CodeLine(cursor.text()), out);
                }
                true
            }
            Leaf::Indented { blank_lines } if cursor.is_blank() => {
                *blank_lines += 1;
                true
            }
            Leaf::Indented { blank_lines } if cursor.indent() >= 4 => {
                for _ in 0..std::mem::take(blank_lines) {
                    self.emit(Content::CodeLine(String::new()), out);
                }
                cursor.skip_columns(4);
                self.emit(Content::CodeLine(cursor.text()), out);
                true
            }
            Leaf::Html { end } => {
                let ends = contains_ignoring_case(cursor.trimmed(), end);
                self.emit(Content::Html(cursor.text()), out);
                if ends {
                    self.leaf = Leaf::None;
                }
                true
            }
            _ => false,
        }
    }

    /// Opens containers, and a block that is not a paragraph. Whether the line was used up.
    fn start_block(
        &mut self,
        cursor: &mut Cursor<'_>,
        matched: usize,
        out: &mut Vec<Block>,
    ) -> bool {
        let mut matched = matched;
        loop {
            let text = cursor.trimmed();
            let in_paragraph = matches!(self.leaf, Leaf::Paragraph { .. });
            if cursor.indent() >= 4 {
                if in_paragraph || text.is_empty() {
                    return text.is_empty();
                }
                self.close_leaf(out);
                self.emit(Content::CodeInfo(String::new()), out);
                cursor.skip_columns(4);
                self.emit(Content::CodeLine(cursor.text()), out);
                self.leaf = Leaf::Indented { blank_lines: 0 };
                return true;
            }
            let directly = matched == self.containers.len();
            if in_paragraph && directly && self.underlined(text, out) {
                return true;
            }
            if self.start_leaf(cursor, matched, out) {
                return true;
            }
            let deep = self.containers.len() >= MAX_DEPTH;
            if text.starts_with('>') && !deep {
                self.close_containers(matched, out);
                self.close_leaf(out);
                self.containers.push(Container::Quote);
                cursor.skip_mark(1);
                cursor.skip_columns(1);
            } else if let Some(marker) = lines::list_marker(text).filter(|marker| {
                let interrupts = !marker.alone && marker.number <= 1;
                !deep && (interrupts || !(in_paragraph && directly))
            }) {
                self.start_item(cursor, marker, matched, out);
                if self.take_task_box(cursor) {
                    self.start_text(cursor.trimmed(), out);
                    return true;
                }
            } else {
                return false;
            }
            matched = self.containers.len();
            if cursor.is_blank() {
                return true;
            }
        }
    }

    /// A heading, rule, fence or HTML. What is open is closed first: none of these goes on with
    /// another block.
    fn start_leaf(&mut self, cursor: &Cursor<'_>, matched: usize, out: &mut Vec<Block>) -> bool {
        let text = cursor.trimmed();
        let fence = Fence::opened_by(cursor);
        let content = match lines::heading_level(text) {
            Some(level) => Content::Heading(level, text.to_owned()),
            None if lines::is_rule(text) => Content::Rule,
            None if fence.is_some() => {
                Content::CodeInfo(fence.as_ref().map_or("", |(_, info)| info).to_owned())
            }
            None if lines::html_end(text).is_some() => Content::Html(cursor.text()),
            None => return false,
        };
        self.close_containers(matched, out);
        self.close_leaf(out);
        if matches!(content, Content::Html(_)) {
            // The end may be on the same line.
            let end = lines::html_end(text).filter(|end| !contains_ignoring_case(text, end));
            self.emit(content, out);
            self.leaf = end.map_or(Leaf::None, |end| Leaf::Html { end });
            return true;
        }
        self.emit(content, out);
        if let Some((fence, _)) = fence {
            self.leaf = Leaf::Fence(fence);
        }
        true
    }

    /// Not if all of the paragraph was handed on already.
    fn underlined(&mut self, text: &str, out: &mut Vec<Block>) -> bool {
        let Some(level) = lines::underline_level(text) else {
            return false;
        };
        let Leaf::Paragraph { source, .. } = &mut self.leaf else {
            return false;
        };
        if source.is_empty() {
            return false;
        }
        let source = std::mem::take(source);
        self.leaf = Leaf::None;
        self.emit(Content::Heading(level, source), out);
        true
    }
}

fn contains_ignoring_case(text: &str, end: &str) -> bool {
    let mut windows = text.as_bytes().windows(end.len());
    windows.any(|window| window.eq_ignore_ascii_case(end.as_bytes()))
}
