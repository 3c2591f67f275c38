//! Texts as output lines, for those who have something to show besides events.

use codespar_policy::{Redactor, printable};
use codespar_protocol::{ContentBlock, Message, Role};
use codespar_terminal::{
    Line, Span,
    highlight::Highlighter,
    markdown::MarkdownStream,
    theme::Theme,
    wrap::{Mark, OutputLine},
};

/// Lines of a result in the transcript.
const RESULT_LINES: usize = 200;

/// Tables are drawn for this width.
const COLUMNS: u16 = 100;

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

/// A message of a conversation in full: texts, calls with their input, results.
pub fn transcript_lines(message: &Message, secrets: &Redactor) -> Vec<OutputLine> {
    let theme = Theme::default();
    let clean = |text: &str| printable(&secrets.redact(text)).into_owned();
    let mut lines = vec![OutputLine::default()];
    for block in &message.content {
        match block {
            ContentBlock::Text(text) if message.role == Role::User => {
                for (number, line) in clean(&text.text).lines().enumerate() {
                    let mark = if number == 0 { "› " } else { "  " };
                    let line = vec![
                        Span::styled(mark, theme.accent()),
                        Span::styled(line.to_owned(), theme.strong()),
                    ];
                    let line = OutputLine::hanging(line, 2);
                    lines.push(match number {
                        0 => line.marked(Mark::Prompt),
                        _ => line,
                    });
                }
            }
            ContentBlock::Text(text) => lines.extend(markdown(&clean(&text.text))),
            ContentBlock::Thinking(thinking) => {
                let text = clean(&thinking.thinking);
                lines.extend(
                    text.lines().map(|line| {
                        OutputLine::words(Line::styled(line.to_owned(), theme.comment()))
                    }),
                );
            }
            ContentBlock::ToolUse(call) => {
                let heading = vec![
                    Span::styled("● ", theme.good()),
                    Span::styled(call.name.clone(), theme.strong()),
                    Span::raw(format!(" {}", clean(call.input.get()))),
                ];
                lines.push(OutputLine::whole(heading));
            }
            ContentBlock::ToolResult(result) => {
                let text = clean(&result.content.text());
                let style = match result.is_error {
                    true => theme.warning(),
                    false => theme.faint(),
                };
                let shown = text.lines().take(RESULT_LINES);
                lines.extend(
                    shown.map(|line| OutputLine::whole(Line::styled(format!("  {line}"), style))),
                );
                let left = text.lines().count().saturating_sub(RESULT_LINES);
                if left > 0 {
                    let text = format!("  … {left} more lines");
                    lines.push(OutputLine::whole(Line::styled(text, style)));
                }
            }
            ContentBlock::Image(_) => lines.push(OutputLine::words("[image]")),
            ContentBlock::RedactedThinking(_) | ContentBlock::Unknown(_) => {}
        }
    }
    lines
}
