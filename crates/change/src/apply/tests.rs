//! Answers applied to trees in memory.

use codespar_tools::matching::Rung;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::answer::{AnswerContext, AnswerError, ParsedAnswer};

fn parse(text: &str) -> Result<ParsedAnswer, AnswerError> {
    crate::answer::parse(text, &AnswerContext::default())
}

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

fn file(content: impl Into<Vec<u8>>) -> SourceFile {
    SourceFile {
        content: content.into(),
        mode: FileMode::Regular,
        partial: false,
    }
}

fn tree(files: &[(&str, &str)]) -> MapSource {
    let mut source = MapSource::new();
    for (name, text) in files {
        source.insert(path(name), file(*text));
    }
    source
}

fn rules() -> Rules {
    Rules::new(Rules::default_patterns(), ProtectedFiles::Refused).unwrap()
}

fn applied(answer: &str, source: &MapSource) -> Applied {
    apply(&parse(answer).unwrap(), source, &rules()).unwrap()
}

fn refused(answer: &str, source: &MapSource) -> Vec<(String, usize, String)> {
    let refusal = apply(&parse(answer).unwrap(), source, &rules()).unwrap_err();
    let blocks = refusal.refused();
    blocks
        .map(|block| {
            (
                block.path.clone(),
                block.block,
                block.reason.clone().unwrap(),
            )
        })
        .collect()
}

fn modified(at: &str, content: &str) -> FileChange {
    FileChange::Modified {
        path: path(at),
        content: Bytes(content.into()),
        mode: FileMode::Regular,
    }
}

fn added(at: &str, content: &str) -> FileChange {
    FileChange::Added {
        path: path(at),
        content: Bytes(content.into()),
        mode: FileMode::Regular,
    }
}

fn moved(from: &str, to: &str, content: &str) -> FileChange {
    FileChange::Moved {
        from: path(from),
        to: path(to),
        content: Bytes(content.into()),
        mode: FileMode::Regular,
    }
}

fn pair(at: &str, search: &str, replace: &str) -> String {
    format!("===FILE: {at}===\n<<<SEARCH\n{search}\n>>>REPLACE\n{replace}\n===END===\n")
}

fn whole(at: &str, content: &str) -> String {
    format!("===FILE: {at}===\n{content}===END===\n")
}

#[test]
fn a_change_of_many_files_is_one_change_set_with_a_report_for_each_block() {
    let source = tree(&[("a", "1\n2\n3\n"), ("b", "x\n"), ("c", "y\n")]);
    let answer = "===FILE: a===\n<<<SEARCH\n1\n>>>REPLACE\none\n<<<SEARCH\n2 \n3\n>>>REPLACE\n2\n===END===\n\
                  ===FILE: d/e===\nnew\n===END===\n===DELETE: b===\n===MOVE: c -> f===\n";
    let applied = applied(answer, &source);
    assert_eq!(
        applied.changes,
        ChangeSet(vec![
            modified("a", "one\n2\n"),
            added("d/e", "new\n"),
            FileChange::Deleted { path: path("b") },
            moved("c", "f", "y\n"),
        ])
    );
    assert_eq!(
        serde_json::to_value(&applied.blocks).unwrap(),
        json!([
            {"path": "a", "block": 1, "outcome": "applied", "rung": "exact", "lines": [1, 1]},
            {"path": "a", "block": 2, "outcome": "applied", "rung": "trailing_space", "lines": [2, 3]},
            {"path": "d/e", "block": 1, "outcome": "applied"},
            {"path": "b", "block": 1, "outcome": "applied"},
            {"path": "c", "block": 1, "outcome": "applied"},
        ])
    );
}

#[rstest]
#[case::crlf("a\r\nb\r\nc\r\n", "a\nx\nc\n", "a\r\nx\r\nc\r\n")]
#[case::mixed("a\r\nb\nc\r\nd\n", "a\nb\nx\nd\n", "a\r\nb\nx\r\nd\n")]
#[case::bom("\u{feff}a\n", "b\n", "\u{feff}b\n")]
#[case::no_final_newline("a\nb", "a\nc\n", "a\nc")]
#[case::crlf_without_a_final_one("a\r\nb", "a\nc\nd\n", "a\r\nc\r\nd")]
#[case::an_empty_file("", "a\nb\n", "a\nb\n")]
#[case::only_a_bom("\u{feff}", "a\n", "\u{feff}a\n")]
#[case::one_blank_line("\n", "a\n", "a\n")]
#[case::carriage_returns("a\r\r\nb\n", "x\nb\n", "x\r\nb\n")]
#[case::blank_lines_at_the_end("a\n\n\n", "a\nb\n\n\n", "a\nb\n\n\n")]
fn a_file_written_whole_keeps_its_conventions(
    #[case] before: &str,
    #[case] content: &str,
    #[case] after: &str,
) {
    let applied = applied(&whole("a", content), &tree(&[("a", before)]));
    assert_eq!(applied.changes, ChangeSet(vec![modified("a", after)]));
}

#[test]
fn modes_stay() {
    let mut source = MapSource::new();
    let executable = SourceFile {
        mode: FileMode::Executable,
        ..file("#!/bin/sh\n")
    };
    source.insert(path("run"), executable.clone());
    source.insert(path("go"), executable);
    let answer = pair("run", "#!/bin/sh", "#!/bin/bash") + "===MOVE: go -> went===\n";
    let modes: Vec<FileMode> = applied(&answer, &source)
        .changes
        .0
        .iter()
        .map(|change| change.after().unwrap().2)
        .collect();
    assert_eq!(modes, [FileMode::Executable; 2]);
}

#[test]
fn blocks_of_one_file_are_merged_against_the_original() {
    let source = tree(&[("a", "1\n2\n3\n")]);
    let answer = pair("a", "1", "2") + &pair("./a", "2", "two");
    let applied = applied(&answer, &source);
    assert_eq!(
        applied.changes,
        ChangeSet(vec![modified("a", "2\ntwo\n3\n")])
    );
    assert_eq!(applied.blocks[1].block, 2);
}

#[test]
fn a_moved_file_is_edited_by_its_old_and_its_new_name() {
    let source = tree(&[("a", "1\n2\n3\n")]);
    let answer = pair("a", "1", "one") + "===MOVE: a -> b/c===\n" + &pair("b/c", "3", "three");
    let changes = applied(&answer, &source).changes;
    assert_eq!(
        changes,
        ChangeSet(vec![moved("a", "b/c", "one\n2\nthree\n")])
    );
    let rewritten = "===MOVE: a -> b===\n".to_owned() + &whole("b", "x\n");
    let changes = applied(&rewritten, &source).changes;
    assert_eq!(changes, ChangeSet(vec![moved("a", "b", "x\n")]));
}

#[test]
fn a_binary_file_is_moved_and_deleted_but_not_changed() {
    let mut source = MapSource::new();
    source.insert(path("a.png"), file(vec![0x89, 0, 1]));
    source.insert(path("latin"), file(vec![b'a', 0xe9, b'\n', b'b', b'\n']));
    let changes = applied("===MOVE: a.png -> b.png===\n===DELETE: latin===\n", &source).changes;
    assert_eq!(changes.0[0].after().unwrap().1, &Bytes(vec![0x89, 0, 1]));
    let answer = pair("a.png", "x", "y") + &whole("latin", "x\n");
    let reasons: Vec<String> = refused(&answer, &source).into_iter().map(|r| r.2).collect();
    assert!(
        reasons[0].contains("binary") && reasons[1].contains("not UTF-8"),
        "{reasons:?}"
    );
}

#[test]
fn what_changes_nothing_is_dropped_and_noted() {
    let source = tree(&[("a", "1\r\n2"), ("b", "x\n")]);
    let applied = applied(&(whole("a", "1\n2\n") + &pair("b", "x", "y")), &source);
    assert_eq!(applied.changes, ChangeSet(vec![modified("b", "y\n")]));
    let outcomes: Vec<BlockOutcome> = applied.blocks.iter().map(|block| block.outcome).collect();
    assert_eq!(outcomes, [BlockOutcome::Unchanged, BlockOutcome::Applied]);
}

#[test]
fn a_new_file_is_written_as_it_came() {
    let source = MapSource::new();
    let answer = whole("empty", "") + &whole("a", "x\n") + &pair("b", "", "y");
    assert_eq!(
        applied(&answer, &source).changes,
        ChangeSet(vec![
            added("empty", ""),
            added("a", "x\n"),
            added("b", "y\n")
        ])
    );
}

fn forest() -> MapSource {
    let mut source = tree(&[
        ("a", "1\n2\n1\n"),
        ("dir/b", "x\n"),
        ("README.md", "# R\n"),
        (".github/workflows/ci.yml", "on: push\n"),
        ("Cargo.lock", "v\n"),
    ]);
    source.list(path("link"), FileMode::Symlink);
    source.list(path("unread"), FileMode::Regular);
    source.insert_repository(path("sub"));
    let partial = SourceFile {
        partial: true,
        ..file("long\nfile\n")
    };
    source.insert(path("big"), partial);
    source
}

#[rstest]
#[case::outside(whole("../../etc/x", "x\n"), "`../../etc/x` leaves the repository")]
#[case::absolute(whole("/etc/x", "x\n"), "is not relative")]
#[case::git(whole(".git/config", "x\n"), "`.git`")]
#[case::bad_target("===MOVE: a -> ../a===\n".into(), "the new path `../a` leaves")]
#[case::link(whole("link", "x\n"), "it is a symbolic link")]
#[case::delete_link("===DELETE: link===\n".into(), "it is a symbolic link")]
#[case::through_a_link(
    whole("link/x", "x\n"),
    "goes through `link`, which is a symbolic link"
)]
#[case::move_through_a_link("===MOVE: a -> link/a===\n".into(), "goes through `link`")]
#[case::submodule(whole("sub/x", "x\n"), "`sub` is a repository of its own")]
#[case::below_a_file(whole("a/x", "x\n"), "`a` is a file")]
#[case::over_a_directory(whole("dir", "x\n"), "it is a directory")]
#[case::partial(whole("big", "short\n"), "only parts of this file were shown")]
#[case::emptied(whole("a", ""), "the block is empty but the file is not")]
#[case::unread(whole("unread", "x\n"), "was not among the files that were read")]
#[case::no_file(pair("none", "x", "y"), "there is no such file")]
#[case::nothing_to_delete("===DELETE: none===\n".into(), "no such file to delete")]
#[case::nothing_to_move("===MOVE: none -> b===\n".into(), "no such file to move")]
#[case::onto_a_file("===MOVE: a -> dir/b===\n".into(), "`dir/b` is there already")]
#[case::onto_a_directory("===MOVE: a -> dir===\n".into(), "it is a directory")]
#[case::onto_itself("===MOVE: a -> a===\n".into(), "moved to where it is")]
#[case::moved_twice("===MOVE: a -> b===\n===MOVE: a -> c===\n".into(), "moved twice")]
#[case::onto_one_name("===MOVE: a -> c===\n===MOVE: dir/b -> c===\n".into(), "is moved to `c` too")]
#[case::swapped("===MOVE: a -> dir/b===\n===MOVE: dir/b -> a===\n".into(), "is itself moved")]
#[case::whole_and_edited(whole("a", "x\n") + &pair("a", "2", "y"), "written whole and edited")]
#[case::whole_twice(whole("a", "x\n") + &whole("a", "y\n"), "more than once")]
#[case::deleted_and_written("===DELETE: a===\n".to_owned() + &whole("a", "x\n"), "deleted and has another block")]
#[case::moved_and_written("===MOVE: a -> c===\n".to_owned() + &whole("a", "x\n"), "under its old name")]
#[case::case_only(whole("readme.md", "x\n"), "`README.md` is there and differs only")]
#[case::case_of_a_directory(whole("Dir/c", "x\n"), "`dir` is there and differs only")]
#[case::case_of_two(whole("new/X", "x\n") + &whole("new/x", "x\n"), "differs only in case")]
#[case::below_a_new_file(whole("n", "x\n") + &whole("n/m", "x\n"), "so nothing can be below it")]
#[case::workflow(
    pair(".github/workflows/ci.yml", "on: push", "on: pull_request"),
    "is protected (`.github/workflows/**`)"
)]
#[case::new_workflow(whole(".github/Workflows/x.yml", "x\n"), "is protected")]
#[case::owners(whole("docs/CODEOWNERS", "x\n"), "is protected (`docs/CODEOWNERS`)")]
#[case::moved_into_protection("===MOVE: a -> .github/workflows/a.yml===\n".into(), "is protected")]
#[case::lock("===DELETE: Cargo.lock===\n".into(), "is protected")]
#[case::ambiguous(pair("a", "1", "x"), "in 2 places (lines 1, 3)")]
#[case::overlapping(pair("a", "1\n2", "x") + &pair("a", "2\n1", "y"), "lines that block 2 changes too")]
#[case::absent(pair("dir/b", "z", "y"), "not in the file")]
fn a_block_is_refused_by_name_and_reason(#[case] answer: String, #[case] expected: &str) {
    let refused = refused(&answer, &forest());
    let all: Vec<&String> = refused.iter().map(|(_, _, reason)| reason).collect();
    assert!(
        all.iter().any(|reason| reason.contains(expected)),
        "{all:?}"
    );
}

#[test]
fn a_partial_file_is_changed_in_places() {
    let changes = applied(&pair("big", "long", "very long"), &forest()).changes;
    assert_eq!(
        changes,
        ChangeSet(vec![modified("big", "very long\nfile\n")])
    );
}

#[test]
fn protected_files_change_when_that_is_allowed() {
    let rules = Rules::new(Rules::default_patterns(), ProtectedFiles::Allowed).unwrap();
    let answer = parse("===DELETE: Cargo.lock===\n").unwrap();
    assert!(apply(&answer, &forest(), &rules).is_ok());
    let none = Rules::new(vec![], ProtectedFiles::Refused).unwrap();
    assert!(apply(&answer, &forest(), &none).is_ok());
    let bad = Rules::new(vec!["a[".into()], ProtectedFiles::Refused).unwrap_err();
    assert_eq!(bad.pattern, "a[");
}

#[rstest]
#[case(".codespar/settings.json")]
#[case(".codespar/settings.local.json")]
#[case(".Codespar/Settings.json")]
#[case(".claude/settings.json")]
#[case(".claude/agents/x.md")]
#[case(".mcp.json")]
#[case("web/.vscode/tasks.json")]
#[case(".husky/pre-commit")]
#[case(".envrc")]
#[case(".devcontainer/devcontainer.json")]
#[case(".bashrc")]
fn what_runs_or_permits_later_is_never_part_of_a_change(#[case] path: &str) {
    let source = tree(&[("a", "1\n"), (".idea/x", "1\n")]);
    for (protected, patterns) in [
        (ProtectedFiles::Refused, Rules::default_patterns()),
        (ProtectedFiles::Allowed, vec![]),
    ] {
        let rules = Rules::new(patterns, protected).unwrap();
        for answer in [
            whole(path, "x\n"),
            format!("===MOVE: a -> {path}===\n"),
            "===DELETE: .idea/x===\n".to_owned(),
        ] {
            let refusal = apply(&parse(&answer).unwrap(), &source, &rules).unwrap_err();
            assert!(refusal.to_string().contains("is never part of a change"));
        }
    }
}

#[test]
fn a_file_is_renamed_in_case_alone() {
    let changes = applied("===MOVE: README.md -> readme.md===\n", &forest()).changes;
    assert_eq!(
        changes,
        ChangeSet(vec![moved("README.md", "readme.md", "# R\n")])
    );
}

#[test]
fn every_failing_block_is_told_and_the_others_are_held_back() {
    let answer = pair("dir/b", "x", "y")
        + "===FILE: a===\n<<<SEARCH\n1\n>>>REPLACE\none\n<<<SEARCH\n2x\n1\n>>>REPLACE\ntwo\n===END===\n"
        + &whole("../up", "x\n");
    let refusal = apply(&parse(&answer).unwrap(), &forest(), &rules()).unwrap_err();
    assert_eq!(
        serde_json::to_value(&refusal).unwrap(),
        json!({"blocks": [
            {"path": "dir/b", "block": 1, "outcome": "held_back", "rung": "exact", "lines": [1, 1]},
            {
                "path": "a", "block": 1, "outcome": "refused", "rung": "exact", "lines": [1, 3],
                "reason": "the text to replace is in 2 places (lines 1, 3); add neighbouring lines that make it unique",
            },
            {
                "path": "a", "block": 2, "outcome": "refused",
                "reason": "the text to replace is not in the file",
                "nearest": {
                    "first_line": 1, "lines": ["1", "2"],
                    "difference": "Line 1 is the first to differ: the text has `2x` there.",
                },
            },
            {
                "path": "../up", "block": 1, "outcome": "refused",
                "reason": "the path `../up` leaves the repository",
            },
        ]})
    );
    assert_eq!(
        refusal.for_model(),
        "3 of 4 blocks cannot be applied, so none was:\n\n\
         - `a`, block 1: the text to replace is in 2 places (lines 1, 3); add neighbouring lines that \
         make it unique\n\n\
         - `a`, block 2: the text to replace is not in the file. Line 1 is the first to differ: the \
         text has `2x` there. Nearest text:\n     1\t1\n     2\t2\n\n\
         - `../up`, block 1: the path `../up` leaves the repository\n"
    );
    let back: Refusal = serde_json::from_value(serde_json::to_value(&refusal).unwrap()).unwrap();
    assert_eq!(back, refusal);
}

#[test]
fn an_answer_that_cannot_be_read_is_a_refusal_too() {
    let refusal = Refusal::from(parse("===FILE: a===\nx\n").unwrap_err());
    assert_eq!(
        refusal.to_string(),
        "`a`, block 1: line 1 of the answer: the block starts here and never ends; the answer seems \
         to be cut: send the block whole, with `===END===` on a line of its own"
    );
}

#[test]
fn a_loose_match_says_its_rung() {
    let source = tree(&[("a", "\tif x {\n\t\ty()\n\t}\n")]);
    let applied = applied(
        &pair("a", "    if x {\n        y()", "    if x {\n        z()"),
        &source,
    );
    assert_eq!(applied.blocks[0].rung, Some(Rung::TabsAndSpaces));
    assert_eq!(
        applied.changes,
        ChangeSet(vec![modified("a", "\tif x {\n\t\tz()\n\t}\n")])
    );
}
