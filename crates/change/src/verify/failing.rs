//! The names of tests that failed, read from what test programs print.

use std::sync::LazyLock;

use regex::Regex;

/// So many are named.
const MOST: usize = 20;

/// One for each kind of program. Only what can be part of a name is taken: what a test says about
/// its failure may be anything, and parameters too.
const LINES: &[&str] = &[
    // cargo
    r"^test ([A-Za-z0-9_:]{1,120})(?: - should panic)? \.\.\. FAILED$",
    // pytest
    r"^(?:FAILED|ERROR) ([A-Za-z0-9_./-]{1,80}(?:::[A-Za-z0-9_]{1,80}){1,3})",
    // go
    r"^\s*--- FAIL: ([A-Za-z0-9_]{1,80})",
    // unittest
    r"^(?:FAIL|ERROR): ([A-Za-z0-9_]{1,80}) \([A-Za-z0-9_.]{1,120}\)",
    // TAP
    r"^\s*not ok \d+ -? ?([A-Za-z0-9_ ]{1,60})$",
    // jest
    r"^\s*● ([A-Za-z0-9_ ]{1,60}(?: › [A-Za-z0-9_ ]{1,60}){0,3})$",
];

static NAMES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    // They are constants: the tests compile every one of them.
    LINES
        .iter()
        .filter_map(|line| Regex::new(line).ok())
        .collect()
});

/// The names, each once, in order.
pub(crate) fn failing(output: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for line in output.lines() {
        let found = NAMES.iter().find_map(|regex| regex.captures(line));
        let Some(name) = found.and_then(|found| Some(found.get(1)?.as_str().trim().to_owned()))
        else {
            continue;
        };
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
        if names.len() == MOST {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_nothing_else() {
        assert_eq!(NAMES.len(), LINES.len());
        let output = "test a::b_c ... FAILED\n\
                      FAILED tests/test_x.py::Case::test_y[secret value] - AssertionError: key\n\
                      --- FAIL: TestAdd (0.00s)\n\
                      FAIL: test_add (test_calc.Case)\n\
                      not ok 3 - adds numbers\n\
                      -----BEGIN RSA PRIVATE KEY-----\nMIIEow\n\
                      not ok 4 - b64==/+x\n\
                      test a::b_c ... FAILED\n";
        assert_eq!(
            failing(output),
            [
                "a::b_c",
                "tests/test_x.py::Case::test_y",
                "TestAdd",
                "test_add",
                "adds numbers"
            ]
        );
    }
}
