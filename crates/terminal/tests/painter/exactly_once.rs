//! Whatever happens, every committed line is on the terminal once, and nothing is left behind.

use codespar_terminal::painter::Reflow;
use proptest::{
    prelude::*,
    test_runner::{Config, FileFailurePersistence},
};

use crate::{
    check::{check_cutting, check_reflowing},
    emulators::{Alacritty, Vt100},
    script::{record, steps},
};

/// Other cases each time, as many as fit into a few seconds, or as `PROPTEST_CASES` says. What has
/// failed is written to a file and tried first from then on.
fn config() -> Config {
    let failures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/painter/regressions.txt");
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok());
    Config {
        cases: cases.unwrap_or(100),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(failures))),
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_terminal_that_reflows_has_every_line_once((size, steps) in steps(24)) {
        let recording = record(size, Reflow::Yes, &steps);
        let result = check_reflowing(&recording, &mut Alacritty::new(size));
        prop_assert!(result.is_ok(), "{}", result.unwrap_err());
    }

    #[test]
    fn a_terminal_that_cuts_has_every_line_once((size, steps) in steps(24)) {
        let recording = record(size, Reflow::No, &steps);
        let result = check_cutting(&recording, &mut Vt100::new(size));
        prop_assert!(result.is_ok(), "{}", result.unwrap_err());
    }
}
