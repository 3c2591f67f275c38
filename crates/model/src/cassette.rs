//! Recording of model traffic to a file, and its replay without a provider.
//!
//! A cassette is a JSON-lines file. Its first line is a header,
//! `{"cassette":1,"match":"messages"}`; every other line is one answer:
//!
//! ```json
//! {"digest":"…","turn":1,"request":{"model":"…","messages":1,"last":"…"},
//!  "events":[{"text":"…"}],"response":{"content":[…],"stop_reason":"end_turn","usage":{…}}}
//! ```
//!
//! With `"match":"messages"` an answer belongs to the conversation with the same digest: messages
//! alone count, because the system prompt holds dates and paths. With `"match":"turn"` it belongs
//! to any request with as many assistant messages before it as its `turn` says (the first is 1;
//! without `turn`, lines count), which lets a person write one by hand. `digest`, `request` and
//! `events` may then be left out. A line with `"contains":["…"]` is played, again and again, for
//! requests whose system prompt or last message has all of these texts, whatever their case; with a
//! `turn` only for that one. The first line that fits is played; other lines come after them.

mod digest;
mod player;
mod recorder;
mod tape;

use std::{path::Path, sync::Arc};

pub use player::CassettePlayer;
pub use recorder::CassetteRecorder;

use crate::ModelError;

/// Takes secrets out of a text. Applied to everything a cassette is given to write, and to
/// messages before they are compared. Applying it twice must change nothing more.
pub type Redaction = Arc<dyn Fn(&str) -> String + Send + Sync>;

fn fault(path: &Path, message: impl std::fmt::Display) -> ModelError {
    ModelError::Cassette {
        path: path.display().to_string(),
        message: message.to_string(),
    }
}
