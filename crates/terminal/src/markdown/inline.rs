//! What is inside a paragraph, heading or cell: emphasis, code, links, images.
//!
//! The text of one block is small and complete by now, so a full Markdown parser reads it. Its
//! events become spans. Links and images show their address; nothing is fetched.

use codespar_policy::printable;
use pulldown_cmark::{Alignment, Event, Options, Parser, Tag, TagEnd};
use ratatui_core::{style::Style, text::Span};

use crate::theme::Theme;

/// Before a text that continues a paragraph, so that it cannot begin a block of another kind. No
/// text from outside contains this character, since `printable` takes it out.
pub(super) const CONTINUES: &str = "\u{fdd0} ";

pub(super) type Spans = Vec<Span<'static>>;

/// Lines of styled text; a hard break begins another. Markdown that is not a paragraph is read as
/// one: its text is shown.
pub(super) fn lines(source: &str, theme: Theme, base: Style) -> Vec<Spans> {
    let parser = Parser::new_ext(source, Options::ENABLE_STRIKETHROUGH);
    let mut definitions: Vec<_> = parser.reference_definitions().iter().collect();
    definitions.sort_by_key(|(_, definition)| definition.span.start);
    let mut writer = Writer::new(theme, base);
    for (label, definition) in definitions {
        writer.text(&format!("[{label}]: "), theme.faint());
        writer.text(&definition.dest, theme.link());
        writer.lines.push(Vec::new());
    }
    for event in parser {
        writer.event(event);
    }
    writer.lines.retain(|line| !line.is_empty());
    writer.lines
}

/// A table: the header is the first row.
pub(super) struct TableSource {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<Spans>>,
    /// Text in which the parser saw the end of the table.
    pub(super) after: Vec<Spans>,
}

/// None if it is not a table after all.
pub(super) fn table(source: &str, theme: Theme) -> Option<TableSource> {
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES;
    let mut table: Option<TableSource> = None;
    let mut writer = Writer::new(theme, Style::new());
    for event in Parser::new_ext(source, options) {
        match (event, &mut table) {
            (Event::Start(Tag::Table(alignments)), _) => {
                table = Some(TableSource {
                    alignments,
                    rows: Vec::new(),
                    after: Vec::new(),
                });
            }
            (Event::Start(Tag::TableHead), Some(table)) => {
                table.rows.push(Vec::new());
                writer.base = theme.strong();
            }
            (Event::Start(Tag::TableRow), Some(table)) => {
                table.rows.push(Vec::new());
                writer.base = Style::new();
            }
            (Event::End(TagEnd::TableCell), Some(table)) => {
                let cell = std::mem::take(&mut writer.lines).concat();
                writer.lines.push(Vec::new());
                if let Some(row) = table.rows.last_mut() {
                    row.push(cell);
                }
            }
            (event, _) => writer.event(event),
        }
    }
    if let Some(table) = &mut table {
        writer.lines.retain(|line| !line.is_empty());
        table.after = writer.lines;
    }
    table
}

/// A link or image that is open.
struct Target {
    url: String,
    /// Where its text begins.
    line: usize,
    span: usize,
}

/// Collects spans; `lines` has at least one entry while events come.
struct Writer {
    theme: Theme,
    base: Style,
    /// Styles that are open, each with those around it.
    styles: Vec<Style>,
    targets: Vec<Target>,
    lines: Vec<Spans>,
}

impl Writer {
    fn new(theme: Theme, base: Style) -> Self {
        Self {
            theme,
            base,
            styles: Vec::new(),
            targets: Vec::new(),
            lines: vec![Vec::new()],
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.base)
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => {
                let text = text.strip_prefix(CONTINUES).unwrap_or(&text);
                self.text(text, self.style());
            }
            Event::Code(text) => {
                let code = self.style().patch(self.theme.code());
                self.text(&text, code);
            }
            Event::Html(text) => {
                self.text(text.trim_end_matches('\n'), self.style());
                self.lines.push(Vec::new());
            }
            Event::InlineHtml(text) => self.text(&text, self.style()),
            Event::SoftBreak => self.text(" ", self.style()),
            Event::HardBreak => self.lines.push(Vec::new()),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.styles.push(self.style().patch(self.theme.emphasis())),
            Tag::Strong => self.styles.push(self.style().patch(self.theme.strong())),
            Tag::Strikethrough => self.styles.push(self.style().patch(self.theme.struck())),
            Tag::Link { dest_url, .. } => self.open_target(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.open_target(&dest_url);
                self.text("[image: ", self.style());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Image => {
                self.text("]", self.style());
                self.close_target();
            }
            TagEnd::Link => self.close_target(),
            TagEnd::Paragraph => self.lines.push(Vec::new()),
            _ => {}
        }
    }

    /// The position is where the text of the link will begin; `close_target` compares from there.
    fn open_target(&mut self, url: &str) {
        self.targets.push(Target {
            url: url.to_owned(),
            line: self.lines.len() - 1,
            span: self.lines.last().map_or(0, Vec::len),
        });
    }

    /// The target is always shown: a text that looks like another address must not hide it.
    fn close_target(&mut self) {
        let Some(target) = self.targets.pop() else {
            return;
        };
        let link = self.theme.link();
        let spans = self.lines[target.line..].iter().flatten();
        let skipped = target.span;
        let shown: String = spans.skip(skipped).map(|span| &*span.content).collect();
        let is_same = shown == target.url || target.url.strip_prefix("mailto:") == Some(&shown);
        match is_same && target.line + 1 == self.lines.len() {
            true => {
                let spans = self.lines.last_mut().into_iter().flatten();
                spans.skip(skipped).for_each(|span| span.style = link);
            }
            false => {
                let style = self.style();
                self.text(" (", style);
                self.text(&target.url, link);
                self.text(")", style);
            }
        }
    }

    /// Entities such as `&#27;` are decoded only here, so that control characters can still come.
    fn text(&mut self, text: &str, style: Style) {
        let text = printable(text).replace(['\n', '\t'], " ");
        let Some(line) = self.lines.last_mut() else {
            return;
        };
        if !text.is_empty() {
            line.push(Span::styled(text, style));
        }
    }
}
