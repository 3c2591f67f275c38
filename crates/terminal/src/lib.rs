//! The terminal layer of the interactive session. It knows nothing of agents.
//!
//! Finished output scrolls into the terminal's own buffer, so copy, search and scrollback work;
//! only a live region at the bottom is redrawn.
//!
//! ```text
//! keys       bytes from the terminal -> keys, pastes, replies
//! burst      pastes of terminals that do not mark them
//! modes      raw mode and what else is switched on, and always switched off again
//! painter    committed lines above, the live region below
//! editor     the text being typed: motions, undo, kills, pastes as chips
//! history    what was typed before, on disk
//! width      how many columns text takes
//! wrap       lines -> rows
//! markdown   streamed markdown -> lines that are final, and a tail that is not
//! highlight  colours of code
//! diff       changed lines with numbers
//! theme      styles by meaning
//! ```
//!
//! Text is that of [`ratatui_core::text`]. Every text from outside must go through
//! `codespar_policy::printable` before it becomes a span; the painter checks that again, so that
//! an escape sequence can never come from a text.
//!
//! Nothing here reads the environment: `TERM` and the like are handed in. All text that is shown
//! goes through `painter`, and all bytes from the terminal through `keys`. The painter is tested
//! against emulators of several terminals.

pub mod burst;
pub mod diff;
pub mod editor;
pub mod highlight;
pub mod history;
pub mod keys;
pub mod markdown;
pub mod modes;
mod newlines;
pub mod painter;
pub mod theme;
pub mod width;
pub mod wrap;

pub use ratatui_core::{
    buffer::Buffer,
    layout::{Position, Rect, Size},
    style::{Color, Modifier, Style},
    text::{Line, Span, Text},
};
