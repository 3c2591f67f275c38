//! Markdown as it comes.
//!
//! ```text
//! push -> lines -> blocks that are final -> take_stable
//!              \-> blocks that are open  -> tail
//! ```
//!
//! Text is read line by line, never by how it was split on the way, so the result is the same
//! however an answer is streamed. What is kept does not grow with the length of the answer.

mod block;
mod blocks;
mod inline;
mod items;
mod leaves;
mod lines;
mod render;
mod table;
#[cfg(test)]
mod tests;

use codespar_policy::printable;

use self::{block::Block, blocks::BlockParser, leaves::MAX_PARAGRAPH, render::Renderer};
use crate::{theme::Theme, wrap::OutputLine};

/// Of a line that is longer than this, the tail shows only the end.
const MAX_TAIL_LINE: usize = 4 * MAX_PARAGRAPH;

/// One answer of a model.
#[derive(Debug, Clone)]
pub struct MarkdownStream {
    parser: BlockParser,
    renderer: Renderer,
    /// Final, and not yet taken.
    blocks: Vec<Block>,
    /// The last line, which has no end yet.
    line: String,
    /// Whether the beginning of that line was handed to the parser before.
    is_part: bool,
    /// A carriage return that may be half of a line end.
    held_return: bool,
    theme: Theme,
}

impl MarkdownStream {
    pub fn new(theme: Theme) -> Self {
        Self {
            parser: BlockParser::new(),
            renderer: Renderer::new(theme),
            blocks: Vec::new(),
            line: String::new(),
            is_part: false,
            held_return: false,
            theme,
        }
    }

    /// Adds text, which may end anywhere: in a word, in a mark, in a line end.
    pub fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut joined;
        let mut text = text;
        if std::mem::take(&mut self.held_return) {
            joined = String::with_capacity(text.len() + 1);
            joined.push('\r');
            joined.push_str(text);
            text = &joined;
        }
        if let Some(before) = text.strip_suffix('\r') {
            self.held_return = true;
            text = before;
        }
        for part in printable(text).split_inclusive('\n') {
            match part.strip_suffix('\n') {
                Some(end) => {
                    self.append(end);
                    self.end_line();
                }
                None => self.append(part),
            }
        }
    }

    /// Lines that can never change any more. Each is returned once. `columns` matters for tables,
    /// rules and quotes; other lines are wrapped by the painter.
    pub fn take_stable(&mut self, columns: u16) -> Vec<OutputLine> {
        let mut lines = Vec::new();
        for block in std::mem::take(&mut self.blocks) {
            self.renderer.block(block, columns, &mut lines);
        }
        lines
    }

    /// What was not taken yet, as it would look if nothing more came; but of a table only how many
    /// rows it has so far.
    pub fn tail(&self, columns: u16) -> Vec<OutputLine> {
        let mut copy = Self {
            parser: self.parser.clone(),
            renderer: self.renderer.clone(),
            blocks: self.blocks.clone(),
            line: self.end_of_line(),
            ..*self
        };
        copy.end_last_line();
        copy.parser.show_open_table(&mut copy.blocks);
        copy.finish(columns)
    }

    /// Everything that is left; afterwards a new answer can begin.
    pub fn finish(&mut self, columns: u16) -> Vec<OutputLine> {
        self.end_last_line();
        self.parser.finish(&mut self.blocks);
        let lines = self.take_stable(columns);
        *self = Self::new(self.theme);
        lines
    }

    /// A line without an end may be megabytes long, as text without newlines is. It is handed on in
    /// parts at blanks, once it is longer than a paragraph may be.
    fn append(&mut self, text: &str) {
        let mut searched = self.line.len();
        self.line.push_str(text);
        // Where a long line is cut depends on the line alone, not on how much of it is here.
        while self.line.len() > MAX_PARAGRAPH {
            if !self.is_part && !self.parser.takes_parts(&self.line) {
                return;
            }
            let from = self.line.floor_char_boundary(MAX_PARAGRAPH).max(searched);
            let Some(blank) = self.line[from..].find(' ') else {
                return;
            };
            let rest = self.line.split_off(from + blank);
            self.line.truncate(self.line.trim_end().len());
            self.end_line();
            (self.line, self.is_part, searched) = (rest, true, 0);
        }
    }

    fn end_last_line(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        match std::mem::take(&mut self.is_part) {
            true => self.parser.part(&self.line, &mut self.blocks),
            false => self.parser.line(&self.line, &mut self.blocks),
        }
        self.line.clear();
    }

    /// With the marks of quotes and the indentation, so that the end is shown in the same frame.
    fn end_of_line(&self) -> String {
        if self.line.len() <= MAX_TAIL_LINE {
            return self.line.clone();
        }
        let is_mark = |c: char| !matches!(c, ' ' | '\t' | '>');
        let marks = self.line.find(is_mark).unwrap_or(0).min(MAX_PARAGRAPH);
        let from = self
            .line
            .ceil_char_boundary(self.line.len() - MAX_PARAGRAPH);
        format!("{}{}", &self.line[..marks], &self.line[from..])
    }
}
