//! Styles by meaning, for dark and light backgrounds.
//!
//! Only the sixteen colours of the terminal's own palette are used, which its user chose to be
//! readable on its background. What has to differ between light and dark is decided here.

use ratatui_core::style::{Color, Modifier, Style};

/// What the terminal's background is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Background {
    #[default]
    Dark,
    Light,
}

/// How much colour is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colours {
    #[default]
    Palette,
    /// `NO_COLOR`: bold, italic and dim remain.
    None,
}

/// The styles of one terminal. Cheap to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    pub background: Background,
    pub colours: Colours,
}

impl Theme {
    fn fg(self, colour: Color) -> Style {
        match self.colours {
            Colours::Palette => Style::new().fg(colour),
            Colours::None => Style::new(),
        }
    }

    fn by_background(self, dark: Color, light: Color) -> Style {
        match self.background {
            Background::Dark => self.fg(dark),
            Background::Light => self.fg(light),
        }
    }

    /// Less important than what is around it. By brightness and not by colour, so it works on every
    /// palette.
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub fn emphasis(self) -> Style {
        Style::new().add_modifier(Modifier::ITALIC)
    }

    pub fn struck(self) -> Style {
        Style::new().add_modifier(Modifier::CROSSED_OUT)
    }

    pub fn error(self) -> Style {
        self.fg(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub fn warning(self) -> Style {
        self.fg(Color::Yellow)
    }

    pub fn good(self) -> Style {
        self.fg(Color::Green)
    }

    /// Names of tools, the prompt, what has the focus.
    pub fn accent(self) -> Style {
        self.by_background(Color::Cyan, Color::Blue)
    }

    pub fn heading(self) -> Style {
        self.accent().add_modifier(Modifier::BOLD)
    }

    pub fn code(self) -> Style {
        self.by_background(Color::LightCyan, Color::Blue)
    }

    pub fn link(self) -> Style {
        self.fg(Color::Blue).add_modifier(Modifier::UNDERLINED)
    }

    /// Signs and numbers say the same, so nothing is lost without colour.
    pub fn added(self) -> Style {
        self.fg(Color::Green)
    }

    pub fn removed(self) -> Style {
        self.fg(Color::Red)
    }

    /// The part of an added or removed line that differs.
    pub fn changed(self, line: Style) -> Style {
        line.add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
    }

    pub fn keyword(self) -> Style {
        self.fg(Color::Magenta)
    }

    pub fn string(self) -> Style {
        self.fg(Color::Green)
    }

    pub fn number(self) -> Style {
        self.by_background(Color::Yellow, Color::Blue)
    }

    pub fn comment(self) -> Style {
        self.faint().add_modifier(Modifier::ITALIC)
    }

    pub fn type_name(self) -> Style {
        self.by_background(Color::LightYellow, Color::Cyan)
    }

    pub fn function(self) -> Style {
        self.by_background(Color::LightBlue, Color::Blue)
    }

    /// Attributes and decorators of code, tags of markup.
    pub fn attribute(self) -> Style {
        self.by_background(Color::LightCyan, Color::Magenta)
    }

    /// Names of values in data: JSON, YAML, TOML.
    pub fn key(self) -> Style {
        self.by_background(Color::LightBlue, Color::Blue)
    }
}
