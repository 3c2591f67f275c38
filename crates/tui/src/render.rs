//! Texts as output lines, for those who have something to show besides events.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use codespar_policy::{Redactor, printable};
use codespar_protocol::{ContentBlock, Message, Role, ToolResult, ToolUse, ToolUseId, counted};
use codespar_terminal::{
    Line, Span,
    highlight::Highlighter,
    markdown::MarkdownStream,
    theme::Theme,
    width,
    wrap::{Mark, OutputLine},
};

/// Lines of a result in the transcript.
const RESULT_LINES: usize = 2_000;

/// Columns of the input of a folded call.
const SHOWN_INPUT: usize = 100;

/// Tables are drawn for this width.
const COLUMNS: u16 = 100;

/// With the colours for a dark background: these lines are made without a terminal at hand.
pub fn markdown(text: &str) -> Vec<OutputLine> {
    let mut stream = MarkdownStream::new(Theme::default());
    stream.push(&printable(text));
    let mut lines = stream.take_stable(COLUMNS);
    lines.extend(stream.finish(COLUMNS));
    lines
}

/// Code in a language, each line whole.
pub fn code(text: &str, language: &str) -> Vec<OutputLine> {
    let mut highlighter = Highlighter::new(language);
    let text = printable(text);
    let lines = text.lines();
    lines
        .map(|line| OutputLine::whole(highlighter.line(line, Theme::default())))
        .collect()
}

/// A part of a long text.
#[derive(Debug, Clone)]
pub enum PageItem {
    Line(OutputLine),
    /// A heading, and what is shown below it when it is opened.
    Fold {
        heading: OutputLine,
        body: Vec<OutputLine>,
    },
}

/// A conversation in full: texts, and calls with their input and result folded. A result is found
/// by the id of its call, wherever it is in the conversation. One without a call is shown by
/// itself.
pub fn transcript_items(messages: &[Arc<Message>], secrets: &Redactor) -> Vec<PageItem> {
    let blocks = || messages.iter().flat_map(|message| &message.content);
    let results = blocks().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some((&result.tool_use_id, result)),
        _ => None,
    });
    let transcript = Transcript {
        secrets,
        calls: blocks()
            .filter_map(|block| match block {
                ContentBlock::ToolUse(call) => Some(&call.id),
                _ => None,
            })
            .collect(),
        results: results.collect(),
        theme: Theme::default(),
    };
    let items = messages
        .iter()
        .flat_map(|message| transcript.items(message));
    items.collect()
}

struct Transcript<'a> {
    secrets: &'a Redactor,
    calls: HashSet<&'a ToolUseId>,
    results: HashMap<&'a ToolUseId, &'a ToolResult>,
    theme: Theme,
}

impl Transcript<'_> {
    fn clean(&self, text: &str) -> String {
        printable(&self.secrets.redact(text)).into_owned()
    }

    /// Unknown blocks and encrypted thinking have nothing to show.
    fn items(&self, message: &Message) -> Vec<PageItem> {
        let mut items = Vec::new();
        for block in &message.content {
            match block {
                ContentBlock::Text(text) if message.role == Role::User => {
                    items.extend(self.prompt(&text.text).into_iter().map(PageItem::Line));
                }
                ContentBlock::Text(text) => {
                    let lines = markdown(&self.clean(&text.text));
                    items.extend(lines.into_iter().map(PageItem::Line));
                }
                ContentBlock::Thinking(thinking) => {
                    let text = self.clean(&thinking.thinking);
                    let style = self.theme.comment();
                    let line = |line: &str| OutputLine::words(Line::styled(line.to_owned(), style));
                    items.extend(text.lines().map(|text| PageItem::Line(line(text))));
                }
                ContentBlock::ToolUse(call) => items.push(self.call(call)),
                // It is shown with its call.
                ContentBlock::ToolResult(result) if self.calls.contains(&result.tool_use_id) => {}
                ContentBlock::ToolResult(result) => items.push(PageItem::Fold {
                    heading: OutputLine::whole("● result"),
                    body: self.result(result),
                }),
                ContentBlock::Image(_) => {
                    items.push(PageItem::Line(OutputLine::words("[image]")));
                }
                ContentBlock::RedactedThinking(_) | ContentBlock::Unknown(_) => {}
            }
        }
        if !items.is_empty() {
            items.insert(0, PageItem::Line(OutputLine::default()));
        }
        items
    }

    fn prompt(&self, text: &str) -> Vec<OutputLine> {
        let text = self.clean(text);
        let lines = text.lines().enumerate().map(|(number, line)| {
            let mark = if number == 0 { "› " } else { "  " };
            let line = vec![
                Span::styled(mark, self.theme.accent()),
                Span::styled(line.to_owned(), self.theme.strong()),
            ];
            let line = OutputLine::hanging(line, 2);
            match number {
                0 => line.marked(Mark::Prompt),
                _ => line,
            }
        });
        lines.collect()
    }

    fn call(&self, call: &ToolUse) -> PageItem {
        let input = self.clean(call.input.get());
        let result = self.results.get(&call.id);
        let style = match result {
            Some(result) if result.is_error => self.theme.warning(),
            _ => self.theme.good(),
        };
        let heading = vec![
            Span::styled("● ", style),
            Span::styled(call.name.clone(), self.theme.strong()),
            Span::raw(format!(" {}", width::shortened(&input, SHOWN_INPUT))),
        ];
        let mut body = Vec::new();
        if width::of(&input) > SHOWN_INPUT {
            body.push(OutputLine::whole(format!("  {input}")));
        }
        body.extend(result.into_iter().flat_map(|result| self.result(result)));
        PageItem::Fold {
            heading: OutputLine::whole(heading),
            body,
        }
    }

    fn result(&self, result: &ToolResult) -> Vec<OutputLine> {
        let text = self.clean(&result.content.text());
        let style = match result.is_error {
            true => self.theme.warning(),
            false => self.theme.faint(),
        };
        let line = |text: String| OutputLine::whole(Line::styled(text, style));
        let shown = text.lines().take(RESULT_LINES);
        let mut lines: Vec<OutputLine> = shown.map(|text| line(format!("  {text}"))).collect();
        let left = text.lines().count().saturating_sub(RESULT_LINES);
        if left > 0 {
            lines.push(line(format!("  … {}", counted(left, "more line"))));
        }
        lines
    }
}
