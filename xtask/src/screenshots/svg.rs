//! A picture of a terminal as SVG.
//!
//! Every run of text says where it begins and how wide it is, so that the columns stay in line
//! whatever monospace font the reader has. Lines of boxes and tables are drawn and not written:
//! in most fonts they would have gaps between the rows.

use std::fmt::Write;

use anyhow::{Result, bail};

use super::picture::{CellStyle, DrawnCell, Picture};

/// A repository with larger pictures is slow to clone; a screen needs far less.
const LARGEST: usize = 40_000;

/// Measures are in tenths of a pixel, which are whole numbers and written the same everywhere.
const CELL_WIDTH: usize = 84;
const CELL_HEIGHT: usize = 180;
const BASELINE: usize = 135;
const PADDING: usize = 160;
const TITLE_BAR: usize = 360;

const WINDOW: &str = "#16181d";
const TITLE: &str = "codespar · ~/project";
/// Colour of the text where a program sets none.
const FOREGROUND: &str = "#d5d8df";
/// Black to white, then the bright ones.
const PALETTE: [&str; 16] = [
    "#3b4048", "#ef6b73", "#8ccf7e", "#e5b567", "#6cb0f0", "#c792ea", "#4fc4cf", "#d5d8df",
    "#6b7280", "#ff8b92", "#a8e39b", "#f5d08a", "#93c7ff", "#dcb3f5", "#84dfe8", "#ffffff",
];

pub(super) fn draw(picture: &Picture) -> Result<String> {
    let mut svg = opening(picture);
    for (number, row) in picture.rows.iter().enumerate() {
        draw_row(&mut svg, row, TITLE_BAR + number * CELL_HEIGHT);
    }
    if let Some((row, column)) = picture.cursor {
        let (x, y) = (
            left_of(column.into()),
            TITLE_BAR + usize::from(row) * CELL_HEIGHT,
        );
        rectangle(&mut svg, "cursor", [x, y, CELL_WIDTH, CELL_HEIGHT]);
    }
    svg.push_str("</svg>\n");
    if svg.len() > LARGEST {
        bail!(
            "the picture has {} bytes, more than {LARGEST}: make the scene simpler",
            svg.len()
        );
    }
    Ok(svg)
}

/// The window, its title and the styles that the rows name.
fn opening(picture: &Picture) -> String {
    let width = 2 * PADDING + usize::from(picture.columns) * CELL_WIDTH;
    let height = TITLE_BAR + picture.rows.len() * CELL_HEIGHT + PADDING;
    let mut palette = String::new();
    for (number, colour) in PALETTE.iter().enumerate() {
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            palette,
            ".c{number}{{fill:{colour}}} .l{number}{{stroke:{colour}}} "
        );
    }
    let (width, height, middle) = (pixels(width), pixels(height), pixels(width / 2));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" xml:space=\"preserve\">\n\
         <title>{TITLE}</title>\n\
         <style>\n\
         text{{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',\
         monospace;fill:{FOREGROUND};white-space:pre}}\n\
         path{{fill:none;stroke:{FOREGROUND}}}\n\
         .b{{font-weight:bold}} .d{{opacity:.6}} .i{{font-style:italic}} \
         .u{{text-decoration:underline}}\n\
         .inverse{{fill:{WINDOW}}} .cursor{{fill:{FOREGROUND};opacity:.5}} \
         .plain{{fill:{FOREGROUND}}}\n\
         {}\n\
         </style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{WINDOW}\"/>\n\
         <g fill=\"#3b4048\"><circle cx=\"18\" cy=\"16\" r=\"5.5\"/>\
         <circle cx=\"36\" cy=\"16\" r=\"5.5\"/><circle cx=\"54\" cy=\"16\" r=\"5.5\"/></g>\n\
         <text x=\"{middle}\" y=\"21\" text-anchor=\"middle\" class=\"d\">{TITLE}</text>\n",
        palette.trim_end(),
    )
}

fn draw_row(svg: &mut String, row: &[DrawnCell], top: usize) {
    let mut start = 0;
    while start < row.len() {
        let style = row[start].style;
        let is_line = lines_of(&row[start].text).is_some();
        let same =
            |cell: &&DrawnCell| cell.style == style && lines_of(&cell.text).is_some() == is_line;
        let end = start + row[start..].iter().take_while(same).count();
        draw_background(svg, style, start, end, top);
        match is_line {
            true => draw_lines(svg, &row[start..end], start, top),
            false => draw_words(svg, &row[start..end], start, top),
        }
        start = end;
    }
}

fn draw_background(svg: &mut String, style: CellStyle, start: usize, end: usize, top: usize) {
    let colour = match style.inverse {
        true => Some(style.foreground),
        false => style.background.map(Some),
    };
    if let Some(colour) = colour {
        let class = colour.map_or("plain".to_owned(), |number| format!("c{number}"));
        let place = [left_of(start), top, (end - start) * CELL_WIDTH, CELL_HEIGHT];
        rectangle(svg, &class, place);
    }
}

/// Cells of one style. A gap of several spaces begins a new run of text; an underlined one is
/// written, since its line is visible.
fn draw_words(svg: &mut String, cells: &[DrawnCell], column: usize, top: usize) {
    let style = cells[0].style;
    let is_space = |cell: Option<&DrawnCell>| cell.is_some_and(|cell| cell.text == " ");
    let mut at = 0;
    while at < cells.len() {
        if is_space(cells.get(at)) && !style.underline {
            at += 1;
            continue;
        }
        let mut end = at;
        while end < cells.len()
            && (style.underline
                || !is_space(cells.get(end))
                || end + 1 < cells.len() && !is_space(cells.get(end + 1)))
        {
            end += 1;
        }
        let text: String = cells[at..end]
            .iter()
            .map(|cell| cell.text.as_str())
            .collect();
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" textLength=\"{}\"{}>{}</text>",
            pixels(left_of(column + at)),
            pixels(top + BASELINE),
            pixels((end - at) * CELL_WIDTH),
            class_of(style),
            escaped(&text),
        );
        at = end;
    }
}

fn class_of(style: CellStyle) -> String {
    let mut names = Vec::new();
    match (style.inverse, style.foreground) {
        (true, _) => names.push("inverse".to_owned()),
        (false, Some(number)) => names.push(format!("c{number}")),
        (false, None) => {}
    }
    let flags = [
        (style.bold, "b"),
        (style.dim, "d"),
        (style.italic, "i"),
        (style.underline, "u"),
    ];
    names.extend(
        flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, name)| (*name).to_owned()),
    );
    match names.is_empty() {
        true => String::new(),
        false => format!(" class=\"{}\"", names.join(" ")),
    }
}

/// Where the lines of a character go from the middle of its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BoxLines {
    left: bool,
    right: bool,
    up: bool,
    down: bool,
}

fn lines_of(text: &str) -> Option<BoxLines> {
    let (left, right, up, down) = match text {
        "─" => (true, true, false, false),
        "│" => (false, false, true, true),
        "┌" => (false, true, false, true),
        "┐" => (true, false, false, true),
        "└" => (false, true, true, false),
        "┘" => (true, false, true, false),
        "├" => (false, true, true, true),
        "┤" => (true, false, true, true),
        "┬" => (true, true, false, true),
        "┴" => (true, true, true, false),
        "┼" => (true, true, true, true),
        _ => return None,
    };
    Some(BoxLines {
        left,
        right,
        up,
        down,
    })
}

/// One path for the cells; a horizontal line through several is one stroke.
fn draw_lines(svg: &mut String, cells: &[DrawnCell], column: usize, top: usize) {
    let middle = top + CELL_HEIGHT / 2;
    let mut path = String::new();
    let mut stroke: Option<(usize, usize)> = None;
    for (number, cell) in cells.iter().enumerate() {
        let Some(lines) = lines_of(&cell.text) else {
            continue;
        };
        let left = left_of(column + number);
        let centre = left + CELL_WIDTH / 2;
        if lines.up || lines.down {
            let from = if lines.up { top } else { middle };
            let to = if lines.down {
                top + CELL_HEIGHT
            } else {
                middle
            };
            let _ = write!(path, "M{} {}V{}", pixels(centre), pixels(from), pixels(to));
        }
        if lines.left || lines.right {
            let from = if lines.left { left } else { centre };
            let to = if lines.right {
                left + CELL_WIDTH
            } else {
                centre
            };
            stroke = match stroke {
                Some((began, ended)) if ended == from => Some((began, to)),
                earlier => {
                    horizontal(&mut path, earlier, middle);
                    Some((from, to))
                }
            };
        }
    }
    horizontal(&mut path, stroke, middle);
    let class = class_of(cells[0].style).replace("\"c", "\"l");
    let _ = writeln!(svg, "<path{class} d=\"{path}\"/>");
}

fn horizontal(path: &mut String, stroke: Option<(usize, usize)>, y: usize) {
    if let Some((from, to)) = stroke {
        let _ = write!(path, "M{} {}H{}", pixels(from), pixels(y), pixels(to));
    }
}

/// Left, top, width and height.
fn rectangle(svg: &mut String, class: &str, place: [usize; 4]) {
    let [x, y, width, height] = place.map(pixels);
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" class=\"{class}\"/>"
    );
}

fn left_of(column: usize) -> usize {
    PADDING + column * CELL_WIDTH
}

fn pixels(tenths: usize) -> String {
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

/// Control characters are not allowed in XML, not even escaped.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars().filter(|character| !character.is_control()) {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is drawn below the title, a line for each element.
    fn drawn(text: &str) -> Vec<String> {
        let mut parser = vt100::Parser::new(3.try_into().unwrap(), 20.try_into().unwrap(), 0);
        parser.process(format!("\x1b[?25l{text}").as_bytes());
        let svg = draw(&Picture::of(parser.screen()).unwrap()).unwrap();
        let (_, body) = svg.split_once("</text>\n").unwrap();
        body.lines().map(str::to_owned).collect()
    }

    #[test]
    fn text_is_escaped_and_runs_begin_in_their_columns() {
        assert_eq!(
            drawn("a <b> & c   \x1b[1;31md"),
            [
                "<text x=\"16\" y=\"49.5\" textLength=\"75.6\">a &lt;b&gt; &amp; c</text>",
                "<text x=\"116.8\" y=\"49.5\" textLength=\"8.4\" class=\"c1 b\">d</text>",
                "</svg>",
            ]
        );
    }

    #[test]
    fn a_corner_and_its_lines_are_one_path() {
        assert_eq!(
            drawn("\x1b[36m┌──┐"),
            [
                "<path class=\"l6\" d=\"M20.2 45V54M45.4 45V54M20.2 45H45.4\"/>",
                "</svg>",
            ]
        );
    }

    #[test]
    fn inverse_text_stands_on_its_own_colour() {
        assert_eq!(
            drawn("\x1b[7;32mx"),
            [
                "<rect x=\"16\" y=\"36\" width=\"8.4\" height=\"18\" class=\"c2\"/>",
                "<text x=\"16\" y=\"49.5\" textLength=\"8.4\" class=\"inverse\">x</text>",
                "</svg>",
            ]
        );
    }
}
