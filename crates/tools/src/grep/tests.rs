//! Grep on real files.

use std::{
    fs::File,
    time::{Duration, SystemTime},
};

use rstest::rstest;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::testing::Bench;

/// Files, each older than the one before.
fn bench(files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new();
    for (age, (name, content)) in files.iter().enumerate() {
        let path = bench.write(name, content);
        let file = File::options().write(true).open(path).unwrap();
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(9_000 - age as u64);
        file.set_modified(moment).unwrap();
    }
    bench
}

fn tree() -> Bench {
    bench(&[
        ("z.rs", "fn main() {\n    Hello\n}\n"),
        (
            "src/a.rs",
            "one\ntwo\nhello\nfour\nfive\nsix\nhello again\r\n",
        ),
        ("src/b.py", "hello = 1\n"),
        ("ignored.log", "hello\n"),
        (".gitignore", "*.log\n"),
        (".git/config", "hello\n"),
        (".github/ci.yml", "run: hello\n"),
        ("data.bin", "hello\0hello\n"),
    ])
}

#[rstest]
#[case::files_newest_first(json!({}), "src/a.rs\nsrc/b.py\n.github/ci.yml")]
#[case::any_case(json!({"-i": true}), "z.rs\nsrc/a.rs\nsrc/b.py\n.github/ci.yml")]
#[case::below_a_path(json!({"path": "src"}), "src/a.rs\nsrc/b.py")]
#[case::by_glob(json!({"glob": "*.py"}), "src/b.py")]
#[case::by_a_glob_with_a_path(json!({"glob": "src/**/*.{rs,ts}"}), "src/a.rs")]
#[case::not_by_glob(json!({"glob": "!src"}), ".github/ci.yml")]
#[case::by_type(json!({"type": "rust"}), "src/a.rs")]
#[case::the_first(json!({"head_limit": 1}), "src/a.rs\n(the first 1 of 3 files; narrow the search)")]
#[case::counts(json!({"output_mode": "count"}), ".github/ci.yml:1\nsrc/a.rs:2\nsrc/b.py:1\n(4 matches in 3 files)")]
#[case::lines(json!({"output_mode": "content"}), ".github/ci.yml:1:run: hello\nsrc/a.rs:3:hello\nsrc/a.rs:7:hello again\nsrc/b.py:1:hello = 1")]
#[case::lines_without_numbers(json!({"output_mode": "content", "-n": false, "type": "py"}), "src/b.py:hello = 1")]
#[case::lines_of_one_file(json!({"output_mode": "content", "path": "src/a.rs"}), "3:hello\n7:hello again")]
#[case::with_context(json!({"output_mode": "content", "path": "src/a.rs", "-C": 1}), "2-two\n3:hello\n4-four\n--\n6-six\n7:hello again")]
#[case::before_and_after(json!({"output_mode": "content", "glob": "*.rs", "-B": 1, "-A": 0}), "src/a.rs-2-two\nsrc/a.rs:3:hello\n--\nsrc/a.rs-6-six\nsrc/a.rs:7:hello again")]
#[case::first_lines(json!({"output_mode": "content", "head_limit": 2}), ".github/ci.yml:1:run: hello\nsrc/a.rs:3:hello\n(the first 2 lines; there are more matches; narrow the search)")]
#[case::just_enough(json!({"output_mode": "content", "path": "src/a.rs", "head_limit": 2}), "3:hello\n7:hello again")]
#[case::at_a_line_end_with_crlf(json!({"pattern": "again$", "output_mode": "content"}), "src/a.rs:7:hello again")]
#[case::nothing(json!({"pattern": "absent"}), "No matches found")]
#[case::across_lines(json!({"pattern": "two.*four", "multiline": true, "output_mode": "content"}), "src/a.rs:2:two\nsrc/a.rs:3:hello\nsrc/a.rs:4:four")]
#[tokio::test]
async fn a_search_gives(#[case] mut input: Value, #[case] expected: &str) {
    let fields = input.as_object_mut().unwrap();
    fields.entry("pattern").or_insert("hello".into());
    assert_eq!(tree().run(&Grep, input).await, expected);
}

#[rstest]
#[case::a_brace(json!({"pattern": "a{"}), "for a literal brace write \\{")]
#[case::a_parenthesis(json!({"pattern": "main("}), "for a literal parenthesis write \\( or \\)")]
#[case::a_bracket(json!({"pattern": "a["}), "for a literal bracket write \\[")]
#[case::look_around(json!({"pattern": "(?=a)"}), "look-around and backreferences do not exist here")]
#[case::a_line_break(json!({"pattern": "a\nb"}), "set multiline for a pattern with line breaks")]
#[case::an_unknown_type(json!({"pattern": "a", "type": "rst2"}), "`type`: there is no type `rst2`; did you mean rst")]
#[case::a_strange_type(json!({"pattern": "a", "type": "qqqqqqqq"}), "`type`: there is no type `qqqqqqqq`; use `glob` instead")]
#[case::a_bad_glob(json!({"pattern": "a", "glob": "a["}), "`glob`: ")]
#[case::a_missing_path(json!({"pattern": "a", "path": "scr"}), "scr does not exist. Did you mean src?")]
#[case::an_unknown_mode(json!({"pattern": "a", "output_mode": "lines"}), "`output_mode` must be one of \"files_with_matches\", \"content\", \"count\"")]
#[tokio::test]
async fn a_search_is_refused(#[case] input: Value, #[case] expected: &str) {
    let refusal = tree().fail(&Grep, input).await;
    assert!(refusal.contains(expected), "{refusal}");
}

#[tokio::test]
async fn a_long_report_and_long_lines_are_cut_and_it_says_so() {
    let line = format!("hello {}\n", "x".repeat(600));
    let long = line.repeat(100);
    let bench = bench(&[("a.txt", &long)]);
    let shown = bench
        .run(&Grep, json!({"pattern": "hello", "output_mode": "content"}))
        .await;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[0],
        format!("a.txt:1:hello {}… [line cut]", "x".repeat(494))
    );
    assert!(shown.len() < 25_200, "{}", shown.len());
    let count = lines.len() - 1;
    assert_eq!(
        lines[count],
        format!("(the first {count} lines; there are more matches; narrow the search)")
    );
}

#[tokio::test]
async fn the_same_search_gives_the_same_order() {
    let files: Vec<(String, String)> = (0..300)
        .map(|n| (format!("d{}/f{n:03}.txt", n % 7), "hit\n".to_owned()))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    let bench = bench(&files);
    let input = json!({"pattern": "hit", "output_mode": "content", "head_limit": 100});
    let first = bench.run(&Grep, input.clone()).await;
    for _ in 0..5 {
        assert_eq!(bench.run(&Grep, input.clone()).await, first);
    }
    assert!(
        first.starts_with("d0/f000.txt:1:hit\nd0/f007.txt:1:hit\n"),
        "{first}"
    );
}

#[tokio::test]
async fn a_cancelled_search_stops() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let output = tree()
        .call_with(&Grep, json!({"pattern": "hello"}), cancel)
        .await;
    assert_eq!(output, ToolOutput::error("interrupted"));
}

#[test]
fn the_intent_names_the_pattern_and_reads_below_the_path() {
    let bench = tree();
    assert_eq!(
        bench
            .inspect(&Grep, &json!({"pattern": "x", "path": "src"}))
            .unwrap(),
        Intent {
            summary: "x in src".into(),
            access: vec![Access::Read(bench.path("src"))]
        }
    );
}
