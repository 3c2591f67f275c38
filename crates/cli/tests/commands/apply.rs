//! `codespar apply` on real trees.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use codespar_testkit::process::{CleanRoom, Finished, spawn_with_stdin};
use serde_json::json;

use crate::common::{PATIENCE, parsed};

struct Tree {
    room: CleanRoom,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let room = CleanRoom::new().unwrap();
        for (name, text) in files {
            let place = room.work().join(name);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        Self { room }
    }

    fn apply(&self, args: &[&str], answer: &str) -> Finished {
        let mut command = self.room.command(env!("CARGO_BIN_EXE_codespar"));
        command
            .current_dir(self.room.work())
            .arg("apply")
            .args(args);
        spawn_with_stdin(&mut command, answer.into())
            .unwrap()
            .wait(PATIENCE)
            .unwrap()
    }

    /// Every file with its text and the bits of its mode; directories too.
    fn listing(&self) -> BTreeMap<String, (String, u32)> {
        let mut found = BTreeMap::new();
        list(&self.room.work(), &self.room.work(), &mut found);
        found
    }

    fn texts(&self) -> BTreeMap<String, String> {
        let files = self.listing().into_iter();
        files.map(|(name, (text, _))| (name, text)).collect()
    }
}

fn list(root: &Path, dir: &Path, found: &mut BTreeMap<String, (String, u32)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let place = entry.unwrap().path();
        let name = place.strip_prefix(root).unwrap().display().to_string();
        let meta = fs::symlink_metadata(&place).unwrap();
        if meta.is_dir() {
            found.insert(name + "/", (String::new(), 0));
            list(root, &place, found);
        } else {
            let text = fs::read_to_string(&place).unwrap();
            found.insert(name, (text, meta.permissions().mode() & 0o777));
        }
    }
}

const CHANGE: &str = "\
Speak English.

===FILE: src/crlf.txt===
<<<SEARCH
two
>>>REPLACE
2
zwei
===END===

===FILE: bom.cs===
<<<SEARCH
using A;
>>>REPLACE
using B;
===END===

===FILE: no_newline===
<<<SEARCH
end
>>>REPLACE
the end
===END===

===FILE: run.sh===
#!/bin/sh
echo new
===END===

===FILE: docs/new.md===
A block:

\\===END===
===END===

===DELETE: old/only.txt===
===MOVE: bin/tool -> tools/tool===

===FILE: tools/tool===
<<<<<<< SEARCH
echo a
=======
echo \"$1\" \\1
>>>>>>> REPLACE
===END===
";

fn before() -> Tree {
    let tree = Tree::new(&[
        ("src/crlf.txt", "one\r\ntwo\r\nthree\r\n"),
        ("bom.cs", "\u{feff}using A;\r\n"),
        ("no_newline", "start\nend"),
        ("run.sh", "#!/bin/sh\necho old\n"),
        ("old/only.txt", "x\n"),
        ("bin/tool", "#!/bin/sh\necho a\n"),
    ]);
    for (name, mode) in [
        ("run.sh", 0o755),
        ("bin/tool", 0o750),
        ("no_newline", 0o600),
    ] {
        fs::set_permissions(tree.room.work().join(name), Permissions::from_mode(mode)).unwrap();
    }
    tree
}

#[test]
fn a_change_of_many_files_is_written_byte_for_byte() {
    let tree = before();
    let finished = tree.apply(&[], CHANGE);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(
        finished.stdout,
        "modified: src/crlf.txt\nmodified: bom.cs\nmodified: no_newline\nmodified: run.sh\n\
         new: docs/new.md\ndeleted: old/only.txt\nmoved: bin/tool -> tools/tool\n"
    );
    let mut listing = tree.listing();
    let new = listing.remove("docs/new.md").unwrap();
    assert_eq!(
        (new.0.as_str(), new.1 & 0o111),
        ("A block:\n\n===END===\n", 0)
    );
    let texts: Vec<(&str, &str, u32)> = listing
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "src/crlf.txt" | "bom.cs"))
        .map(|(name, (text, mode))| (name.as_str(), text.as_str(), *mode))
        .collect();
    assert_eq!(
        texts,
        [
            ("docs/", "", 0),
            ("no_newline", "start\nthe end", 0o600),
            ("run.sh", "#!/bin/sh\necho new\n", 0o755),
            ("src/", "", 0),
            ("tools/", "", 0),
            ("tools/tool", "#!/bin/sh\necho \"$1\" \\1\n", 0o750),
        ]
    );
    assert_eq!(listing["src/crlf.txt"].0, "one\r\n2\r\nzwei\r\nthree\r\n");
    assert_eq!(listing["bom.cs"].0, "\u{feff}using B;\r\n");
}

#[test]
fn a_check_says_what_would_be_and_writes_nothing() {
    let tree = before();
    let listing = tree.listing();
    let finished = tree.apply(&["--check"], CHANGE);
    assert_eq!(finished.status.code(), Some(0));
    assert!(
        finished
            .stdout
            .starts_with("would be modified: src/crlf.txt\n")
    );
    assert_eq!(tree.listing(), listing);
    let report = parsed(&tree.apply(&["--check", "--json"], CHANGE).stdout);
    assert_eq!(report["applied"], false);
    assert_eq!(
        report["files"][6],
        json!({"path": "tools/tool", "change": "moved", "from": "bin/tool"})
    );
}

#[test]
fn programs_get_a_report_of_every_block() {
    let tree = Tree::new(&[("a", "1\n2\n")]);
    let answer =
        "===FILE: a===\n<<<SEARCH\n  2\n>>>REPLACE\n  two\n===END===\n===FILE: b===\n===END===\n";
    let finished = tree.apply(&["--json"], answer);
    assert_eq!(
        parsed(&finished.stdout),
        json!({
            "applied": true,
            "blocks": [
                {"path": "a", "block": 1, "outcome": "applied", "rung": "trimmed", "lines": [2, 2]},
                {"path": "b", "block": 1, "outcome": "applied"},
            ],
            "files": [{"path": "a", "change": "modified"}, {"path": "b", "change": "new"}],
        })
    );
    assert_eq!(tree.texts()["a"], "1\ntwo\n");
}

#[test]
fn one_refused_block_refuses_all_and_says_why() {
    let tree = Tree::new(&[("a", "1\n2\n1\n"), ("b", "x\ny\nz\n")]);
    let texts = tree.texts();
    let answer = "===FILE: b===\n<<<SEARCH\nx\ny\n>>>REPLACE\n1\n<<<SEARCH\ny\nz\n>>>REPLACE\n2\n===END===\n\
                  ===FILE: a===\n<<<SEARCH\n1\n>>>REPLACE\none\n<<<SEARCH\n2\n>>>REPLACE\ntwo\n===END===\n";
    let finished = tree.apply(&[], answer);
    assert_eq!(
        (finished.status.code(), finished.stdout.as_str()),
        (Some(2), "")
    );
    assert_eq!(
        finished.stderr,
        "refused: nothing was changed; 3 of 4 blocks cannot be applied:\n\
         - `b`, block 1: it changes lines that block 2 changes too; join them into one block\n\
         - `b`, block 2: it changes lines that block 1 changes too; join them into one block\n\
         - `a`, block 1: the text to replace is in 2 places (lines 1, 3); add neighbouring lines that \
         make it unique\n"
    );
    let report = parsed(&tree.apply(&["--json"], answer).stdout);
    let outcomes: Vec<_> = (0..4)
        .map(|at| report["blocks"][at]["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["refused", "refused", "refused", "held_back"]);
    assert_eq!(
        (&report["applied"], &report["files"]),
        (&json!(false), &json!([]))
    );
    assert_eq!(tree.texts(), texts);
}

#[test]
fn nothing_leaves_the_tree() {
    let outside = Tree::new(&[("secret", "s\n")]);
    let tree = Tree::new(&[("a", "1\n")]);
    let work = tree.room.work();
    fs::create_dir(work.join(".git")).unwrap();
    symlink(outside.room.work(), work.join("out")).unwrap();
    symlink(outside.room.work().join("secret"), work.join("link")).unwrap();
    for (path, expected) in [
        ("../../etc/x", "leaves the repository"),
        ("/etc/x", "is not relative"),
        (".git/config", "is in the repository's own `.git`"),
        ("link", "it is a symbolic link"),
        ("out/new", "goes through `out`, which is a symbolic link"),
        ("out/secret", "goes through `out`, which is a symbolic link"),
    ] {
        for answer in [
            format!("===FILE: {path}===\nx\n===END===\n"),
            format!("===FILE: {path}===\n<<<SEARCH\ns\n>>>REPLACE\nx\n===END===\n"),
            format!("===DELETE: {path}===\n"),
            format!("===MOVE: a -> {path}===\n"),
        ] {
            let finished = tree.apply(&["--json"], &answer);
            assert_eq!(finished.status.code(), Some(2), "{answer}");
            let reason = parsed(&finished.stdout)["blocks"][0]["reason"].to_string();
            assert!(reason.contains(expected), "{reason}");
        }
    }
    assert_eq!(
        outside.texts(),
        BTreeMap::from([("secret".into(), "s\n".into())])
    );
    assert_eq!(fs::read_dir(work.join(".git")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "1\n");
}

#[test]
fn a_new_file_must_have_a_place_of_its_own() {
    let tree = Tree::new(&[
        ("README.md", "r\n"),
        ("src/a", "1\n"),
        ("sub/.git/HEAD", "x\n"),
    ]);
    let texts = tree.texts();
    for (path, expected) in [
        ("readme.md", "`README.md` is there and differs only"),
        ("Src/new", "`src` is there and differs only"),
        ("src", "it is a directory"),
        ("src/a/b", "`src/a` is a file"),
        ("sub/new", "`sub` is a repository of its own"),
    ] {
        let finished = tree.apply(&[], &format!("===FILE: {path}===\nx\n===END===\n"));
        assert_eq!(finished.status.code(), Some(2), "{path}");
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
    assert_eq!(tree.texts(), texts);
    let renamed = tree.apply(&[], "===MOVE: README.md -> readme.md===\n");
    assert_eq!(renamed.stdout, "moved: README.md -> readme.md\n");
}

#[test]
fn what_is_so_already_is_said_and_changes_nothing() {
    let tree = Tree::new(&[("a", "1\r\n")]);
    let finished = tree.apply(&[], "===FILE: a===\n1\n===END===\n");
    assert_eq!(
        (
            finished.status.code(),
            finished.stdout.as_str(),
            finished.stderr.as_str()
        ),
        (
            Some(0),
            "",
            "`a`, block 1: changes nothing: the file has this text already\n"
        )
    );
}

#[test]
fn protected_files_need_a_word() {
    let tree = Tree::new(&[(".github/workflows/ci.yml", "on: push\n")]);
    let answer =
        "===DELETE: .github/workflows/ci.yml===\n===FILE: CODEOWNERS===\n* @me\n===END===\n";
    let finished = tree.apply(&[], answer);
    assert_eq!(finished.status.code(), Some(2));
    assert_eq!(finished.stderr.matches("--allow-protected").count(), 2);
    assert_eq!(
        tree.apply(&["--allow-protected"], answer).status.code(),
        Some(0)
    );
    assert_eq!(
        tree.texts(),
        BTreeMap::from([("CODEOWNERS".into(), "* @me\n".into())])
    );
}

#[test]
fn settings_and_what_runs_later_are_never_written() {
    let tree = before();
    let then = tree.listing();
    for path in [
        ".codespar/settings.json",
        ".codespar/settings.local.json",
        ".claude/settings.json",
        ".claude/agents/a.md",
        ".CLAUDE/settings.json",
        ".mcp.json",
        ".vscode/tasks.json",
        ".husky/pre-commit",
        ".envrc",
    ] {
        let answer = format!("===FILE: {path}===\nx\n===END===\n");
        for args in [&[][..], &["--allow-protected"]] {
            let finished = tree.apply(args, &answer);
            assert_eq!(finished.status.code(), Some(2), "{path}");
            let expected = "is never part of a change";
            assert!(finished.stderr.contains(expected), "{}", finished.stderr);
        }
    }
    assert_eq!(tree.listing(), then);
}

#[test]
fn the_settings_of_the_tree_say_what_is_protected() {
    let tree = Tree::new(&[(
        ".codespar/settings.json",
        r#"{"dev":{"protected":["*.sql"]}}"#,
    )]);
    let answer = "===FILE: a.sql===\nx\n===END===\n===FILE: CODEOWNERS===\nx\n===END===\n";
    let finished = tree.apply(&[], answer);
    assert_eq!(finished.status.code(), Some(2));
    for named in [
        "`a.sql` is protected (`*.sql`)",
        "`CODEOWNERS` is protected",
    ] {
        assert!(finished.stderr.contains(named), "{}", finished.stderr);
    }
}

#[test]
fn an_answer_without_blocks_is_shown_and_refused() {
    let tree = Tree::new(&[]);
    let finished = tree.apply(&[], "I need to see login.ts first.\n");
    assert_eq!(
        (
            finished.status.code(),
            finished.stdout.as_str(),
            finished.stderr.as_str()
        ),
        (
            Some(2),
            "I need to see login.ts first.\n",
            "no changes found: the answer has no block\n"
        )
    );
    let report = parsed(&tree.apply(&["--json"], "").stdout);
    assert_eq!(report, json!({"applied": false, "blocks": [], "files": []}));
}

#[test]
fn a_cut_answer_changes_nothing() {
    let tree = Tree::new(&[("a", "1\n")]);
    let cut = &CHANGE[..CHANGE.find("\\===END===").unwrap()];
    let finished = tree.apply(&["--json"], cut);
    assert_eq!(finished.status.code(), Some(2));
    let block = &parsed(&finished.stdout)["blocks"][0];
    assert_eq!(
        (&block["path"], &block["outcome"]),
        (&json!("docs/new.md"), &json!("refused"))
    );
    assert_eq!(tree.texts(), BTreeMap::from([("a".into(), "1\n".into())]));
}

#[test]
fn the_answer_may_be_a_file_and_the_tree_elsewhere() {
    let tree = Tree::new(&[
        ("answer.txt", "===FILE: x===\ny\n===END===\n"),
        ("sub/a", "1\n"),
    ]);
    let finished = tree.apply(&["--root", "sub", "answer.txt"], "");
    assert_eq!(
        (finished.status.code(), finished.stdout.as_str()),
        (Some(0), "new: x\n")
    );
    assert_eq!(tree.texts()["sub/x"], "y\n");
    let missing = tree.apply(&["--root", "none"], "x");
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        missing.stderr.contains("none is no directory"),
        "{}",
        missing.stderr
    );
}
