//! Edit on real files.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
};

use serde_json::{Value, json};

use super::*;
use crate::{read::Read, testing::Bench};

fn edit(old: &str, new: &str) -> Value {
    json!({"file_path": "a.txt", "old_string": old, "new_string": new})
}

async fn read_bench(content: impl AsRef<[u8]>) -> Bench {
    let bench = Bench::new();
    bench.write("a.txt", content);
    bench.run(&Read, json!({"file_path": "a.txt"})).await;
    bench
}

#[tokio::test]
async fn an_edit_shows_the_lines_as_they_are_now() {
    let text: String = (1..=12).map(|n| format!("line {n}\n")).collect();
    let bench = read_bench(&text).await;
    assert_eq!(
        bench
            .run(&Edit, edit("line 7\n", "seven\nand more\n"))
            .await,
        "Edited a.txt:\n 4\tline 4\n 5\tline 5\n 6\tline 6\n 7\tseven\n 8\tand more\n 9\tline 8\n10\tline 9\n11\tline 10"
    );
    assert_eq!(
        bench.text("a.txt"),
        text.replace("line 7\n", "seven\nand more\n")
    );
    // Its own write is no change from outside.
    assert_eq!(
        bench.run(&Edit, edit("seven", "7")).await.lines().next(),
        Some("Edited a.txt:")
    );
}

#[tokio::test]
async fn bytes_and_mode_of_the_rest_stay() {
    let bench = read_bench("\u{feff}a\r\nb\r\nc").await;
    let mode = fs::Permissions::from_mode(0o750);
    fs::set_permissions(bench.path("a.txt"), mode).unwrap();
    bench.run(&Edit, edit("b\nc", "x\ny\nz")).await;
    assert_eq!(bench.text("a.txt"), "\u{feff}a\r\nx\r\ny\r\nz");
    assert_eq!(
        fs::metadata(bench.path("a.txt")).unwrap().mode() & 0o777,
        0o750
    );
    assert_eq!(bench.names("."), ["a.txt"]);
}

#[tokio::test]
async fn a_loose_match_is_told() {
    let bench = read_bench("if x {\n\tgo();\n}\n").await;
    let output = bench
        .run(&Edit, edit("    go();\n}", "    stop();\n}"))
        .await;
    assert_eq!(
        output,
        "Edited a.txt (found with tabs and spaces of the indentation equivalent):\n1\tif x {\n2\t\tstop();\n3\t}"
    );
    assert_eq!(bench.text("a.txt"), "if x {\n\tstop();\n}\n");
}

#[tokio::test]
async fn all_occurrences_are_replaced_when_asked() {
    let bench = read_bench("a b a\n").await;
    let input =
        json!({"file_path": "a.txt", "old_string": "a", "new_string": "c", "replace_all": true});
    let output = bench.run(&Edit, input).await;
    assert_eq!(output, "Edited a.txt in 2 places, the first:\n1\tc b c");
}

#[tokio::test]
async fn refusals_leave_the_file_alone_and_say_why() {
    let bench = read_bench("alpha beta\nbeta\n").await;
    let fail = |input| bench.fail(&Edit, input);
    assert_eq!(
        fail(edit("beta", "x")).await,
        "a.txt is not edited: the text to replace is in 2 places (lines 1, 2); add neighbouring lines that make it unique"
    );
    assert_eq!(
        fail(edit("alpha bta", "x")).await,
        "a.txt is not edited: the text to replace is not in the file. Line 1 is the first to differ: the text has `alpha bta` there. Nearest text:\n     1\talpha beta"
    );
    assert_eq!(
        fail(edit("beta", "beta")).await,
        "a.txt is not edited: the new text is the same as the old text"
    );
    assert!(fail(edit("", "x")).await.contains("is empty"));
    assert!(bench.inspect(&Edit, &edit("beta", "beta")).is_err());
    bench.write("a.txt", "alpha beta\nchanged\n");
    assert_eq!(
        fail(edit("alpha", "x")).await,
        "a.txt is not edited: it has changed since it was read; read it again"
    );
    assert_eq!(bench.text("a.txt"), "alpha beta\nchanged\n");
}

#[tokio::test]
async fn an_unread_a_missing_and_a_binary_file_are_refused() {
    let bench = Bench::new();
    bench.write("a.txt", "a\n");
    assert_eq!(
        bench.fail(&Edit, edit("x", "b")).await,
        "a.txt is not edited: it has not been read yet, and the text to replace is not in it \
         exactly once; read it first"
    );
    let missing = json!({"file_path": "b.txt", "old_string": "a", "new_string": "b"});
    assert_eq!(
        bench.fail(&Edit, missing).await,
        "b.txt does not exist. Did you mean a.txt?"
    );
    let bench = read_bench(b"caf\xe9\n").await;
    assert_eq!(
        bench.fail(&Edit, edit("caf", "x")).await,
        "a.txt is not edited: it is not UTF-8 text; use a command"
    );
}

#[tokio::test]
async fn an_empty_old_string_makes_a_file_or_fills_an_empty_one() {
    let bench = Bench::new();
    let new = json!({"file_path": "new/b.txt", "old_string": "", "new_string": "a\nb\n"});
    assert_eq!(bench.run(&Edit, new).await, "Created new/b.txt (2 lines)");
    assert_eq!(bench.text("new/b.txt"), "a\nb\n");
    bench.write("a.txt", "");
    assert_eq!(
        bench.run(&Edit, edit("", "x\n")).await,
        "Edited a.txt:\n1\tx"
    );
    assert_eq!(bench.text("a.txt"), "x\n");
}

#[tokio::test]
async fn a_mark_is_not_written_in_place_of_a_secret() {
    const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let bench = read_bench(format!("key = '{TOKEN}'\nport = 1\n")).await;
    let both = edit(
        "key = '[redacted]'\nport = 1",
        "key = '[redacted]'\nport = 2",
    );
    bench.run(&Edit, both).await;
    let kept = format!("key = '{TOKEN}'\nport = 2\n");
    assert_eq!(bench.text("a.txt"), kept);
    let error = bench
        .fail(&Edit, edit("port = 2", "again = '[redacted]'"))
        .await;
    assert!(error.contains("a secret that was not shown"), "{error}");
    let whole = json!({"file_path": "a.txt", "content": "key = '[redacted]'\n"});
    let error = bench.fail(&crate::write::Write, whole).await;
    assert!(error.contains("would take its place; use Edit"), "{error}");
    assert_eq!(bench.text("a.txt"), kept);
    bench.run(&Edit, edit("key = '[redacted]'\n", "")).await;
    assert_eq!(bench.text("a.txt"), "port = 2\n");
}

#[tokio::test]
async fn several_edits_are_made_in_order_or_not_at_all() {
    let several = |edits: Value| json!({"file_path": "a.txt", "edits": edits});
    let bench = read_bench("one\ntwo\nthree\ntwo\n").await;
    let edits = json!([
        {"old_string": "one", "new_string": "two"},
        {"old_string": "two", "new_string": "2", "replace_all": true},
        {"old_string": "2\nthree", "new_string": "2\n3"},
    ]);
    assert_eq!(
        bench.run(&Edit, several(edits)).await,
        "Edited a.txt:\nedit 1: line 1\nedit 2: line 1 and 2 more places\nedit 3: line 2"
    );
    assert_eq!(bench.text("a.txt"), "2\n2\n3\n2\n");

    let bench = read_bench("one\ntwo\ntwo\n").await;
    let half = json!([
        {"old_string": "one", "new_string": "1"},
        {"old_string": "two", "new_string": "2"},
    ]);
    let refused = bench.fail(&Edit, several(half)).await;
    assert!(
        refused.contains("edit 2 of 2: ") && refused.contains("none of them was made"),
        "{refused}"
    );
    assert_eq!(bench.text("a.txt"), "one\ntwo\ntwo\n");
    for (edits, expected) in [
        (json!([]), "`edits` is empty"),
        (json!([{"old_string": "a", "new_string": "a"}]), "edit 1: "),
        (
            json!([{"old_string": "a"}]),
            "`edits[0].new_string` is missing",
        ),
    ] {
        let refused = bench.fail(&Edit, several(edits)).await;
        assert!(refused.contains(expected), "{refused}");
    }
}

#[tokio::test]
async fn several_edits_can_begin_a_new_file_and_are_exact_in_one_that_was_not_read() {
    let bench = Bench::new();
    let new = json!({"file_path": "new.txt", "edits": [
        {"old_string": "", "new_string": "a b\n"},
        {"old_string": "b", "new_string": "c"},
    ]});
    assert_eq!(bench.run(&Edit, new).await, "Created new.txt (1 lines)");
    assert_eq!(bench.text("new.txt"), "a c\n");
    bench.write("old.txt", "  a\n  b\nc\n");
    let unread = |first: &str| {
        json!({"file_path": "old.txt", "edits": [
            {"old_string": first, "new_string": "x\ny"},
            {"old_string": "c", "new_string": "d"},
        ]})
    };
    bench.fail(&Edit, unread("a\nb")).await;
    assert_eq!(bench.text("old.txt"), "  a\n  b\nc\n");
    bench.run(&Edit, unread("  a\n  b")).await;
    assert_eq!(bench.text("old.txt"), "x\ny\nd\n");
}

#[tokio::test]
async fn a_file_that_was_not_read_is_edited_where_the_text_is_exact_and_unique() {
    const TEXT: &str = "one two\n  three\n  four\ntwo\nsecret\n";
    let bench = Bench::new();
    bench.write("a.txt", TEXT);
    for (old, new) in [
        ("two", "2"),
        ("three\nfour", "3\n4"),
        ("nothing like it", "x"),
    ] {
        let refused = bench.fail(&Edit, edit(old, new)).await;
        assert!(refused.contains("has not been read yet"), "{refused}");
        // What nobody has read is not shown by a guess.
        assert!(
            !refused.contains("secret") && !refused.contains("one"),
            "{refused}"
        );
    }
    let all =
        json!({"file_path": "a.txt", "old_string": "two", "new_string": "2", "replace_all": true});
    bench.fail(&Edit, all).await;
    assert_eq!(bench.text("a.txt"), TEXT);
    bench.run(&Edit, edit("one two", "1 2")).await;
    assert_eq!(bench.text("a.txt"), TEXT.replace("one two", "1 2"));
    // It is still not a file that was read.
    let whole = json!({"file_path": "a.txt", "content": "x\n"});
    let refused = bench.fail(&crate::write::Write, whole).await;
    assert!(refused.contains("has not been read yet"), "{refused}");
    bench.fail(&Edit, edit("three\nfour", "3\n4")).await;
}

#[tokio::test]
async fn a_file_that_was_read_and_changed_is_not_edited_even_where_the_text_is_exact() {
    let bench = read_bench("one\ntwo\n").await;
    bench.write("a.txt", "one\nthree\n");
    let refused = bench.fail(&Edit, edit("one", "1")).await;
    assert!(
        refused.contains("has changed since it was read"),
        "{refused}"
    );
}

#[tokio::test]
async fn lines_that_grep_showed_can_be_edited_loosely_until_they_change() {
    const TEXT: &str = "fn a() {\n    one();\n    two();\n}\n\n    three();\n";
    let shown = |bench: Bench| async move {
        let grep = json!({"pattern": "one", "path": "a.txt", "output_mode": "content", "-A": 1});
        bench.run(&crate::grep::Grep, grep).await;
        bench
    };
    let bench = Bench::new();
    bench.write("a.txt", TEXT);
    bench
        .fail(&Edit, edit("one();\ntwo();", "1();\n2();"))
        .await;
    let bench = shown(bench).await;
    bench.fail(&Edit, edit("\tthree();", "\t3();")).await;
    bench.run(&Edit, edit("one();\ntwo();", "1();\n2();")).await;
    assert_eq!(
        bench.text("a.txt"),
        TEXT.replace("one", "1").replace("two", "2")
    );
    let whole = json!({"file_path": "a.txt", "content": "x\n"});
    bench.fail(&crate::write::Write, whole).await;

    let bench = Bench::new();
    bench.write("a.txt", TEXT);
    let bench = shown(bench).await;
    let changed = TEXT.replace("two();", "two(2);");
    bench.write("a.txt", &changed);
    bench.fail(&Edit, edit("one();\ntwo(2);", "1();")).await;
    assert_eq!(bench.text("a.txt"), changed);
}

#[tokio::test]
async fn a_file_keeps_its_line_ends_whatever_the_new_text_has() {
    let bench = read_bench("a\nb\nc\n").await;
    bench.run(&Edit, edit("b\n", "x\r\ny\r\n")).await;
    assert_eq!(bench.text("a.txt"), "a\nx\ny\nc\n");
    let several = json!({"file_path": "a.txt", "edits": [
        {"old_string": "x\r\ny", "new_string": "1\r\n2"},
        {"old_string": "a", "new_string": "0\r\na"},
    ]});
    bench.run(&Edit, several).await;
    assert_eq!(bench.text("a.txt"), "0\na\n1\n2\nc\n");
    let same = bench.fail(&Edit, edit("0\na", "0\r\na")).await;
    assert!(same.contains("same as the old text"), "{same}");
}

#[tokio::test]
async fn a_file_is_written_with_the_accepted_hunks_alone() {
    let text: String = (1..=12).map(|n| format!("line {n}\n")).collect();
    let edits = json!({"file_path": "a.txt", "edits": [
        {"old_string": "line 2\n", "new_string": "two\n"},
        {"old_string": "line 6\n", "new_string": ""},
        {"old_string": "line 11\n", "new_string": "eleven\n"},
    ]});
    let bench = read_bench(&text).await;
    let proposal = bench.propose(&Edit, &edits).await.unwrap();
    assert_eq!(proposal.hunks().len(), 3);
    assert_eq!(bench.text("a.txt"), text);
    let output = bench.run_without(&Edit, edits, &proposal, &[2]).await;
    assert_eq!(
        output,
        ToolOutput::text("Updated a.txt (12 lines, before 12)")
    );
    let wanted = text.replace("line 2\n", "two\n");
    let wanted = wanted.replace("line 11\n", "eleven\n");
    assert_eq!(bench.text("a.txt"), wanted);
    // The agent may go on with it: the write was its own.
    bench.run(&Edit, edit("line 6", "six")).await;
}

#[tokio::test]
async fn hunks_that_were_chosen_on_another_text_are_not_written() {
    let text: String = (1..=12).map(|n| format!("line {n}\n")).collect();
    let all = json!({"file_path": "a.txt", "old_string": "line 1", "new_string": "L1",
        "replace_all": true});
    let bench = read_bench(text.replace("line 1\n", "line 1\n\n\n\n")).await;
    let proposal = bench.propose(&Edit, &all).await.unwrap();
    let changed = format!("{}and more\n", bench.text("a.txt"));
    bench.write("a.txt", &changed);
    let output = bench.run_without(&Edit, all.clone(), &proposal, &[1]).await;
    assert_eq!(
        output,
        ToolOutput::error(
            "a.txt is not written: it has changed since its hunks were shown to the user; read it \
             again"
        )
    );
    assert_eq!(bench.text("a.txt"), changed);
    fs::remove_file(bench.path("a.txt")).unwrap();
    let output = bench.run_without(&Edit, all, &proposal, &[1]).await;
    assert!(output.is_error);
    assert!(bench.names(".").is_empty());
}

#[tokio::test]
async fn an_edit_that_cannot_be_made_has_no_hunks() {
    let bench = Bench::new();
    bench.write("a.txt", "one\n\ntwo\nthree\nfour\n");
    let input = json!({"file_path": "a.txt", "edits": [
        {"old_string": "one", "new_string": "1"}, {"old_string": "fuor", "new_string": "4"},
    ]});
    assert_eq!(bench.propose(&Edit, &input).await, None);
    let written = json!({"file_path": "a.txt", "content": "1\n\ntwo\nthree\n4\n"});
    assert_eq!(bench.propose(&crate::write::Write, &written).await, None);
    bench.run(&Read, json!({"file_path": "a.txt"})).await;
    let proposal = bench.propose(&crate::write::Write, &written).await.unwrap();
    let output = bench
        .run_without(&crate::write::Write, written, &proposal, &[1])
        .await;
    assert!(!output.is_error);
    assert_eq!(bench.text("a.txt"), "one\n\ntwo\nthree\n4\n");
}
