use super::*;
use crate::Ranked;

const BUDGET: ContextBudget = ContextBudget {
    bytes: 80 * 1024,
    max_file_bytes: None,
};

fn lines(count: usize) -> String {
    (0..count).map(|line| format!("x = {line:>35}\n")).collect()
}

fn sizes(files: &[&str], budget: ContextBudget) -> Vec<Option<usize>> {
    let pairs: Vec<(&str, &str)> = files.iter().map(|text| ("a.py", *text)).collect();
    let spent = spend(&pairs, "x", budget);
    let size = |excerpt: Option<crate::Excerpt>| excerpt.map(|one| one.text.len());
    spent.into_iter().map(size).collect()
}

#[test]
fn a_short_file_is_shown_whole_and_long_ones_share_the_rest() {
    let (short, long, longer) = (lines(300), lines(1500), lines(9000));
    let shown = sizes(&[&longer, &short, &long], BUDGET);
    assert_eq!(shown[1], Some(short.len()));
    let (longer, long) = (shown[0].unwrap(), shown[2].unwrap());
    assert!(longer + long + short.len() <= BUDGET.bytes);
    assert!(longer.abs_diff(long) < 3000, "{longer} {long}");
    assert!(longer + long + short.len() > BUDGET.bytes * 9 / 10);
}

#[test]
fn one_file_has_the_whole_budget_and_what_is_not_needed_is_not_spent() {
    let (long, longer) = (lines(1800), lines(9000));
    assert_eq!(sizes(&[&long], BUDGET), [Some(long.len())]);
    let cut = sizes(&[&longer], BUDGET)[0].unwrap();
    assert!(
        (BUDGET.bytes * 9 / 10..=BUDGET.bytes).contains(&cut),
        "{cut}"
    );
}

#[test]
fn the_last_files_are_left_out_where_each_would_have_too_little() {
    let long = lines(1000);
    let files = vec![long.as_str(); 20];
    let shown = sizes(&files, BUDGET);
    let count = shown.iter().flatten().count();
    assert_eq!(count, 13);
    assert!(shown[..count].iter().all(Option::is_some));
    assert!(shown.iter().flatten().sum::<usize>() <= BUDGET.bytes);
    let little = ContextBudget {
        bytes: 100,
        ..BUDGET
    };
    let shown = sizes(&files[..2], little);
    assert!(shown[0].unwrap() <= 100 && shown[1].is_none());
    assert_eq!(sizes(&[], BUDGET), []);
}

#[test]
fn a_limit_for_each_file_holds_beside_the_budget() {
    let limited = ContextBudget {
        max_file_bytes: Some(1000),
        ..BUDGET
    };
    let shown = sizes(&[&lines(100), &lines(9000)], limited);
    assert!(shown.iter().all(|size| size.unwrap() <= 1000), "{shown:?}");
}

#[test]
fn ranked_files_are_shown_up_to_a_sharp_drop() {
    let count = |scores: &[f32]| {
        let ranked: Vec<Ranked> = scores
            .iter()
            .map(|score| Ranked {
                path: String::new(),
                score: *score,
                reasons: Vec::new(),
            })
            .collect();
        worth_showing(&ranked)
    };
    assert_eq!(count(&[]), 0);
    assert_eq!(count(&[2.0, 0.5, 0.5]), 1);
    assert_eq!(count(&[2.0, 1.9, 1.0, 1.0]), 2);
    assert_eq!(count(&[1.0; 30]), 8);
}

fn paths(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_tests_of_a_file_are_found_by_name_and_place() {
    for (chosen, expected, all) in [
        (
            "src/login.ts",
            "src/login.test.ts",
            &["src/logout.test.ts", "tests/other.ts"][..],
        ),
        (
            "pkg/query.go",
            "pkg/query_test.go",
            &["other/query_test.go"],
        ),
        (
            "a/b/parser.py",
            "tests/b/test_parser.py",
            &["tests/c/test_parser.py"],
        ),
        (
            "src/main/java/a/Login.java",
            "src/test/java/a/LoginTest.java",
            &["src/test/java/b/LoginTest.java"],
        ),
        (
            "lib/a/url.rb",
            "spec/a/url_spec.rb",
            &["spec/a/uri_spec.rb"],
        ),
        ("src/router/index.js", "test/router.js", &["test/route.js"]),
        (
            "django/db/queries.py",
            "tests/queries/tests.py",
            &["tests/query/tests.py"],
        ),
    ] {
        let known = paths(&[&[chosen, "src/test.data", expected], all].concat());
        let found = Companions::find(&known, &[chosen], &[]);
        assert_eq!(found.tests, [expected], "{chosen}");
    }
}

#[test]
fn without_a_test_of_that_name_the_best_ranked_one_is_taken() {
    let known = paths(&["a.py", "tests/x.py", "tests/y.py"]);
    let found = Companions::find(&known, &["a.py"], &paths(&["b.py", "tests/y.py"]));
    assert_eq!(found.tests, ["tests/y.py"]);
    let found = Companions::find(&known, &["tests/x.py"], &paths(&["tests/y.py"]));
    assert_eq!(found.tests, [""; 0]);
}

#[test]
fn instructions_and_the_changelog_are_found_nearest_first() {
    let known = paths(&[
        "AGENTS.md",
        "CHANGES.rst",
        "CLAUDE.md",
        "CONTRIBUTING.md",
        "b/AGENTS.md",
        "b/c/x.py",
        "b/HISTORY.md",
    ]);
    let found = Companions::find(&known, &["b/c/x.py"], &[]);
    assert_eq!(found.rules, ["b/AGENTS.md", "AGENTS.md", "CONTRIBUTING.md"]);
    assert_eq!(found.changelog.as_deref(), Some("CHANGES.rst"));
    let found = Companions::find(&known, &["CHANGES.rst", "CONTRIBUTING.md"], &[]);
    assert_eq!(found.rules, ["AGENTS.md", "CLAUDE.md"]);
    assert_eq!(found.changelog, None);
}

#[test]
fn of_tests_the_head_the_nearest_and_the_tail_are_shown() {
    let mut text = String::from("import app\n\n");
    for number in 0..200 {
        let what = if number == 90 {
            "expire(session)"
        } else {
            "work(1)"
        };
        text.push_str(&format!(
            "def test_{number}():\n    app.{what}\n    assert True\n\n"
        ));
    }
    let excerpt = companion_excerpt(
        ContextKind::Test,
        ("test_a.py", &text),
        "sessions expire",
        BUDGET,
    );
    assert!(
        excerpt.partial && excerpt.text.len() < 3000,
        "{}",
        excerpt.text.len()
    );
    for part in [
        "import app",
        "def test_90():\n    app.expire(session)\n    assert True",
        "def test_199",
    ] {
        assert!(excerpt.text.contains(part), "{part} in {}", excerpt.text);
    }
    assert!(!excerpt.text.contains("def test_150"));
}

#[test]
fn the_tree_has_two_levels_and_what_is_near_the_files() {
    let known = paths(&[
        "README.md",
        "a/b/c/d.rs",
        "a/b/e.rs",
        "a/x.rs",
        "f/g.rs",
        "f/h.rs",
    ]);
    let expected = "\
a/b/: c/ e.rs
./: README.md
a/ (3)
  b/ (2)
f/ (2)
";
    assert_eq!(tree(&known, &["a/b/e.rs", "README.md"]), expected);
    let many: Vec<String> = (0..5000)
        .map(|n| format!("dir_{n}/sub_{n}/file.rs"))
        .collect();
    assert!(tree(&many, &["dir_7/sub_7/file.rs"]).len() <= 4096);
}

#[test]
fn the_text_has_surroundings_files_and_what_is_left_out() {
    let file = |path, text, kind| ShownFile {
        path,
        text,
        kind,
        is_partial: false,
        is_redacted: false,
    };
    let files = [
        file("a.rs", "a\n", ContextKind::Source),
        file("t.rs", "t", ContextKind::Test),
        file("AGENTS.md", "be kind\n", ContextKind::Rules),
    ];
    let text = ContextText {
        instruction: " do it ",
        files: &files,
        tree: "src/ (2)\n",
        verify: Some("make test"),
        left_out: &["b.rs"],
    };
    let expected = "\
<instruction>
do it
</instruction>

<tree>
src/ (2)
</tree>

<verify>make test</verify>

<file path=\"AGENTS.md\" kind=\"project instructions\">
be kind
</file>

<file path=\"a.rs\">
a
</file>

<file path=\"t.rs\" kind=\"tests\">
t
</file>

<not_shown>
b.rs
</not_shown>
";
    assert_eq!(text.to_string(), expected);
}
