//! The localiser on real repositories: what it finds, and what it does when they change.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use codespar_locate::{FilesRead, IndexProgress, LocateError, Locator, Reason};
use tempfile::TempDir;

const INSTRUCTION: &str = "fix the auth timeout: sessions expire too fast";

struct Repository {
    root: TempDir,
    cache: TempDir,
}

impl Repository {
    /// A git repository with a few files, committed.
    fn new() -> Self {
        let own = Self {
            root: TempDir::new().unwrap(),
            cache: TempDir::new().unwrap(),
        };
        own.git(&["init", "--quiet", "--initial-branch=main"]);
        own.write(
            "src/auth/session.ts",
            "export function expireSession(timeout) {\n}\n",
        );
        own.write("src/auth/login.ts", "export function login(user) {\n}\n");
        own.write("src/paint/brush.ts", "export class Brush {\n}\n");
        own.write(
            "docs/sessions.md",
            "Sessions expire after a timeout. Auth, auth, auth.\n",
        );
        own.commit("Begin");
        own
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(self.path())
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
            .args(["-c", "commit.gpgsign=false"])
            .args(args)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "git {args:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Adds commits that all say the same and change a note each, without a work tree.
    fn commit_often(&self, message: &str, count: usize) {
        let one = |number: usize| {
            let from = match number {
                0 => "from refs/heads/main^0\n",
                _ => "",
            };
            format!(
                "commit refs/heads/main\ncommitter A <a@example.org> {number} +0000\n\
                 data {}\n{message}\n{from}M 644 inline notes.txt\ndata 9\n{number:08}\n\n",
                message.len()
            )
        };
        let stream: String = (0..count).map(one).collect();
        let mut child = Command::new("git")
            .arg("-C")
            .arg(self.path())
            .args(["fast-import", "--quiet"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(stream.as_bytes()).unwrap();
        drop(input);
        assert!(child.wait().unwrap().success());
    }

    fn open(&self) -> Locator {
        Locator::open(self.path(), Some(self.cache.path())).unwrap()
    }

    fn at(&self, commit: &str) -> Locator {
        Locator::at_commit(self.path(), commit, Some(self.cache.path())).unwrap()
    }

    fn cache_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.cache.path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

fn paths(locator: &Locator) -> Vec<&str> {
    locator.paths().collect()
}

fn ranked(locator: &Locator, instruction: &str) -> Vec<String> {
    let ranked = locator.rank(instruction, 5);
    ranked.into_iter().map(|ranked| ranked.path).collect()
}

#[test]
fn files_are_counted_as_they_are_read() {
    let repository = Repository::new();
    let cache = repository.cache.path();
    let count = || {
        let progress = IndexProgress::default();
        assert_eq!(progress.files(), None);
        let locator = Locator::open_counted(repository.path(), Some(cache), &progress).unwrap();
        (progress.files(), locator.paths().count())
    };
    let of = |read: usize| {
        let expected = read;
        Some(FilesRead { read, expected })
    };
    let (cold, all) = count();
    assert_eq!(cold, of(all));
    assert_eq!(count(), (None, all));
    fs::write(repository.path().join("one-more.txt"), "more").unwrap();
    assert_eq!(count(), (of(1), all + 1));
}

#[test]
fn source_that_the_words_lead_to_comes_first_and_says_why() {
    let repository = Repository::new();
    let found = repository.open().rank(INSTRUCTION, 2);
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].path, "src/auth/session.ts");
    assert_eq!(
        found[0].reasons,
        [Reason::Symbol, Reason::Path, Reason::Content]
    );
    assert!(found[0].score > found[1].score);
}

#[test]
fn a_word_that_most_messages_have_leads_nowhere() {
    let repository = Repository::new();
    repository.write("src/one.ts", "// avoid\n");
    repository.write("src/two.ts", "// colour\n");
    let before = repository.commit("More");
    let sources = |commit: &str| -> Vec<String> {
        let found = ranked(&repository.at(commit), "avoid colour").into_iter();
        found.filter(|path| path.starts_with("src/")).collect()
    };
    assert_eq!(sources(&before), ["src/one.ts", "src/two.ts"]);
    repository.commit_often("Avoid a loop", 120);
    assert_eq!(sources("main"), ["src/two.ts", "src/one.ts"]);
}

#[test]
fn a_file_that_is_named_comes_first() {
    let repository = Repository::new();
    let found = repository
        .open()
        .rank("sessions expire too fast, see brush.ts", 1);
    assert_eq!(found[0].path, "src/paint/brush.ts");
    assert_eq!(found[0].reasons[0], Reason::Named);
}

#[test]
fn past_commits_lead_to_the_files_they_changed() {
    let repository = Repository::new();
    repository.write(
        "src/paint/brush.ts",
        "export class Brush {\n  // wider\n}\n",
    );
    repository.commit("Correct the flicker of the canvas");
    let found = repository.open().rank("the canvas flickers", 1);
    assert_eq!(found[0].path, "src/paint/brush.ts");
    assert_eq!(found[0].reasons, [Reason::History]);
}

#[test]
fn a_file_that_the_best_ones_use_comes_before_its_equals_but_not_before_the_best() {
    let repository = Repository::new();
    for name in ["a", "b", "c", "d", "e"] {
        let text = "export function expireSession(timeout) {\n  zetaStore()\n}\n";
        repository.write(&format!("src/auth/session_{name}.ts"), text);
    }
    for name in ["alpha_store", "zeta_store"] {
        repository.write(&format!("src/{name}.ts"), "let timeout = 1\n");
    }
    let locator = repository.open();
    let found = locator.rank(INSTRUCTION, 30);
    let place = |name: &str| found.iter().position(|one| one.path.ends_with(name));
    assert!(
        place("zeta_store.ts") < place("alpha_store.ts"),
        "{found:?}"
    );
    assert!(found[..5].iter().all(|one| one.path.contains("session")));
    assert_eq!(found[..5], locator.rank(INSTRUCTION, 5));
    assert!(found.is_sorted_by(|a, b| a.score >= b.score), "{found:?}");
}

#[test]
fn the_first_line_of_a_long_instruction_outweighs_what_follows() {
    let repository = Repository::new();
    repository.write("src/one.ts", "let canvas = easel\n");
    repository.write("src/two.ts", "let kettle = teapot\n");
    let locator = repository.open();
    let found = ranked(&locator, "the canvas tears\n\nkettle kettle kettle teapot");
    assert_eq!(found[..2], ["src/one.ts", "src/two.ts"]);
}

#[test]
fn an_instruction_without_a_trace_in_the_repository_finds_nothing() {
    let repository = Repository::new();
    assert_eq!(ranked(&repository.open(), "zyzzyva quux"), [""; 0]);
    assert_eq!(ranked(&repository.open(), ""), [""; 0]);
}

#[test]
fn what_git_ignores_is_left_out_and_untracked_files_are_not() {
    let repository = Repository::new();
    repository.write(".gitignore", "build/\n*.log\n");
    repository.write("build/session.ts", "session\n");
    repository.write("session.log", "session\n");
    repository.write("src/new.ts", "session\n");
    assert_eq!(
        paths(&repository.open()),
        [
            ".gitignore",
            "docs/sessions.md",
            "src/auth/login.ts",
            "src/auth/session.ts",
            "src/new.ts",
            "src/paint/brush.ts"
        ]
    );
}

#[test]
fn a_directory_without_git_is_indexed_too() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("session.py"), "def expire(): pass\n").unwrap();
    let locator = Locator::open(root.path(), None).unwrap();
    assert_eq!(ranked(&locator, INSTRUCTION), ["session.py"]);
}

#[test]
fn changed_added_deleted_and_renamed_files_are_seen_at_the_next_opening() {
    let repository = Repository::new();
    repository.open();
    repository.write(
        "src/auth/login.ts",
        "export function revokeToken(token) {\n}\n",
    );
    repository.write("src/auth/token.ts", "export const token = 1;\n");
    fs::remove_file(repository.path().join("docs/sessions.md")).unwrap();
    let renamed = repository.path().join("src/paint/pencil.ts");
    fs::rename(repository.path().join("src/paint/brush.ts"), renamed).unwrap();

    let refreshed = repository.open();
    let fresh = Locator::open(repository.path(), None).unwrap();
    assert_eq!(
        paths(&refreshed),
        [
            "src/auth/login.ts",
            "src/auth/session.ts",
            "src/auth/token.ts",
            "src/paint/pencil.ts"
        ]
    );
    for instruction in ["revoke the token", "a wider Brush", "pencil", INSTRUCTION] {
        assert_eq!(refreshed.rank(instruction, 9), fresh.rank(instruction, 9));
    }
    assert_eq!(ranked(&refreshed, "revoke a token")[0], "src/auth/login.ts");
}

#[cfg(unix)]
#[test]
fn only_directories_that_changed_lead_to_a_new_walk_and_edits_are_seen_without_one() {
    let repository = Repository::new();
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    let age = |directory: &str| {
        let directory = File::open(repository.path().join(directory)).unwrap();
        directory.set_modified(long_ago).unwrap();
    };
    for directory in ["", "docs", "src", "src/auth", "src/paint"] {
        age(directory);
    }
    repository.open();
    let brush = repository.path().join("src/paint/brush.ts");
    let mut brush = File::options().append(true).open(brush).unwrap();
    brush.write_all(b"// okapi\n").unwrap();
    assert_eq!(ranked(&repository.open(), "okapi"), ["src/paint/brush.ts"]);

    repository.write("src/paint/okapi.ts", "");
    age("src/paint");
    assert_eq!(paths(&repository.open()).len(), 4);
    repository.write("src/paint/zebra.ts", "");
    assert_eq!(paths(&repository.open()).len(), 6);
}

#[test]
fn a_cache_that_is_damaged_cut_or_foreign_is_made_anew() {
    let repository = Repository::new();
    let expected = repository.open().rank(INSTRUCTION, 5);
    let [file] = &repository.cache_files()[..] else {
        panic!("one cache file")
    };
    let whole = fs::read(file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x55;
    let mut older = whole.clone();
    older[8] = 0;
    let cut = whole[..whole.len() - 9].to_vec();
    for bad in [flipped, older, cut, Vec::new(), b"something else".to_vec()] {
        fs::write(file, &bad).unwrap();
        assert_eq!(repository.open().rank(INSTRUCTION, 5), expected);
        let renewed = fs::read(file).unwrap();
        assert_ne!(renewed, bad);
        assert_eq!(renewed.len(), whole.len());
    }
}

#[test]
fn a_cache_that_cannot_be_written_costs_time_alone() {
    let repository = Repository::new();
    let in_the_way = repository.cache.path().join("file");
    fs::write(&in_the_way, "").unwrap();
    let locator = Locator::open(repository.path(), Some(&in_the_way)).unwrap();
    assert_eq!(ranked(&locator, INSTRUCTION)[0], "src/auth/session.ts");
}

#[test]
fn a_commit_is_read_as_it_is_whatever_the_work_tree_holds() {
    let repository = Repository::new();
    let first = repository.git(&["rev-parse", "HEAD"]);
    repository.write("src/auth/session.ts", "gone\n");
    repository.write("src/untracked.ts", "session expire timeout auth\n");
    let locator = repository.at(&first);
    assert_eq!(
        paths(&locator),
        [
            "docs/sessions.md",
            "src/auth/login.ts",
            "src/auth/session.ts",
            "src/paint/brush.ts"
        ]
    );
    assert_eq!(ranked(&locator, INSTRUCTION)[0], "src/auth/session.ts");
    let by_name = Locator::at_commit(&repository.path().join(".git"), "main", None).unwrap();
    assert_eq!(by_name.rank(INSTRUCTION, 5), locator.rank(INSTRUCTION, 5));
}

#[test]
fn nothing_that_came_after_a_commit_is_looked_at() {
    let repository = Repository::new();
    let first = repository.git(&["rev-parse", "HEAD"]);
    repository.write(
        "src/paint/brush.ts",
        "export class Brush { flicker() {} }\n",
    );
    let second = repository.commit("Stop the canvas from flickering");
    assert_eq!(
        ranked(&repository.at(&second), "the canvas flickers")[0],
        "src/paint/brush.ts"
    );
    assert_eq!(
        ranked(&repository.at(&first), "the canvas flickers"),
        [""; 0]
    );
}

#[test]
fn a_later_commit_refreshes_the_index_of_an_earlier_one() {
    let repository = Repository::new();
    repository.at("HEAD");
    repository.write("src/auth/token.ts", "export function revokeToken() {\n}\n");
    repository.git(&["rm", "--quiet", "docs/sessions.md"]);
    repository.git(&["mv", "src/paint/brush.ts", "src/paint/pencil.ts"]);
    repository.commit("Revoke tokens");
    let refreshed = repository.at("HEAD");
    let fresh = Locator::at_commit(repository.path(), "HEAD", None).unwrap();
    assert_eq!(paths(&refreshed), paths(&fresh));
    for instruction in ["revoke the token", "a wider Brush", INSTRUCTION] {
        assert_eq!(refreshed.rank(instruction, 9), fresh.rank(instruction, 9));
    }
    assert_eq!(repository.cache_files().len(), 1);
}

#[test]
fn a_rewritten_history_replaces_the_one_that_was_known() {
    let repository = Repository::new();
    let first = repository.git(&["rev-parse", "HEAD"]);
    repository.write("src/paint/brush.ts", "export class Brush { a() {} }\n");
    repository.commit("Stop the canvas from flickering");
    repository.open();
    repository.git(&["reset", "--quiet", "--hard", &first]);
    repository.write(
        "src/auth/login.ts",
        "export function login(user, name) {\n}\n",
    );
    repository.commit("Greet people by their given name");
    assert_eq!(ranked(&repository.open(), "the canvas flickers"), [""; 0]);
    assert_eq!(
        ranked(&repository.open(), "greet people"),
        ["src/auth/login.ts"]
    );
}

#[test]
fn binary_and_huge_files_are_known_by_name_alone_or_in_part() {
    let repository = Repository::new();
    repository.write("src/blob.ts", b"session expire\0\x01\x02");
    let mut huge = "filler\n".repeat(400_000);
    huge.insert_str(0, "quagga\n");
    huge.push_str("okapi\n");
    repository.write("src/huge.ts", huge);
    let commit = repository.commit("Grow");
    for locator in [repository.open(), repository.at(&commit)] {
        assert!(!ranked(&locator, "expire the session").contains(&"src/blob.ts".to_owned()));
        assert_eq!(ranked(&locator, "quagga"), ["src/huge.ts"]);
        assert_eq!(ranked(&locator, "okapi"), [""; 0]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_text_are_left_out_and_texts_that_are_not_are_read() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    let repository = Repository::new();
    let name = OsStr::from_bytes(b"src/caf\xe9.ts");
    fs::write(repository.path().join(name), "session\n").unwrap();
    repository.write("src/naïve.ts", b"// caf\xe9\nexport class Okapi {\n}\n");
    let commit = repository.commit("Add odd names");
    for locator in [repository.open(), repository.at(&commit)] {
        assert_eq!(paths(&locator).len(), 5);
        assert_eq!(ranked(&locator, "the okapi"), ["src/naïve.ts"]);
    }
}

#[test]
fn an_empty_repository_has_no_files() {
    let root = TempDir::new().unwrap();
    let cache = TempDir::new().unwrap();
    let init = Command::new("git")
        .arg("-C")
        .arg(root.path())
        .args(["init", "--quiet"])
        .status();
    assert!(init.unwrap().success());
    for _ in 0..2 {
        let locator = Locator::open(root.path(), Some(cache.path())).unwrap();
        assert_eq!(paths(&locator), [""; 0]);
        assert_eq!(ranked(&locator, INSTRUCTION), [""; 0]);
        assert_eq!(locator.overview(10), "");
    }
    let error = Locator::at_commit(root.path(), "HEAD", None).unwrap_err();
    assert!(matches!(error, LocateError::Commit { .. }), "{error}");
}

#[test]
fn errors_name_the_place() {
    let repository = Repository::new();
    let nowhere = repository.path().join("nowhere");
    let error = Locator::open(&nowhere, None).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("`{}` is not a directory", nowhere.display())),
        "{error}"
    );
    let error = Locator::at_commit(repository.path(), "v9", None)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("`v9` is no commit of the repository"),
        "{error}"
    );
    let plain = TempDir::new().unwrap();
    let error = Locator::at_commit(plain.path(), "HEAD", None).unwrap_err();
    assert!(matches!(error, LocateError::Git { .. }), "{error}");
}

#[test]
fn a_directory_inside_a_repository_has_paths_and_history_of_its_own() {
    let repository = Repository::new();
    repository.write("src/paint/brush.ts", "export class Brush { a() {} }\n");
    repository.commit("Stop the canvas from flickering");
    let inner = repository.path().join("src");
    let locator = Locator::open(&inner, None).unwrap();
    assert_eq!(
        paths(&locator),
        ["auth/login.ts", "auth/session.ts", "paint/brush.ts"]
    );
    assert_eq!(ranked(&locator, "the canvas flickers"), ["paint/brush.ts"]);
    let whole = Locator::at_commit(&inner, "HEAD", None).unwrap();
    assert_eq!(
        ranked(&whole, "the canvas flickers"),
        ["src/paint/brush.ts"]
    );
}

/// Ten trees within each other, each ten times: 10^10 files in eleven objects.
fn bomb(repository: &Repository) -> String {
    let make = |args: &[&str], input: String| {
        let mut child = Command::new("git")
            .arg("-C")
            .arg(repository.path())
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
            .args(args)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let mut object = make(&["hash-object", "-w", "--stdin"], "x".to_owned());
    let mut mode = "100644 blob";
    for _ in 0..10 {
        let row = |n| format!("{mode} {object}\tdirectory{n}\n");
        let rows: String = (0..10).map(row).collect();
        object = make(&["mktree"], rows);
        mode = "040000 tree";
    }
    make(&["commit-tree", &object, "-m", "bomb"], String::new())
}

#[test]
fn a_commit_with_ten_thousand_million_files_is_refused_with_the_reason() {
    let repository = Repository::new();
    let commit = bomb(&repository);
    let error = Locator::at_commit(repository.path(), &commit, None).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("too many or too large files"), "{text}");
}

#[test]
fn a_history_with_ten_thousand_million_files_does_not_keep_files_from_being_found() {
    let repository = Repository::new();
    let commit = bomb(&repository);
    repository.git(&["update-ref", "HEAD", &commit]);
    assert_eq!(
        ranked(&repository.open(), INSTRUCTION)[0],
        "src/auth/session.ts"
    );
}

#[test]
fn nothing_of_the_repository_is_run() {
    let repository = Repository::new();
    let mark = repository.cache.path().join("ran");
    let evil = format!("touch {}; cat", mark.display());
    repository.write(".gitattributes", "* filter=evil diff=evil\n");
    let commit = repository.commit("attributes");
    for key in ["filter.evil.clean", "diff.evil.textconv", "core.fsmonitor"] {
        repository.git(&["config", key, &evil]);
    }
    let url = format!("ext::sh -c touch% {}", mark.display());
    for (key, value) in [
        ("remote.origin.url", url.as_str()),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("protocol.ext.allow", "always"),
    ] {
        repository.git(&["config", key, value]);
    }
    let blob = repository.git(&["rev-parse", "HEAD:src/paint/brush.ts"]);
    fs::remove_file(mark.with_file_name("ran")).unwrap_or_default();
    let (dir, file) = blob.split_at(2);
    fs::remove_file(repository.path().join(".git/objects").join(dir).join(file)).unwrap();
    repository.open();
    repository.at(&commit);
    assert!(!mark.exists());
}

#[test]
fn ignore_files_that_never_end_are_not_read() {
    for name in [".gitignore", "src/.gitignore", ".git/info/exclude"] {
        for kind in ["pipe", "device"] {
            let repository = Repository::new();
            let path = repository.path().join(name);
            let _ = fs::remove_file(&path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match kind {
                "pipe" => {
                    let made = Command::new("mkfifo").arg(&path).status().unwrap();
                    assert!(made.success());
                }
                _ => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
            }
            let opened = Locator::open(repository.path(), None);
            match name {
                // What git tracks is known without walking the directory.
                "src/.gitignore" => {
                    let opened = opened.unwrap();
                    let tracked = [
                        "src/auth/login.ts",
                        "src/auth/session.ts",
                        "src/paint/brush.ts",
                    ];
                    assert_eq!(paths(&opened)[0], "docs/sessions.md");
                    assert_eq!(paths(&opened)[1..], tracked);
                }
                _ => assert!(matches!(opened, Err(LocateError::Root { .. })), "{name}"),
            }
        }
    }
}

#[test]
fn an_ignore_file_that_is_edited_in_place_counts_at_once() {
    let repository = Repository::new();
    repository.write(".gitignore", "hidden.rs\n");
    repository.write("shown.rs", "fn alpha() {}\n");
    repository.write("hidden.rs", "fn beta() {}\n");
    let paths = || -> Vec<String> {
        let locator = repository.open();
        let paths = locator.paths().map(str::to_owned);
        paths.filter(|path| path.ends_with(".rs")).collect()
    };
    assert_eq!(paths(), ["shown.rs"]);
    // The directory does not change by this.
    repository.write(".gitignore", "shown.rs\n# not the other\n");
    assert_eq!(paths(), ["hidden.rs"]);
}
