//! The terminal session: what is shown of an agent's events, and what a person does at the
//! keyboard.
//!
//! [`Tui`] is a handle to a thread of its own that has the terminal. Events and questions go in;
//! [`UserAction`]s come out. It runs no agent and opens no session: whoever drives the session does
//! that, with this surface or another.
//!
//! ```text
//! handle      the two directions: messages in, actions out
//! ui_thread   waits for the terminal and for messages; paints at most 60 times a second
//! pace        when it paints: what streams in waits a little longer than what was typed
//! app         the state: pure, from inputs, events and the time to a frame
//! composer    the text being typed, its history, search and completion
//! question    a question of an agent: never takes a key that was meant for the composer
//! activity    what is under way: the spinner and running calls
//! boxes       subagents, side by side
//! tool_calls  finished calls, edits as diffs
//! picker      a list to choose from
//! task_pane   the list of tasks: output, stop, message, transcript
//! ```
//!
//! How a key and an event reach the screen:
//!
//! ```text
//! terminal → bytes → KeyParser → Burst → Input ─┐      ┌→ output lines, a frame → Painter
//!                                               ├→ App ┤
//! driver → Tui → Message ───────────────────────┘      └→ effects → UserAction → driver
//! ```
//!
//! `App` is pure, so that everything a user sees and every key can be tested without a terminal.
//! The thread that has it does the rest: reading, painting, giving the terminal to an editor.

mod activity;
mod app;
mod boxes;
mod completion;
mod composer;
mod draft;
mod handle;
mod keymap;
mod layout;
mod pace;
mod pager;
mod picker;
mod question;
mod queue;
mod status;
mod task_pane;
mod text;
mod tool_calls;
mod ui_thread;

mod render;

pub use activity::Motion;
pub use codespar_terminal::modes::restore_after_panic as restore_terminal;
pub use codespar_terminal::{
    Line as TextLine, Span as TextSpan, Style as TextStyle, keys, theme, wrap::OutputLine,
};
pub use completion::{CompletionSource, Suggestion};
pub use handle::{Choice, QuestionReply, Tui, UserAction};
pub use keymap::{KeyAction, Keymap, KeymapError};
pub use render::{PageItem, code, markdown, transcript_items};
pub use status::Status;
pub use task_pane::TaskRow;
pub use ui_thread::THREAD_NAME;
pub use ui_thread::{TuiError, TuiOptions};
