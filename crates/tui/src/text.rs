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

    pub(crate) fn clean(&self, text: &str) -> String {
        printable(&self.0.redact(text)).replace('\t', "    ")
    }

    /// The first line, shortened to so many columns.
    pub(crate) fn line(&self, text: &str, columns: usize) -> String {
        let first = text.lines().next().unwrap_or_default();
        codespar_terminal::width::shortened(&self.clean(first), columns)
    }
}

/// `8100` as `8.1k`.
pub(crate) fn count(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", number as f64 / 1_000.0),
        _ => format!("{:.1}M", number as f64 / 1_000_000.0),
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
    fn numbers_are_short() {
        assert_eq!(count(999), "999");
        assert_eq!(count(8_100), "8.1k");
        assert_eq!(count(2_500_000), "2.5M");
        assert_eq!(duration(59), "59 s");
        assert_eq!(duration(75), "1 m 15 s");
        assert_eq!(duration(3_700), "1 h 1 m");
    }
}
