//! Styles as SGR sequences.

use ratatui_core::{
    buffer::Cell,
    style::{Color, Modifier, Style},
};

/// How a character looks, complete: nothing in it is inherited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Look {
    fg: Color,
    bg: Color,
    modifier: Modifier,
}

/// What can be seen on a blank.
const ON_BLANKS: Modifier = Modifier::UNDERLINED
    .union(Modifier::REVERSED)
    .union(Modifier::CROSSED_OUT);

const CODES: [(Modifier, &str); 6] = [
    (Modifier::BOLD, "1"),
    (Modifier::DIM, "2"),
    (Modifier::ITALIC, "3"),
    (Modifier::UNDERLINED, "4"),
    (Modifier::REVERSED, "7"),
    (Modifier::CROSSED_OUT, "9"),
];

impl Look {
    pub(super) fn of_cell(cell: &Cell) -> Self {
        Self {
            fg: cell.fg,
            bg: cell.bg,
            modifier: cell.modifier & supported(),
        }
    }

    /// Of a span: its own style over that of its line.
    pub(super) fn of_style(line: Style, span: Style) -> Self {
        let style = line.patch(span);
        Self {
            fg: style.fg.unwrap_or(Color::Reset),
            bg: style.bg.unwrap_or(Color::Reset),
            modifier: style.add_modifier.difference(style.sub_modifier) & supported(),
        }
    }

    /// Whether a blank in it differs from one that was never written.
    pub(super) fn shows_on_blank(self) -> bool {
        self.bg != Color::Reset || self.modifier.intersects(ON_BLANKS)
    }

    /// Appends what makes a terminal that is in look `from` continue in this one. Relative to
    /// `from`, with the fewest parameters. Text from outside has no part in it: a look is made of
    /// enums.
    pub(super) fn write_change(self, from: Self, bytes: &mut Vec<u8>) {
        if self == from {
            return;
        }
        let mut parameters: Vec<String> = Vec::new();
        // Bold and dim share the code that ends them, so what is taken away is taken away at once.
        let from = match from.modifier.difference(self.modifier).is_empty() {
            true => from,
            false => {
                parameters.push("0".to_owned());
                Self::default()
            }
        };
        let added = self.modifier.difference(from.modifier);
        let codes = CODES.iter().filter(|(one, _)| added.contains(*one));
        parameters.extend(codes.map(|(_, code)| (*code).to_owned()));
        if self.fg != from.fg {
            parameters.push(colour(self.fg, 30));
        }
        if self.bg != from.bg {
            parameters.push(colour(self.bg, 40));
        }
        if self == Self::default() {
            // Shorter than ending each.
            parameters.clear();
        }
        bytes.extend_from_slice(b"\x1b[");
        bytes.extend_from_slice(parameters.join(";").as_bytes());
        bytes.push(b'm');
    }
}

/// Other modifiers (blinking, hidden) are never written: hidden text could not be seen by the user.
fn supported() -> Modifier {
    CODES
        .iter()
        .fold(Modifier::empty(), |all, (one, _)| all | *one)
}

/// The parameters for a colour; `base` is 30 for text and 40 for the background.
fn colour(colour: Color, base: u8) -> String {
    let palette = |index: u8| match index {
        0..8 => (base + index).to_string(),
        _ => (base + 60 + index - 8).to_string(),
    };
    match colour {
        Color::Reset => (base + 9).to_string(),
        Color::Black => palette(0),
        Color::Red => palette(1),
        Color::Green => palette(2),
        Color::Yellow => palette(3),
        Color::Blue => palette(4),
        Color::Magenta => palette(5),
        Color::Cyan => palette(6),
        Color::Gray => palette(7),
        Color::DarkGray => palette(8),
        Color::LightRed => palette(9),
        Color::LightGreen => palette(10),
        Color::LightYellow => palette(11),
        Color::LightBlue => palette(12),
        Color::LightMagenta => palette(13),
        Color::LightCyan => palette(14),
        Color::White => palette(15),
        Color::Indexed(index) => format!("{};5;{index}", base + 8),
        Color::Rgb(red, green, blue) => format!("{};2;{red};{green};{blue}", base + 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(from: Style, to: Style) -> String {
        let mut bytes = Vec::new();
        let look = |style| Look::of_style(Style::new(), style);
        look(to).write_change(look(from), &mut bytes);
        String::from_utf8(bytes).unwrap().replace('\u{1b}', "")
    }

    #[test]
    fn only_what_changes_is_written() {
        let plain = Style::new();
        let red = plain.fg(Color::Red);
        let strong = red.add_modifier(Modifier::BOLD);
        assert_eq!(change(plain, plain), "");
        assert_eq!(change(plain, strong), "[1;31m");
        assert_eq!(change(red, strong), "[1m");
        assert_eq!(change(strong, red), "[0;31m");
        assert_eq!(change(strong, plain), "[m");
        assert_eq!(change(red, plain.fg(Color::LightCyan)), "[96m");
        assert_eq!(change(plain, plain.bg(Color::Indexed(200))), "[48;5;200m");
        assert_eq!(change(plain, plain.fg(Color::Rgb(1, 2, 3))), "[38;2;1;2;3m");
        assert_eq!(change(red.bg(Color::Blue), red), "[49m");
        let blinking = plain.add_modifier(Modifier::SLOW_BLINK | Modifier::HIDDEN);
        assert_eq!(change(plain, blinking), "");
    }
}
