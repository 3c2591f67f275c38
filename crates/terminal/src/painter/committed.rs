//! Finished lines as bytes: clean, in rows whose number is the terminal's, with links and marks.

use std::{borrow::Cow, ops::Range};

use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

use super::{
    Options,
    answers::Way,
    links,
    pen::{Autowrap, Pen},
    plan::Goal,
    region::{self, Row},
    sgr::Look,
};
use crate::{
    width,
    wrap::{self, Flow, Mark, OutputLine},
};

const TAB: usize = 4;

/// A line as it is going to be written on a terminal of some width.
pub(super) struct Prepared {
    /// As they are written; the terminal may make several of the only one.
    rows: Vec<Line<'static>>,
    height: usize,
    /// Such a line is always written as text: a sequence cannot be painted into cells.
    mark: Option<Mark>,
    /// The whole text, and where the addresses in it are.
    text: String,
    links: Vec<Range<usize>>,
    columns: usize,
}

impl Prepared {
    /// A text of disputed width is never left to the terminal to wrap, since the number of rows
    /// would not be known. Then it is broken at the columns we count, and a copy of it has line
    /// breaks.
    pub(super) fn of(output: &OutputLine, columns: u16, options: Options) -> Self {
        let width = usize::from(columns.max(1));
        let line = clean(&output.line, output.flow, width);
        let text = line.to_string();
        let links = match options.links {
            true => links::find(&text),
            false => Vec::new(),
        };
        let (rows, height) = match output.flow {
            Flow::Whole if width::of(&text) <= width => (vec![line], 1),
            Flow::Whole if width::is_certain(&text) => {
                let height = height_when_wrapped(&text, width);
                (vec![line], height)
            }
            flow => {
                let output = OutputLine {
                    line,
                    flow,
                    mark: None,
                };
                let rows = wrap::rows(&output, columns);
                let height = rows.len();
                (rows, height)
            }
        };
        Self {
            rows,
            height,
            mark: output.mark.filter(|_| options.marks),
            text,
            links,
            columns: width,
        }
    }

    /// How many rows of the terminal it takes.
    pub(super) fn height(&self) -> usize {
        self.height
    }

    /// How many rows it takes on a terminal that has another width by now; `None` where terminals
    /// differ.
    pub(super) fn height_at(&self, columns: u16, way: Way) -> Option<usize> {
        let columns = usize::from(columns.max(1));
        let is_wrapped_by_us = self.rows.len() == self.height;
        let written = |row: &Line<'_>| match is_wrapped_by_us && may_be_wider(row, self.columns) {
            true => Some(1),
            false => agreed_height(&row.to_string(), columns),
        };
        match way {
            Way::Written => self.rows.iter().map(written).sum(),
            Way::PaintedOver => {
                let goals = self.goals();
                let height = |goal: &Goal<'_>| match goal {
                    Goal::Cells(_) => Some(1),
                    Goal::Text(_, rows) => self.rows[rows.clone()].iter().map(written).sum(),
                    Goal::Rest => Some(0),
                };
                goals.iter().map(height).sum()
            }
        }
    }

    /// What the rows of the terminal are to show, from the first to the last.
    pub(super) fn goals(&self) -> Vec<Goal<'_>> {
        let is_one_by_one = self.rows.len() == self.height;
        if !is_one_by_one || self.mark.is_some() || !self.links.is_empty() {
            let mut goals = vec![Goal::Text(self, 0..self.rows.len())];
            goals.resize_with(self.height, || Goal::Rest);
            return goals;
        }
        let goal = |(index, row): (usize, &Line<'_>)| match region::is_the_same_painted(row) {
            true => Goal::Cells(Cow::Owned(Row::of_line(row, self.columns))),
            false => Goal::Text(self, index..index + 1),
        };
        self.rows.iter().enumerate().map(goal).collect()
    }

    /// From the beginning of a blank row to the beginning of the row after it.
    pub(super) fn write(&self, pen: &mut Pen) {
        self.write_rows(0..self.rows.len(), pen);
    }

    /// Some of the rows. If there are links in the text it must be all.
    pub(super) fn write_rows(&self, rows: Range<usize>, pen: &mut Pen) {
        match self.mark {
            // A terminal that thinks of it as the prompt of a shell must not erase it on a resize.
            Some(Mark::Prompt) => pen.sequence("\x1b]133;A;redraw=0\x1b\\"),
            Some(Mark::Output) => pen.sequence("\x1b]133;C\x1b\\"),
            Some(Mark::End) | None => {}
        }
        let mut at = 0;
        let last = self.rows.len() - 1;
        for (index, row) in self.rows.iter().enumerate().take(rows.end).skip(rows.start) {
            let is_wrapped_by_us = self.rows.len() == self.height;
            pen.autowrap(match is_wrapped_by_us && may_be_wider(row, self.columns) {
                true => Autowrap::Off,
                false => Autowrap::On,
            });
            self.write_row(row, &mut at, pen);
            pen.look(Look::default());
            if index == last && self.mark == Some(Mark::End) {
                pen.sequence("\x1b]133;D\x1b\\");
            }
            pen.sequence("\r\n");
        }
    }

    /// `at` is where in the text the row begins, and after it where the next one does.
    fn write_row(&self, row: &Line<'_>, at: &mut usize, pen: &mut Pen) {
        let mut open = None;
        for span in &row.spans {
            pen.look_for(&span.content, Look::of_style(row.style, span.style));
            if self.links.is_empty() {
                pen.text(&span.content);
                continue;
            }
            let mut written = 0;
            for (offset, c) in span.content.char_indices() {
                let link = self.link_of(c, at);
                if link != open {
                    pen.text(&span.content[written..offset]);
                    written = offset;
                    self.open(link, pen);
                    open = link;
                }
            }
            pen.text(&span.content[written..]);
        }
        if open.is_some() {
            self.open(None, pen);
        }
    }

    /// Finds the next character of a row in the text: blanks at a break are not in the row, and
    /// indentation is not in the text.
    fn link_of(&self, c: char, at: &mut usize) -> Option<usize> {
        let rest = &self.text[*at..];
        let found = match c {
            ' ' => rest.starts_with(' ').then_some(0),
            _ => rest.find(|other| other != ' '),
        }?;
        let start = *at + found;
        *at = start + c.len_utf8();
        self.links.iter().position(|link| link.contains(&start))
    }

    /// A link goes to the address that is shown: nothing else can be its target.
    fn open(&self, link: Option<usize>, pen: &mut Pen) {
        let address = link.and_then(|link| self.links.get(link));
        let address = address.map_or("", |range| &self.text[range.clone()]);
        pen.sequence("\x1b]8;;");
        pen.text(address);
        pen.sequence("\x1b\\");
    }
}

/// Without control characters, tabs and line ends, and without blanks at the end that nobody
/// sees. A cluster that is wider than the terminal becomes a question mark.
fn clean(line: &Line<'_>, flow: Flow, columns: usize) -> Line<'static> {
    let mut used = 0;
    let mut spans: Vec<Span<'static>> = Vec::with_capacity(line.spans.len());
    for span in &line.spans {
        let text = clean_text(&span.content, &mut used, columns);
        spans.push(Span::styled(text, span.style));
    }
    if flow == Flow::Whole {
        while let Some(last) = spans.last_mut() {
            if Look::of_style(line.style, last.style).shows_on_blank() {
                break;
            }
            let text = last.content.trim_end_matches(' ').len();
            last.content.to_mut().truncate(text);
            if text > 0 {
                break;
            }
            spans.pop();
        }
    }
    Line::from(spans).style(line.style)
}

/// `used` counts columns over all spans of the line, for tab stops.
fn clean_text(text: &str, used: &mut usize, columns: usize) -> String {
    let printable = codespar_policy::printable(text);
    if printable.is_ascii() && !printable.contains(['\t', '\n']) {
        *used += printable.len();
        return printable.into_owned();
    }
    let mut result = String::with_capacity(printable.len());
    for grapheme in printable.graphemes(true) {
        match grapheme {
            "\t" => {
                let blanks = TAB - *used % TAB;
                result.extend(std::iter::repeat_n(' ', blanks));
                *used += blanks;
            }
            "\n" => {
                result.push(' ');
                *used += 1;
            }
            _ if width::of_grapheme(grapheme) > columns => {
                result.push('?');
                *used += 1;
            }
            _ => {
                result.push_str(grapheme);
                *used += width::of_grapheme(grapheme);
            }
        }
    }
    result
}

/// The rows of a text of undisputed width that the terminal wraps where it is full. A text that
/// ends with the last column does not begin another row.
fn height_when_wrapped(text: &str, columns: usize) -> usize {
    if text.is_ascii() {
        return text.len().div_ceil(columns).max(1);
    }
    let (mut rows, mut used) = (1, 0);
    for width in text.chars().filter_map(UnicodeWidthChar::width) {
        if used + width > columns {
            rows += 1;
            used = 0;
        }
        used += width;
    }
    rows
}

/// The same for any text, if it has as many rows on all terminals.
fn agreed_height(text: &str, columns: usize) -> Option<usize> {
    if width::is_certain(text) {
        return Some(height_when_wrapped(text, columns));
    }
    (width::of(text) <= columns).then_some(1)
}

/// Whether a terminal that shows characters of ambiguous width as wide would wrap the row.
fn may_be_wider(row: &Line<'_>, columns: usize) -> bool {
    if row.spans.iter().all(|span| span.content.is_ascii()) {
        return false;
    }
    let chars = row.spans.iter().flat_map(|span| span.content.chars());
    let widest: usize = chars
        .filter_map(|c| Some(c.width()?.max(c.width_cjk()?)))
        .sum();
    widest > columns
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options {
        links: true,
        marks: true,
    };

    fn written(output: &OutputLine, columns: u16) -> (String, usize) {
        let mut pen = Pen::at(columns, 0, 0, Autowrap::On);
        let prepared = Prepared::of(output, columns, OPTIONS);
        prepared.write(&mut pen);
        let text = String::from_utf8(pen.bytes).unwrap();
        (text.replace('\u{1b}', "^"), prepared.height())
    }

    #[test]
    fn a_whole_line_is_written_in_one_piece() {
        let line = OutputLine::whole("0123456789");
        assert_eq!(written(&line, 4), ("0123456789\r\n".to_owned(), 3));
        assert_eq!(written(&line, 5), ("0123456789\r\n".to_owned(), 2));
        assert_eq!(written(&line, 10).1, 1);
        assert_eq!(written(&OutputLine::whole(""), 10), ("\r\n".to_owned(), 1));
        let wide = OutputLine::whole("漢字漢字");
        assert_eq!(written(&wide, 3), ("漢字漢字\r\n".to_owned(), 4));
        // Of a disputed width: we break it.
        let cluster = OutputLine::whole("ab👩\u{200d}💻cd");
        assert_eq!(
            written(&cluster, 5),
            ("ab\r\n👩\u{200d}💻c\r\nd\r\n".to_owned(), 3)
        );
    }

    #[test]
    fn a_terminal_that_is_narrower_by_now_wraps_what_is_written_but_not_what_is_painted() {
        let line = Prepared::of(&OutputLine::words("0123 5678"), 10, OPTIONS);
        assert_eq!(line.height_at(4, Way::Written), Some(3));
        assert_eq!(line.height_at(4, Way::PaintedOver), Some(1));
        let whole = Prepared::of(&OutputLine::whole("0123456789ab"), 10, OPTIONS);
        assert_eq!(whole.height_at(4, Way::PaintedOver), Some(3));
        assert_eq!(whole.height_at(20, Way::PaintedOver), Some(1));
    }

    #[test]
    fn it_is_not_known_how_terminals_wrap_a_row_of_disputed_width() {
        let line = Prepared::of(&OutputLine::whole("🙂🙂🙂ab"), 10, OPTIONS);
        assert_eq!(line.height_at(8, Way::Written), Some(1));
        assert_eq!(line.height_at(7, Way::Written), None);
    }

    #[test]
    fn tabs_are_blanks_and_line_ends_do_not_end_a_row() {
        let line = OutputLine::whole(Span::raw("a\tb\t\tc\nd"));
        assert_eq!(written(&line, 40), ("a   b       c d\r\n".to_owned(), 1));
        assert_eq!(written(&OutputLine::whole("a  \t"), 40).0, "a\r\n");
    }

    #[test]
    fn an_address_links_to_itself_also_when_it_is_broken() {
        let line = OutputLine::hanging("- see https://a.b/cdefgh, yes", 2);
        let link = |text: &str| format!("^]8;;https://a.b/cdefgh^\\{text}^]8;;^\\");
        let expected = format!(
            "- see\r\n  {}\r\n  {},\r\n  yes\r\n",
            link("https://a."),
            link("b/cdefgh")
        );
        assert_eq!(written(&line, 12), (expected, 4));
    }

    #[test]
    fn marks_stand_before_a_message_and_after_an_answer() {
        let mark = |mark| written(&OutputLine::words("x").marked(mark), 9).0;
        assert_eq!(mark(Mark::Prompt), "^]133;A;redraw=0^\\x\r\n");
        assert_eq!(mark(Mark::Output), "^]133;C^\\x\r\n");
        assert_eq!(mark(Mark::End), "x^]133;D^\\\r\n");
    }

    #[test]
    fn a_terminal_with_wide_ambiguous_characters_does_not_wrap_our_rows() {
        let line = OutputLine::words("…………");
        assert_eq!(written(&line, 4).0, "^[?7l…………\r\n");
        assert_eq!(written(&line, 8).0, "…………\r\n");
    }
}
