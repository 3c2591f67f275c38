//! Entry points for fuzz targets. Each checks what must hold for any text.

use crate::verify::{REPORT_LIMIT, TestRun, counts, failing, read_output, report};

/// Reads what a test program printed. Names of tests carry nothing but what a name is made of, and
/// what is reported to the model has its limit.
pub fn test_output(text: &str) {
    let _ = counts(text);
    let hidden = ["/some/tree".to_owned()];
    let read = read_output(text.as_bytes(), &hidden).unwrap_or_default();
    let names = failing(&read.failures);
    assert!(names.len() <= 20);
    for name in names {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-: ›,".contains(c);
        assert!(name.chars().all(is_plain), "{name:?}");
    }
    let run = TestRun {
        exit_code: Some(1),
        failures: read.failures,
        head: read.head,
        tail: read.tail,
        ..TestRun::default()
    };
    assert!(report(&run, &TestRun::default()).len() <= REPORT_LIMIT);
    assert!(run.failed_for_the_same_reasons(&run));
    let _ = run.mentions("src/main.rs");
}
