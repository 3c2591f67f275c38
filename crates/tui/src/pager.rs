//! A long text on a screen of its own, with search. The output above stays as it is.

use std::io::{self, Stdout, Write};

use codespar_terminal::wrap::OutputLine;
use codespar_terminal::{
    Buffer, Line, Rect, Size, Span,
    keys::{Key, KeyCode, Modifiers},
    painter::{Painter, Reflow},
    theme::Theme,
    width, wrap,
};

use crate::keymap::plain_char;

const ENTER: &str = "\x1b[?1049h\x1b[H\x1b[2J";
const CLEAR: &str = "\x1b[H\x1b[2J";
const LEAVE: &str = "\x1b[?1049l\x1b[?25h";

/// Whether it stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paged {
    Open,
    Closed,
}

pub(crate) struct Pager {
    painter: Painter<Stdout>,
    size: Size,
    text: Paging,
}

/// The text and what is shown of it.
struct Paging {
    title: String,
    lines: Vec<OutputLine>,
    theme: Theme,
    /// Wrapped for a width; the number of the line each row belongs to.
    rows: Vec<(usize, Line<'static>)>,
    columns: u16,
    top: usize,
    /// The end is shown until the user moves.
    at_end: bool,
    search: Option<String>,
    is_typing: bool,
}

impl Pager {
    pub(crate) fn open(
        title: String,
        lines: Vec<OutputLine>,
        theme: Theme,
        size: Size,
    ) -> io::Result<Self> {
        put(ENTER)?;
        Ok(Self {
            painter: Painter::new(io::stdout(), size, Reflow::No),
            size,
            text: Paging::new(title, lines, theme),
        })
    }

    pub(crate) fn close(self) -> io::Result<()> {
        self.painter.finish()?;
        put(LEAVE)
    }

    pub(crate) fn key(&mut self, key: &Key) -> Paged {
        self.text.key(key, self.size)
    }

    pub(crate) fn draw(&mut self, size: Size) -> io::Result<()> {
        if size != self.size {
            self.size = size;
            put(CLEAR)?;
            self.painter = Painter::new(io::stdout(), size, Reflow::No);
        }
        let frame = self.text.frame(size);
        self.painter.draw(&frame, None)
    }
}

fn put(sequence: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(sequence.as_bytes())?;
    out.flush()
}

impl Paging {
    fn new(title: String, lines: Vec<OutputLine>, theme: Theme) -> Self {
        Self {
            title,
            lines,
            theme,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            at_end: true,
            search: None,
            is_typing: false,
        }
    }

    fn key(&mut self, key: &Key, size: Size) -> Paged {
        self.layout(size.width);
        if self.is_typing {
            self.type_search(key);
            return Paged::Open;
        }
        let page = usize::from(size.height.saturating_sub(2)).max(1);
        let last = self.last_top(size);
        let is_ctrl = key.modifiers.contains(Modifiers::CTRL);
        let top = self.current_top(size);
        let moved = match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Paged::Closed,
            KeyCode::Char('c' | 't') if is_ctrl => return Paged::Closed,
            KeyCode::Up | KeyCode::Char('k') => top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => top + 1,
            KeyCode::PageUp | KeyCode::Char('b') => top.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => top + page,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            KeyCode::Char('/') => {
                self.is_typing = true;
                self.search = Some(String::new());
                return Paged::Open;
            }
            KeyCode::Char('n') => self.found_after(top).unwrap_or(top),
            KeyCode::Char('N') => self.found_before(top).unwrap_or(top),
            _ => return Paged::Open,
        };
        self.top = moved.min(last);
        self.at_end = self.top == last;
        Paged::Open
    }

    fn type_search(&mut self, key: &Key) {
        let Some(search) = &mut self.search else {
            return;
        };
        match key.code {
            KeyCode::Enter => {
                self.is_typing = false;
                let from = self.top.saturating_sub(1);
                if let Some(found) = self.found_after(from).or_else(|| self.found_after(0)) {
                    self.top = found;
                    self.at_end = false;
                }
            }
            KeyCode::Esc => {
                self.is_typing = false;
                self.search = None;
            }
            KeyCode::Backspace => {
                search.pop();
            }
            _ => search.extend(plain_char(key)),
        }
    }

    fn is_match(&self, row: &Line<'static>) -> bool {
        let wanted = self.search.as_deref().unwrap_or_default().to_lowercase();
        !wanted.is_empty() && row.to_string().to_lowercase().contains(&wanted)
    }

    fn found_after(&self, top: usize) -> Option<usize> {
        let rows = self.rows.iter().enumerate().skip(top + 1);
        let mut found = rows.filter(|(_, (_, row))| self.is_match(row));
        found.next().map(|(at, _)| at)
    }

    fn found_before(&self, top: usize) -> Option<usize> {
        let rows = self.rows.iter().enumerate().take(top);
        let mut found = rows.rev().filter(|(_, (_, row))| self.is_match(row));
        found.next().map(|(at, _)| at)
    }

    fn last_top(&self, size: Size) -> usize {
        let page = usize::from(size.height.saturating_sub(1));
        self.rows.len().saturating_sub(page)
    }

    fn current_top(&self, size: Size) -> usize {
        match self.at_end {
            true => self.last_top(size),
            false => self.top.min(self.last_top(size)),
        }
    }

    /// A resize keeps the line at the top where it is.
    fn layout(&mut self, columns: u16) {
        if columns == self.columns {
            return;
        }
        let line_at_top = self.rows.get(self.top).map(|(line, _)| *line);
        self.columns = columns;
        let rows = self.lines.iter().enumerate().flat_map(|(number, line)| {
            let rows = wrap::rows(line, columns);
            rows.into_iter().map(move |row| (number, row))
        });
        self.rows = rows.collect();
        if let Some(wanted) = line_at_top {
            let place = self.rows.iter().position(|(line, _)| *line == wanted);
            self.top = place.unwrap_or(0);
        }
    }

    fn frame(&mut self, size: Size) -> Buffer {
        self.layout(size.width);
        let top = self.current_top(size);
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.width, size.height));
        let page = size.height.saturating_sub(1);
        for (y, (_, row)) in (0..page).zip(&self.rows[top.min(self.rows.len())..]) {
            buffer.set_line(0, y, row, size.width);
            if self.is_match(row) {
                let mark = Span::styled("›", self.theme.warning());
                buffer.set_span(size.width.saturating_sub(1), y, &mark, 1);
            }
        }
        let text = match (&self.search, self.is_typing) {
            (Some(search), true) => format!("/{search}"),
            _ => format!(
                "{} · {}% · q closes · / searches · n N go to matches",
                self.title,
                (top * 100).checked_div(self.last_top(size)).unwrap_or(100)
            ),
        };
        let text = width::shortened(&text, usize::from(size.width));
        buffer.set_line(
            0,
            page,
            &Line::styled(text, self.theme.accent()),
            size.width,
        );
        buffer
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    fn pager(count: usize) -> Paging {
        let lines = (0..count).map(|n| OutputLine::words(format!("line {n}")));
        Paging::new("Transcript".into(), lines.collect(), Theme::default())
    }

    fn first_row(pager: &mut Paging, size: Size) -> String {
        let frame = pager.frame(size);
        let row = (0..size.width).map(|x| frame[(x, 0)].symbol().to_owned());
        row.collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn it_begins_at_the_end_and_goes_where_the_keys_say() {
        let size = Size::new(20, 11);
        let mut pager = pager(100);
        assert_eq!(first_row(&mut pager, size), "line 90");
        let mut press = |name: &str| {
            let key = Key::from_str(name).unwrap();
            let paged = pager.key(&key, size);
            (first_row(&mut pager, size), paged)
        };
        assert_eq!(press("up").0, "line 89");
        assert_eq!(press("home").0, "line 0");
        assert_eq!(press("pagedown").0, "line 9");
        assert_eq!(press("end").0, "line 90");
        assert_eq!(press("q").1, Paged::Closed);
    }

    #[test]
    fn a_search_goes_to_the_next_match() {
        let size = Size::new(20, 11);
        let mut pager = pager(100);
        for key in ["home", "/", "4", "2", "enter"] {
            pager.key(&Key::from_str(key).unwrap(), size);
        }
        let row = first_row(&mut pager, size);
        assert!(row.starts_with("line 42 ") && row.ends_with('›'), "{row}");
    }
}
