//! A long text on a screen of its own, with parts that are folded and search. The output above
//! stays as it is.
//!
//! Opened for transcripts. It uses the terminal's alternate screen, with a painter of its own, so
//! the live region and the scrollback are untouched and stand there again afterwards. While it is
//! open it gets all keys, and output waits.

use std::{
    collections::HashSet,
    io::{self, Stdout, Write},
};

use codespar_protocol::counted;
use codespar_terminal::{
    Buffer, Line, Modifier, Rect, Size, Span, Style,
    keys::{Key, KeyCode, Modifiers},
    painter::{Painter, Reflow},
    theme::Theme,
    width,
    wrap::{self, OutputLine},
};

use crate::{keymap::plain_char, render::PageItem};

/// The alternate screen, cleared.
const ENTER: &str = "\x1b[?1049h\x1b[H\x1b[2J";
const CLEAR: &str = "\x1b[H\x1b[2J";
const LEAVE: &str = "\x1b[?1049l\x1b[?25h";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forth,
    Back,
}

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

/// The text and what is shown of it. Everything but the terminal, so that it can be tested. Rows
/// are wrapped once for each width and each change of a fold, not for each frame.
struct Paging {
    title: String,
    items: Vec<PageItem>,
    /// Those that are opened.
    open: HashSet<usize>,
    /// The fold that Enter opens.
    selected: Option<usize>,
    theme: Theme,
    /// Wrapped for a width; the number of the item each row belongs to.
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
        items: Vec<PageItem>,
        theme: Theme,
        size: Size,
    ) -> io::Result<Self> {
        put(ENTER)?;
        Ok(Self {
            painter: Painter::new(io::stdout(), size, Reflow::No),
            size,
            text: Paging::new(title, items, theme),
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
    fn new(title: String, items: Vec<PageItem>, theme: Theme) -> Self {
        Self {
            title,
            items,
            open: HashSet::new(),
            selected: None,
            theme,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            at_end: true,
            search: None,
            is_typing: false,
        }
    }

    /// Keys as in `less`, where they exist.
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
            KeyCode::Tab if key.modifiers.contains(Modifiers::SHIFT) => {
                return self.select(size, Direction::Back);
            }
            KeyCode::Tab => return self.select(size, Direction::Forth),
            KeyCode::Enter if self.selected.is_some() => return self.toggle(size),
            KeyCode::Char('a') => return self.toggle_all(size),
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

    /// Enter opens the folds that have the text and goes to the next match.
    fn type_search(&mut self, key: &Key) {
        let Some(search) = &mut self.search else {
            return;
        };
        match key.code {
            KeyCode::Enter => {
                self.is_typing = false;
                self.open_matches();
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

    /// Case does not count. Per row as it is wrapped: a text that a break divides is not found.
    fn is_match(&self, row: &Line<'static>) -> bool {
        let wanted = self.search.as_deref().unwrap_or_default().to_lowercase();
        !wanted.is_empty() && row.to_string().to_lowercase().contains(&wanted)
    }

    /// What is searched for is looked for in folds too.
    fn open_matches(&mut self) {
        let has_match = |item: &PageItem| match item {
            PageItem::Fold { body, .. } => body.iter().any(|line| self.is_match(&line.line)),
            PageItem::Line(_) => false,
        };
        let items = self.items.iter().enumerate();
        let found = items.filter(|(_, item)| has_match(item));
        let found: Vec<usize> = found.map(|(number, _)| number).collect();
        self.open.extend(found);
        self.layout_again();
    }

    fn is_fold(&self, item: usize) -> bool {
        matches!(self.items.get(item), Some(PageItem::Fold { .. }))
    }

    /// The next fold, or the previous one; the first time the last one on the screen. It is moved
    /// to the screen if it is not there.
    fn select(&mut self, size: Size, direction: Direction) -> Paged {
        let top = self.current_top(size);
        let page = usize::from(size.height.saturating_sub(1)).max(1);
        let shown = self.rows.iter().skip(top).take(page).map(|(item, _)| *item);
        let is_fold = |item: &usize| self.is_fold(*item);
        let found = match (self.selected, direction) {
            (Some(selected), Direction::Forth) => (selected + 1..self.items.len()).find(is_fold),
            (Some(selected), Direction::Back) => (0..selected).rev().find(is_fold),
            (None, _) => {
                let last = shown.rev().find(is_fold);
                last.or_else(|| (0..self.items.len()).rev().find(is_fold))
            }
        };
        self.selected = found.or(self.selected);
        self.show_selected(size);
        Paged::Open
    }

    fn show_selected(&mut self, size: Size) {
        let top = self.current_top(size);
        let page = usize::from(size.height.saturating_sub(1)).max(1);
        let selected = self.selected;
        let row = self
            .rows
            .iter()
            .position(|(item, _)| Some(*item) == selected);
        if let Some(row) = row.filter(|row| !(top..top + page).contains(row)) {
            self.top = row.min(self.last_top(size));
            self.at_end = false;
        }
    }

    fn toggle(&mut self, size: Size) -> Paged {
        if let Some(selected) = self.selected
            && !self.open.remove(&selected)
        {
            self.open.insert(selected);
        }
        // The heading stays where it is.
        self.top = self.current_top(size);
        self.at_end = false;
        self.layout_again();
        self.show_selected(size);
        Paged::Open
    }

    /// Closes all if any is open.
    fn toggle_all(&mut self, size: Size) -> Paged {
        let folds = (0..self.items.len()).filter(|item| self.is_fold(*item));
        self.open = match self.open.is_empty() {
            true => folds.collect(),
            false => HashSet::new(),
        };
        self.top = self.current_top(size);
        self.at_end = false;
        self.layout_again();
        self.show_selected(size);
        Paged::Open
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
        if columns != self.columns {
            self.columns = columns;
            self.layout_again();
        }
    }

    /// By item, not by row: the item that was at the top is at the top again.
    fn layout_again(&mut self) {
        let item_at_top = self.rows.get(self.top).map(|(item, _)| *item);
        let rows = self.items.iter().enumerate().flat_map(|(number, item)| {
            let rows = self.rows_of(number, item);
            rows.into_iter().map(move |row| (number, row))
        });
        self.rows = rows.collect();
        if let Some(wanted) = item_at_top {
            let place = self.rows.iter().position(|(item, _)| *item == wanted);
            self.top = place.unwrap_or(0);
        }
    }

    fn rows_of(&self, number: usize, item: &PageItem) -> Vec<Line<'static>> {
        let (heading, body) = match item {
            PageItem::Line(line) => return wrap::rows(line, self.columns),
            PageItem::Fold { heading, body } => (heading, body),
        };
        let is_open = self.open.contains(&number);
        let mut line = heading.line.clone();
        let mark = if is_open { "▾ " } else { "▸ " };
        line.spans
            .insert(0, Span::styled(mark, self.theme.accent()));
        if !is_open && !body.is_empty() {
            let more = format!(" · {}", counted(body.len(), "line"));
            line.spans.push(Span::styled(more, self.theme.faint()));
        }
        let heading = OutputLine::hanging(line, 4);
        let mut rows = wrap::rows(&heading, self.columns);
        if is_open {
            rows.extend(body.iter().flat_map(|line| wrap::rows(line, self.columns)));
        }
        rows
    }

    fn frame(&mut self, size: Size) -> Buffer {
        self.layout(size.width);
        let top = self.current_top(size);
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.width, size.height));
        let page = size.height.saturating_sub(1);
        let mut before = None;
        for (y, (item, row)) in (0..page).zip(&self.rows[top.min(self.rows.len())..]) {
            buffer.set_line(0, y, row, size.width);
            let is_heading = before != Some(*item) && self.selected == Some(*item);
            if is_heading {
                let area = Rect::new(0, y, size.width, 1);
                buffer.set_style(area, Style::new().add_modifier(Modifier::REVERSED));
            }
            before = Some(*item);
            if self.is_match(row) {
                let mark = Span::styled("›", self.theme.warning());
                buffer.set_span(size.width.saturating_sub(1), y, &mark, 1);
            }
        }
        let text = match (&self.search, self.is_typing) {
            (Some(search), true) => format!("/{search}"),
            _ => format!(
                "{} · {}% · q closes · / searches, n N go on · tab goes to calls, enter opens",
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
        let items = lines.map(PageItem::Line).collect();
        Paging::new("Transcript".into(), items, Theme::default())
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

    fn texts(pager: &mut Paging, size: Size) -> Vec<String> {
        let frame = pager.frame(size);
        let row = |y| (0..size.width).map(move |x| (x, y));
        let rows = (0..size.height - 1).map(|y| {
            let text: String = row(y).map(|at| frame[at].symbol().to_owned()).collect();
            text.trim_end().to_owned()
        });
        rows.filter(|row| !row.is_empty()).collect()
    }

    #[test]
    fn a_fold_is_opened_by_its_key_and_by_a_search() {
        let size = Size::new(30, 11);
        let fold = |name: &str| PageItem::Fold {
            heading: OutputLine::whole(format!("● {name}")),
            body: vec![
                OutputLine::whole(format!("  {name} first")),
                OutputLine::whole(format!("  {name} second")),
            ],
        };
        let items = vec![fold("one"), fold("two")];
        let mut pager = Paging::new("Transcript".into(), items, Theme::default());
        let mut press = |names: &[&str]| {
            for name in names {
                pager.key(&Key::from_str(name).unwrap(), size);
            }
            texts(&mut pager, size)
        };
        let folded = ["▸ ● one · 2 lines", "▸ ● two · 2 lines"];
        assert_eq!(press(&[]), folded);
        let opened = [
            "▸ ● one · 2 lines",
            "▾ ● two",
            "  two first",
            "  two second",
        ];
        assert_eq!(press(&["tab", "enter"]), opened);
        assert_eq!(press(&["enter"]), folded);
        let found = press(&["/", "e", "space", "s", "enter"]);
        assert!(found[2].starts_with("  one second"), "{found:?}");
        assert_eq!(found[3], "▸ ● two · 2 lines");
        assert_eq!(press(&["a"]), folded);
        assert_eq!(press(&["a"]).len(), 6);
    }
}
