//! Blocks -> lines of output.
//!
//! Code is written in the first column, without frames, and lines that the terminal wraps are left
//! whole: whoever selects them gets the source back. Prose is wrapped by words with a hanging
//! indentation.

use ratatui_core::{
    style::{Modifier, Style},
    text::{Line, Span},
};

use super::{
    block::{Block, Content, Frame},
    inline::{self, Spans},
    table,
};
use crate::{
    highlight::Highlighter,
    theme::Theme,
    width,
    wrap::{self, Flow, OutputLine},
};

/// A rule is a mark, not a frame: it need not fill a wide terminal.
const MAX_RULE: usize = 60;

/// Draws blocks in their order: the colours of a line of code depend on those before it.
#[derive(Debug, Clone)]
pub(super) struct Renderer {
    theme: Theme,
    highlighter: Highlighter,
}

impl Renderer {
    pub(super) fn new(theme: Theme) -> Self {
        Self {
            theme,
            highlighter: Highlighter::new(""),
        }
    }

    pub(super) fn block(&mut self, block: Block, columns: u16, out: &mut Vec<OutputLine>) {
        if let Some(frames) = &block.gap {
            let bars = self.rest_prefix(frames);
            out.push(OutputLine::whole(without_end(bars)));
        }
        let theme = self.theme;
        let lines = match block.content {
            Content::CodeInfo(info) => return self.code_start(&info, &block.frames, out),
            Content::CodeLine(line) => {
                let line = self.highlighter.line(&width::shown(&line), theme);
                return out.push(OutputLine::whole(line));
            }
            Content::Table(source) => {
                let room = usize::from(columns).saturating_sub(prefix_width(&block.frames));
                match inline::table(&source, theme) {
                    Some(mut source) => {
                        let after = std::mem::take(&mut source.after);
                        let mut lines = table::draw(source, theme, room);
                        let after = after.into_iter();
                        lines.extend(after.map(|spans| OutputLine::words(Line::from(spans))));
                        return self.framed(lines, &block.frames, columns, out);
                    }
                    None => inline::lines(&source, theme, Style::new()),
                }
            }
            Content::Paragraph(source) => inline::lines(&source, theme, Style::new()),
            Content::Continued(source) => {
                let source = format!("{}{}", inline::CONTINUES, source.trim_start());
                inline::lines(&source, theme, Style::new())
            }
            Content::Heading(level, source) => {
                inline::lines(&source, theme, heading_style(theme, level))
            }
            Content::OpenTable(rows) => {
                let text = match rows {
                    0 => "table".to_owned(),
                    rows => format!("table, row {rows}"),
                };
                vec![vec![Span::styled(text, theme.faint())]]
            }
            Content::Html(line) => vec![vec![Span::raw(width::shown(&line))]],
            Content::Rule => {
                let room = usize::from(columns).saturating_sub(prefix_width(&block.frames));
                let rule = "─".repeat(room.clamp(1, MAX_RULE));
                vec![vec![Span::styled(rule, theme.faint())]]
            }
            Content::Empty => vec![Vec::new()],
        };
        let lines = lines.into_iter().map(|spans| prose(spans, &block.frames));
        self.framed(lines.collect(), &block.frames, columns, out);
    }

    fn code_start(&mut self, info: &str, frames: &[Frame], out: &mut Vec<OutputLine>) {
        let language = info.split([' ', ',', '{', '\t']).next().unwrap_or_default();
        self.highlighter = Highlighter::new(language);
        // The code itself begins in the first column, so that it can be copied.
        if frames.iter().any(|frame| matches!(frame, Frame::Marker(_))) {
            out.push(OutputLine::whole(without_end(self.first_prefix(frames))));
        }
        if !info.is_empty() {
            let label = format!(" {}", width::shown(info));
            out.push(OutputLine::whole(Span::styled(label, self.theme.faint())));
        }
    }

    /// Lines with what stands before them. Inside a quote each row has its bar, so it is wrapped
    /// here.
    fn framed(
        &self,
        lines: Vec<OutputLine>,
        frames: &[Frame],
        columns: u16,
        out: &mut Vec<OutputLine>,
    ) {
        if frames.is_empty() {
            return out.extend(lines);
        }
        let prefix = u16::try_from(prefix_width(frames)).unwrap_or(u16::MAX);
        let has_bar = frames.contains(&Frame::Bar);
        let mut is_first = true;
        for line in lines {
            let hanging = match line.flow {
                Flow::Words { hanging } => Flow::Words {
                    hanging: hanging.saturating_add(prefix),
                },
                Flow::Whole => Flow::Whole,
            };
            let rows = match has_bar {
                true => wrap::rows(&line, columns.saturating_sub(prefix).max(1)),
                false => vec![line.line],
            };
            for row in rows {
                let mut spans = match std::mem::take(&mut is_first) {
                    true => self.first_prefix(frames),
                    false => self.rest_prefix(frames),
                };
                spans.extend(row.spans);
                out.push(OutputLine {
                    line: without_end(spans),
                    flow: hanging,
                    mark: None,
                });
            }
        }
    }

    fn first_prefix(&self, frames: &[Frame]) -> Spans {
        let span = |frame: &Frame| match frame {
            Frame::Marker(marker) => Span::styled(marker.clone(), self.theme.accent()),
            other => self.rest(other),
        };
        frames.iter().map(span).collect()
    }

    fn rest_prefix(&self, frames: &[Frame]) -> Spans {
        frames.iter().map(|frame| self.rest(frame)).collect()
    }

    fn rest(&self, frame: &Frame) -> Span<'static> {
        match frame {
            Frame::Bar => Span::styled("│ ", self.theme.faint()),
            other => Span::raw(" ".repeat(frame_width(other))),
        }
    }
}

fn frame_width(frame: &Frame) -> usize {
    match frame {
        Frame::Bar => 2,
        Frame::Marker(marker) => width::of(marker),
        Frame::Indent(columns) => *columns,
    }
}

fn prefix_width(frames: &[Frame]) -> usize {
    frames.iter().map(frame_width).sum()
}

/// A single word alone on its line, such as an address, is left to the terminal to wrap, so that
/// it can be copied whole.
fn prose(spans: Spans, frames: &[Frame]) -> OutputLine {
    let is_word = !spans.is_empty() && spans.iter().all(|span| !span.content.contains(' '));
    match is_word && frames.is_empty() {
        true => OutputLine::whole(Line::from(spans)),
        false => OutputLine::words(Line::from(spans)),
    }
}

fn heading_style(theme: Theme, level: usize) -> Style {
    match level {
        1 => theme.heading().add_modifier(Modifier::UNDERLINED),
        2 => theme.heading(),
        3 => theme.strong(),
        4 => theme.strong().patch(theme.emphasis()),
        _ => theme.emphasis(),
    }
}

/// No line ends with blanks: they would be copied too.
fn without_end(mut spans: Spans) -> Line<'static> {
    while let Some(last) = spans.last_mut() {
        let kept = last.content.trim_end_matches(' ').len();
        if kept == last.content.len() {
            break;
        }
        last.content.to_mut().truncate(kept);
        if kept > 0 {
            break;
        }
        spans.pop();
    }
    Line::from(spans)
}
