//! The one way to open, read and replace files that other processes can change meanwhile.
//!
//! A path is resolved once, and the decision whether it may be touched is made on the real path.
//! Then it is opened below a held directory with no symbolic link followed, so a directory that
//! was exchanged for a link in between is an error and not a way out. Only regular files are
//! opened (no pipe, device, socket or file of `/proc`), and sizes are bounded before reading.
//!
//! The types build on each other: [`Dir`] holds a directory by its descriptor, [`Place`] is one
//! name in such a directory, [`RegularFile`] is the open file that was found there, and
//! [`Temporary`] is a new file beside a place that can replace it by a rename.

mod dir;
mod facts;
mod ignores;
mod nested;
mod place;
mod read;
mod temporary;

pub use dir::Dir;
pub use facts::EntryFacts;
pub use ignores::{IGNORE_FILES, has_plain_ignore_files, is_plain_pattern};
pub use nested::{LeftOut, Nested, nested};
pub use place::{EntryKind, OpenError, Place, RegularFile};
pub use read::{dir, make_place, open, place, read, read_inside, read_real, read_text};
pub use temporary::Temporary;
