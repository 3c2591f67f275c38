//! Tests that need the files of submodules, which another repository names and nobody vouches for.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use codespar_testkit::{Script, github::Visibility};
use serde_json::Value;

use crate::{
    dependencies::assert_verified,
    github::Hub,
    repository::{FIX, GREET, answer, commit_all, dev, git, repository, script},
};

/// Needs `lib`, and what it has in a submodule of its own if there is one.
const TEST: &str = "#!/bin/sh\n\
    [ \"$(cat lib/value)\" = 42 ] || exit 1\n\
    if [ -e lib/nested ]; then [ \"$(cat lib/nested/value)\" = 43 ] || exit 1; fi\n\
    [ \"$(sh greet.sh)\" = \"hi world\" ] && echo \"1 passed\" || { echo \"1 failed\"; exit 1; }\n";
const FILES: &[(&str, &str)] = &[
    ("greet.sh", GREET),
    ("test.sh", TEST),
    ("Makefile", "test:\n\t@sh test.sh\n"),
];

fn fix() -> Script {
    script(&["greet.sh"], [answer("Say hi", FIX)])
}

/// A repository with a file `value`, and its bare clone; the commit of both.
struct Library {
    dir: tempfile::TempDir,
    commit: String,
}

impl Library {
    fn new(value: &str, submodules: &[(&str, &str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let seed = dir.path().join("seed");
        std::fs::create_dir(&seed).unwrap();
        git(&seed, &["init", "--quiet", "-b", "main"]);
        std::fs::write(seed.join("value"), value).unwrap();
        git(&seed, &["add", "."]);
        for (path, commit, url) in submodules {
            add(&seed, path, commit, url);
        }
        let args = ["commit", "--quiet", "--no-gpg-sign", "-m", "Begin"];
        git(&seed, &args);
        git(&seed, &["clone", "--quiet", "--bare", ".", "../bare.git"]);
        let commit = git(&seed, &["rev-parse", "HEAD"]).trim().to_owned();
        Self { dir, commit }
    }

    fn seed(&self) -> PathBuf {
        self.dir.path().join("seed")
    }

    fn bare(&self) -> PathBuf {
        self.dir.path().join("bare.git")
    }
}

/// Adds an entry for a submodule to the index, with what `.gitmodules` says of it.
fn add(seed: &Path, path: &str, commit: &str, url: &str) {
    let entry = format!("160000,{commit},{path}");
    git(seed, &["update-index", "--add", "--cacheinfo", &entry]);
    let key = |name: &str| format!("submodule.{path}.{name}");
    for (name, value) in [("path", path), ("url", url)] {
        git(
            seed,
            &["config", "--file", ".gitmodules", &key(name), value],
        );
    }
    git(seed, &["add", ".gitmodules"]);
}

fn not_verified(report: &Value, code: Option<i32>) -> String {
    assert_eq!(code, Some(0), "{report}");
    report["not_verified"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn a_submodule_of_the_checkout_is_there_for_the_tests() {
    let library = Library::new("42", &[]);
    let bench = repository(fix(), FILES);
    let seed = library.seed();
    let args = ["submodule", "--quiet", "add", seed.to_str().unwrap(), "lib"];
    let allowed = ["-c", "protocol.file.allow=always"];
    git(&bench.work(), &[&allowed[..], &args].concat());
    commit_all(&bench, "Use the library");
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
}

#[test]
fn submodules_of_a_clone_from_github_are_fetched_from_there_once() {
    let nested = Library::new("43", &[]);
    for url in ["../lib.git", "git@127.0.0.1:acme/lib.git"] {
        let library = Library::new(
            "42",
            &[("nested", &nested.commit, "../../other/nested.git")],
        );
        let hub = Hub::with_seed(fix(), FILES, |seed| add(seed, "lib", &library.commit, url));
        let add = |name, library: &Library, visibility| {
            let added = hub.github.add_repository(name, library.bare(), visibility);
            added.unwrap();
        };
        add("acme/lib", &library, Visibility::Private);
        add("other/nested", &nested, Visibility::Public);
        let (report, code) = hub.dev(&["make it say hi"]);
        assert_verified(&report, code);
        // The login is for repositories of the same owner.
        let requests = hub.github.requests();
        let of = |start: &str| {
            let found = requests.iter().filter(|one| one.path.starts_with(start));
            found.collect::<Vec<_>>()
        };
        let (own, others) = (of("/acme/lib.git/"), of("/other/nested.git/"));
        assert!(!own.is_empty() && !others.is_empty());
        assert!(own.iter().all(|one| one.header("authorization").is_some()));
        assert!(
            others
                .iter()
                .all(|one| one.header("authorization").is_none())
        );
        // They are kept for the next run.
        hub.github.forget_requests();
        let (report, code) = hub.dev(&["make it say hi again", "--verify", "sh test.sh"]);
        assert_verified(&report, code);
        let requests = hub.github.requests();
        assert!(!requests.iter().any(|one| one.path.starts_with("/acme/lib")));
    }
}

#[test]
fn the_login_does_not_reach_private_repositories_of_another_owner() {
    let private = Library::new("42", &[]);
    let url = "../../victim/secret.git";
    let hub = Hub::with_seed(fix(), FILES, |seed| add(seed, "lib", &private.commit, url));
    let added = hub
        .github
        .add_repository("victim/secret", private.bare(), Visibility::Private);
    added.unwrap();
    let (report, code) = hub.dev(&["make it say hi"]);
    let reason = not_verified(&report, code);
    let expected = "cannot verify here: the submodule `lib` is missing";
    assert!(reason.starts_with(expected), "{reason}");
    let requests = hub.github.requests();
    let mut asked = requests
        .iter()
        .filter(|one| one.path.starts_with("/victim"));
    assert!(asked.all(|one| one.header("authorization").is_none() && one.status == 401));
}

#[test]
fn a_submodule_is_not_had_from_this_machine_another_server_or_a_program() {
    let library = Library::new("42", &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = listener.local_addr().unwrap();
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let mark = library.dir.path().join("ran");
    let bare = library.bare();
    let bare = bare.display();
    for url in [
        format!("file://{bare}"),
        bare.to_string(),
        format!("ext::sh -c touch% {}", mark.display()),
        format!("--upload-pack=touch {}", mark.display()),
        format!("http://{elsewhere}/acme/lib.git"),
        format!("http://127.0.0.1@{elsewhere}/acme/lib.git"),
        format!("ssh://localhost/{bare}"),
        "../../../../../lib.git".to_owned(),
    ] {
        let hub = Hub::with_seed(fix(), FILES, |seed| add(seed, "lib", &library.commit, &url));
        let (report, code) = hub.dev(&["make it say hi"]);
        let reason = not_verified(&report, code);
        let expected = "cannot verify here: the submodule `lib` is missing";
        assert!(reason.starts_with(expected), "{url}: {reason}");
        assert!(!mark.exists(), "{url}");
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

#[test]
fn a_submodule_that_the_tests_do_not_need_is_only_named() {
    let library = Library::new("42", &[]);
    let hub = Hub::with_seed(
        fix(),
        &[
            ("greet.sh", GREET),
            ("test.sh", crate::repository::TEST),
            ("Makefile", "test:\n\t@sh test.sh\n"),
        ],
        |seed| {
            let url = "https://elsewhere.example/a/b";
            add(seed, "docs/theme", &library.commit, url);
        },
    );
    let (report, code) = hub.dev(&["make it say hi"]);
    assert_verified(&report, code);
}
