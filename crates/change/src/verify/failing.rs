//! The names of tests that failed, as they are published.

use super::failures::{FailureKind, TestFailure};

/// So many are named.
const MOST: usize = 20;
/// In bytes, for one name. A word in it may have 100.
const LONGEST: usize = 160;

/// The names, each once, in order. Only what can be part of a name is taken: what a test says about
/// its failure may be anything, and parameters too.
pub(crate) fn failing<'a>(failures: impl IntoIterator<Item = &'a TestFailure>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in failures.into_iter().filter_map(public_name) {
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() == MOST {
            break;
        }
    }
    names
}

/// A name without its parameters, if it is made of nothing but words.
fn public_name(failure: &TestFailure) -> Option<String> {
    if failure.kind != FailureKind::Test {
        return None;
    }
    let name = failure
        .name
        .split(['[', '('])
        .next()
        .unwrap_or_default()
        .trim();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-: ›,".contains(c);
    let is_short = name.len() <= LONGEST && name.split(' ').all(|word| word.len() <= 100);
    (!name.is_empty() && is_short && name.chars().all(is_plain)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{super::failures::read_output, *};

    #[test]
    fn names_are_found_and_nothing_else() {
        let output = "test a::b_c ... FAILED\n\
                      FAILED tests/test_x.py::Case::test_y[secret value] - AssertionError: key\n\
                      --- FAIL: TestAdd (0.00s)\n\
                      FAIL: test_add (test_calc.Case)\n\
                      not ok 3 - adds numbers\n\
                      -----BEGIN RSA PRIVATE KEY-----\nMIIEow\n\
                      not ok 4 - b64==/+x\n\
                      test a::b_c ... FAILED\n";
        let read = read_output(output.as_bytes(), &[]).unwrap();
        assert_eq!(
            failing(&read.failures),
            [
                "a::b_c",
                "tests/test_x.py::Case::test_y",
                "test_add",
                "TestAdd",
                "adds numbers"
            ]
        );
    }
}
