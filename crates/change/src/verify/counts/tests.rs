use super::*;

#[test]
fn the_summaries_of_common_programs_are_read() {
    for (output, passed, failed) in [
        (
            "test result: ok. 12 passed; 0 failed; 1 ignored\n…\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n",
            13,
            2,
        ),
        ("=== 3 failed, 12 passed, 1 warning in 0.12s ===\n", 12, 3),
        ("12 passed in 0.12s\n", 12, 0),
        (
            "Test Suites: 1 failed, 1 total\nTests:       1 failed, 4 passed, 5 total\nTime: 1 s\n",
            4,
            1,
        ),
        ("  5 passing (3ms)\n  1 failing\n", 5, 1),
        ("# tests 4\n# pass 3\n# fail 1\n", 3, 1),
        ("ℹ tests 4\nℹ pass 4\nℹ fail 0\n", 4, 0),
        (
            "ok  \texample.com/a\t0.1s\nFAIL\texample.com/b\t0.1s\n",
            1,
            1,
        ),
        (
            "Ran 7 tests in 0.1s\n\nFAILED (failures=2, errors=1)\n",
            4,
            3,
        ),
        ("Ran 7 tests in 0.1s\n\nOK\n", 7, 0),
        (
            "Ran 7 tests in 0.1s\n\nFAILED (failures=1, skipped=2)\n",
            6,
            1,
        ),
        ("# tests 4\n# pass  3\n# fail  1\n", 3, 1),
        (
            " Test Files  1 failed (1)\n      Tests  1 failed | 4 passed (5)\n",
            4,
            1,
        ),
        (
            "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\tx\t0.1s\n",
            1,
            1,
        ),
        ("OK (12 tests, 30 assertions)\n", 12, 0),
        (
            "Tests: 12, Assertions: 30, Failures: 2, Errors: 1, Skipped: 1.\n",
            8,
            3,
        ),
        ("12 examples, 0 failures\n", 12, 0),
        (
            "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1\n",
            4,
            0,
        ),
        ("100% tests passed, 0 tests failed out of 10\n", 10, 0),
        (
            "TAP version 13\nok 1 - a\nnot ok 2 - b\nnot ok 3 - c # TODO later\n1..3\n",
            2,
            1,
        ),
        (
            "     Summary [ 0.1s] 10 tests run: 8 passed (1 slow), 2 failed, 1 skipped\n",
            8,
            2,
        ),
    ] {
        assert_eq!(counts(output), Some(Counts { passed, failed }), "{output}");
    }
    assert_eq!(counts("all is well\n"), None);
}

#[test]
fn counts_past_all_bounds_do_not_become_small() {
    let most = u64::MAX;
    for output in [
        format!("{most} failed, 1 failed, 3 passed\n"),
        format!("test result: 0 passed; {most} failed\ntest result: 3 passed; 1 failed\n"),
        format!("# pass 3\n# fail {most}\n# fail 1\n"),
        format!("Ran 7 tests in 0.1s\n\nFAILED (failures={most}, errors=1)\n"),
    ] {
        assert_eq!(
            counts(&output).map(|found| found.failed),
            Some(most),
            "{output}"
        );
    }
}
