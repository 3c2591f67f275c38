//! Entry points for fuzz targets. Each checks what must hold for any text.

use crate::verify::{counts, failing};

/// Reads what a test program printed. Names of tests carry nothing but what a name is made of.
pub fn test_output(text: &str) {
    let _ = counts(text);
    let names = failing(text);
    assert!(names.len() <= 20);
    for name in names {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-: ›".contains(c);
        assert!(name.chars().all(is_plain), "{name:?}");
    }
}
