//! An index that is brought up to date is the one that would be made from nothing, and it holds what
//! git tracks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

use codespar_locate::Locator;
use tempfile::TempDir;

fn git(root: &Path, args: &[&str], input: &str) -> String {
    let mut child = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(["-c", "commit.gpgsign=false"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn repository() -> TempDir {
    let root = TempDir::new().unwrap();
    git(
        root.path(),
        &["init", "--quiet", "--initial-branch=main"],
        "",
    );
    root
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A stream for `git fast-import`.
#[derive(Default)]
struct Import {
    stream: String,
    commits: usize,
}

impl Import {
    /// Marks are counted from one. Without a parent it continues the branch.
    fn commit(&mut self, branch: &str, time: usize, message: &str, parents: &[(&str, usize)]) {
        self.commits += 1;
        let stream = &mut self.stream;
        writeln!(stream, "commit refs/heads/{branch}\nmark :{}", self.commits).unwrap();
        let time = 1_600_000_000 + time;
        writeln!(stream, "committer A <a@example.org> {time} +0000").unwrap();
        writeln!(stream, "data {}\n{message}", message.len()).unwrap();
        for (kind, mark) in parents {
            writeln!(stream, "{kind} :{mark}").unwrap();
        }
    }

    fn file(&mut self, path: &str, text: &str) {
        let length = text.len();
        writeln!(self.stream, "M 100644 inline {path}\ndata {length}\n{text}").unwrap();
    }
}

/// More commits than an index looks at. Some change nothing, some too much, and side branches with
/// older commits are merged in.
fn long_history(root: &Path) -> Vec<String> {
    let mut import = Import::default();
    for number in 0..2_300 {
        let topic = number * 7 % 31;
        let message = format!("Change topic{topic} of part{}", number % 13);
        import.commit("main", number * 60, &message, &[]);
        match number % 5 {
            0 => {}
            1 => (0..45).for_each(|file| import.file(&format!("wide/f{file}.rs"), &message)),
            _ => import.file(
                &format!("src/part{}.rs", number % 13),
                &format!("fn f{number}() {{}}"),
            ),
        }
        if number % 100 == 50 {
            let main = import.commits;
            // Older than what it is merged into.
            let time = (number - 40) * 60 + 30;
            import.commit(
                "side",
                time,
                &format!("Try topic{topic}"),
                &[("from", main)],
            );
            import.file(&format!("src/side{number}.rs"), "fn side() {}");
            let side = import.commits;
            let parents = [("from", main), ("merge", side)];
            import.commit("main", number * 60 + 30, "Merge", &parents);
            import.file(&format!("src/side{number}.rs"), "fn side() {}");
        }
    }
    git(root, &["fast-import", "--quiet"], &import.stream);
    let log = git(
        root,
        &["rev-list", "--first-parent", "--reverse", "main"],
        "",
    );
    log.lines().map(str::to_owned).collect()
}

#[test]
fn an_index_that_is_updated_over_many_commits_ranks_like_a_fresh_one() {
    let root = repository();
    let commits = long_history(root.path());
    let kept = TempDir::new().unwrap();
    let places = [
        300,
        1_900,
        1_950,
        1_951,
        2_055,
        2_200,
        commits.len() - 1,
        2_100,
    ];
    for place in places {
        let commit = &commits[place];
        let updated = Locator::at_commit(root.path(), commit, Some(kept.path())).unwrap();
        let fresh = Locator::at_commit(root.path(), commit, None).unwrap();
        for instruction in [
            "Change topic3 again",
            "topic11 of part4 is slow",
            "try the side",
        ] {
            let ranked = updated.rank(instruction, 30);
            assert!(!ranked.is_empty(), "{instruction}");
            assert_eq!(
                ranked,
                fresh.rank(instruction, 30),
                "{instruction} at {place}"
            );
        }
    }
}

#[test]
fn a_file_that_is_tracked_is_seen_though_an_ignore_file_names_it() {
    let root = repository();
    let (root, cache) = (root.path(), TempDir::new().unwrap());
    write(root, ".gitignore", "build/\n*.gen.rs\n");
    write(root, "build/session.rs", "fn expire_session() {}\n");
    write(root, "build/other.rs", "fn expire_session() {}\n");
    write(root, "src/main.rs", "fn main() {}\n");
    git(
        root,
        &["add", "--force", ".gitignore", "build/session.rs", "src"],
        "",
    );
    let paths = || {
        let locator = Locator::open(root, Some(cache.path())).unwrap();
        let paths: Vec<String> = locator.paths().map(str::to_owned).collect();
        let ranked = locator.rank("expire the session", 1);
        (
            paths,
            ranked.into_iter().map(|one| one.path).collect::<Vec<_>>(),
        )
    };
    let expected = [".gitignore", "build/session.rs", "src/main.rs"];
    for _ in 0..2 {
        let (found, ranked) = paths();
        assert_eq!(found, expected);
        assert_eq!(ranked, ["build/session.rs"]);
    }
    // No directory changes by this, only the index of git.
    git(root, &["rm", "--quiet", "--cached", "build/session.rs"], "");
    assert_eq!(paths().0, [".gitignore", "src/main.rs"]);
    git(root, &["add", "--force", "build/other.rs"], "");
    assert_eq!(paths().0, [".gitignore", "build/other.rs", "src/main.rs"]);
    // A directory inside has paths of its own.
    write(root, "src/tables.gen.rs", "const TABLE: u8 = 0;\n");
    write(root, "src/other.gen.rs", "const OTHER: u8 = 0;\n");
    git(root, &["add", "--force", "src/tables.gen.rs"], "");
    let locator = Locator::open(&root.join("src"), None).unwrap();
    let found: Vec<&str> = locator.paths().collect();
    assert_eq!(found, ["main.rs", "tables.gen.rs"]);
}

#[test]
fn a_tracked_path_that_leads_out_of_the_tree_is_not_followed() {
    let (root, outside) = (repository(), TempDir::new().unwrap());
    let root = root.path();
    write(outside.path(), "secret.rs", "fn expire_session() {}\n");
    write(root, ".gitignore", "data\n");
    write(root, "data/secret.rs", "fn old() {}\n");
    git(root, &["add", "--force", "--all"], "");
    fs::remove_dir_all(root.join("data")).unwrap();
    symlink(outside.path(), root.join("data")).unwrap();
    let locator = Locator::open(root, None).unwrap();
    assert_eq!(locator.paths().collect::<Vec<_>>(), [".gitignore"]);
    assert_eq!(locator.rank("expire the session", 5), []);
}
