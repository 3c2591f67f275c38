//! Paragraphs and tables as they grow, and what is handed on when a block is final.

use super::{
    block::{Block, Container, Content, Frame, Last, Leaf},
    blocks::{BlockParser, MAX_DEPTH},
    lines,
};

/// A paragraph is handed on in parts of about this size, so that no text is parsed twice often.
pub(super) const MAX_PARAGRAPH: usize = 8 * 1024;
/// A table is drawn in parts of this many rows; each has the header again.
const MAX_TABLE_ROWS: usize = 500;
const MAX_TABLE: usize = 64 * 1024;
impl BlockParser {
    pub(super) fn start_paragraph(&mut self, text: &str, out: &mut Vec<Block>) {
        self.close_leaf(out);
        self.leaf = Leaf::Paragraph {
            source: String::new(),
            // Too deep for another quote or list: the mark is text.
            continued: self.containers.len() >= MAX_DEPTH,
        };
        self.add_to_paragraph(text, out);
    }

    /// A paragraph, whatever it begins with.
    pub(super) fn start_text(&mut self, text: &str, out: &mut Vec<Block>) {
        self.close_leaf(out);
        self.leaf = Leaf::Paragraph {
            source: String::new(),
            continued: true,
        };
        self.add_to_paragraph(text, out);
    }

    /// The second line of a table makes the line before it its header; what was above that stays a
    /// paragraph.
    pub(super) fn add_to_paragraph(&mut self, text: &str, out: &mut Vec<Block>) {
        let Leaf::Paragraph { source, continued } = &mut self.leaf else {
            return;
        };
        let last = source.trim_end_matches('\n').rfind('\n');
        let (before, header) = source.split_at(last.map_or(0, |end| end + 1));
        if !text.starts_with("    ") && lines::is_table_start(header, text) {
            let (before, header) = (before.to_owned(), header.trim().to_owned());
            let continued = *continued;
            if !before.trim().is_empty() {
                self.emit_text(before, continued, out);
            }
            self.leaf = Leaf::Table {
                header: format!("{header}\n{text}\n"),
                rows: String::new(),
                count: 0,
                drawn: false,
            };
            return;
        }
        source.push_str(text);
        source.push('\n');
        if source.len() > MAX_PARAGRAPH {
            let source = std::mem::take(source);
            let was_continued = std::mem::replace(continued, true);
            self.emit_text(source, was_continued, out);
        }
    }

    /// A part that was handed on has widths of its own, so a very long table is drawn as several.
    pub(super) fn add_row(&mut self, text: &str, out: &mut Vec<Block>) {
        let Leaf::Table {
            header,
            rows,
            count,
            drawn,
        } = &mut self.leaf
        else {
            return;
        };
        rows.push_str(text);
        rows.push('\n');
        *count += 1;
        if *count >= MAX_TABLE_ROWS || rows.len() > MAX_TABLE {
            (*count, *drawn) = (0, true);
            let table = lines::widened(header, &std::mem::take(rows));
            self.emit(Content::Table(table), out);
        }
    }

    /// Text and tables are handed on now. Code was, line by line.
    pub(super) fn close_leaf(&mut self, out: &mut Vec<Block>) {
        match std::mem::take(&mut self.leaf) {
            Leaf::Paragraph { source, continued } if !source.is_empty() => {
                self.emit_text(source, continued, out);
            }
            Leaf::Table {
                header,
                rows,
                drawn,
                ..
            } if !drawn || !rows.is_empty() => {
                self.emit(Content::Table(lines::widened(&header, &rows)), out);
            }
            Leaf::Indented { blank_lines } => self.blank |= blank_lines > 0,
            _ => {}
        }
    }

    /// Of a table that is not complete only how long it is. Drawn, its columns would move with
    /// every word, and all of it would be painted each time; its source would be painted for
    /// nothing.
    pub(super) fn show_open_table(&mut self, out: &mut Vec<Block>) {
        let Leaf::Table { count, .. } = self.leaf else {
            return;
        };
        self.leaf = Leaf::None;
        self.emit(Content::OpenTable(count), out);
    }

    fn emit_text(&mut self, source: String, continued: bool, out: &mut Vec<Block>) {
        let content = match continued {
            true => Content::Continued(source),
            false => Content::Paragraph(source),
        };
        self.emit(content, out);
    }

    /// Leaves the containers after the first so many.
    pub(super) fn close_containers(&mut self, keep: usize, out: &mut Vec<Block>) {
        if self.containers.len() <= keep {
            return;
        }
        self.close_leaf(out);
        while self.containers.len() > keep {
            if let Some(Container::Item { shown: false, .. }) = self.containers.last() {
                self.emit(Content::Empty, out);
            }
            self.containers.pop();
        }
        self.shared = self.shared.min(keep);
    }

    /// Decides on the blank line before it: where the source has one, and around code and tables
    /// always. Markers of items are given to the first block in them.
    pub(super) fn emit(&mut self, content: Content, out: &mut Vec<Block>) {
        let now = match content {
            Content::CodeInfo(_)
            | Content::CodeLine(_)
            | Content::Table(_)
            | Content::OpenTable(_) => Last::Solid,
            _ => Last::Text,
        };
        let follows = matches!(content, Content::CodeLine(_));
        let apart = now == Last::Solid || matches!(content, Content::Heading(..));
        let wanted = self.blank || apart || self.last == Last::Solid;
        let gap = (wanted && !follows && self.last != Last::Nothing).then(|| self.gap());
        let frames = match follows {
            true => Vec::new(),
            false => self.frames(),
        };
        out.push(Block {
            gap,
            frames,
            content,
        });
        self.last = now;
        self.blank = false;
        self.shared = self.containers.len();
    }

    fn frames(&mut self) -> Vec<Frame> {
        let frame = |container: &mut Container| match container {
            Container::Quote => Frame::Bar,
            Container::Item { marker, shown, .. } => match std::mem::replace(shown, true) {
                true => Frame::Indent(marker.chars().count()),
                false => Frame::Marker(marker.clone()),
            },
        };
        self.containers.iter_mut().map(frame).collect()
    }

    /// The bars of quotes go on through a blank line inside them.
    fn gap(&self) -> Vec<Frame> {
        let shared = &self.containers[..self.shared.min(self.containers.len())];
        let bars = shared.iter().rposition(|c| matches!(c, Container::Quote));
        let frame = |container: &Container| match container {
            Container::Quote => Frame::Bar,
            Container::Item { marker, .. } => Frame::Indent(marker.chars().count()),
        };
        let inside = bars.map_or(0, |last| last + 1);
        shared[..inside].iter().map(frame).collect()
    }
}
