//! The painter on terminals: what is on the screen and in the scrollback is what was asked for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod check;
mod crossing;
mod emulators;
mod exactly_once;
mod installed;
mod script;
mod single;
