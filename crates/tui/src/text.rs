//! Text from outside, made fit to be shown.

use std::sync::Arc;

use codespar_policy::{Redactor, printable};

/// Takes secrets out of texts and escapes what a terminal would obey. Every text of a model, a
/// tool or a repository goes through it once, where it enters.
#[derive(Clone)]
pub(crate) struct Cleaner(Arc<Redactor>);

impl Cleaner {
    pub(crate) fn new(secrets: Arc<Redactor>) -> Self {
        Self(secrets)
    }

    /// Redacting comes first: an escaped character within a secret would hide it. Line ends stay.
    pub(crate) fn clean(&self, text: &str) -> String {
        printable(&self.0.redact(text)).replace('\t', "    ")
    }

    /// The first line, shortened to so many columns.
    pub(crate) fn line(&self, text: &str, columns: usize) -> String {
        let first = text.lines().next().unwrap_or_default();
        codespar_terminal::width::shortened(&self.clean(first), columns)
    }
}

/// `75` as `1 m 15 s`.
pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(duration(59), "59 s");
        assert_eq!(duration(75), "1 m 15 s");
        assert_eq!(duration(3_700), "1 h 1 m");
    }
}
