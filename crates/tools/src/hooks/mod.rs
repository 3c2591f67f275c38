//! Runs hooks: commands, outside of the sandbox or in it, and requests to addresses.
//!
//! A hook of the user runs like any program of the user, held by a guard that ends everything it
//! started. A hook of a repository runs as a command of the agent does, in the sandbox. Either way
//! its input is given whole, its output is bounded, and at its deadline or when it is cancelled
//! nothing of it is left. What it printed is not judged here: that is `codespar_policy::hooks`.

mod command;
mod confined;
mod http;

pub use command::{HookCommand, run_hook_outside};
pub use confined::run_hook_confined;
pub use http::{HookPost, HookReach, post_hook};

/// How much of what a hook prints is kept. In bytes; the rest is read and dropped, so that the hook
/// can come to its end.
const MOST_OUTPUT: usize = 1 << 20;

/// Output up to its limit.
#[derive(Debug, Default)]
struct Bounded(Vec<u8>);

impl Bounded {
    fn add(&mut self, piece: &[u8]) {
        let room = MOST_OUTPUT - self.0.len();
        self.0.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}
