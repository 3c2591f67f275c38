//! Branches, trees, files, search, people.

use codespar_forge::{FileAt, Forge, ForgeError, GitHubAccess, GitHubForge, TreeEntry};
use codespar_protocol::{FileMode, MergeStrategy, Permission};
use codespar_testkit::github::{
    FaultKind, GitHubFault, GitHubOptions, Level, MergeMethods, TokenKind, User,
};

use crate::world::{World, path, setup};

fn entry(path: &str, mode: FileMode, size: u64) -> TreeEntry {
    TreeEntry {
        path: path.to_owned(),
        mode,
        size: Some(size),
    }
}

fn all_files() -> Vec<TreeEntry> {
    use FileMode::{Executable, Regular, Symlink};
    vec![
        entry("README.md", Regular, 7),
        entry("link", Symlink, 9),
        entry("run.sh", Executable, 10),
        entry("src/deep/er/ü b.rs", Regular, 10),
        entry("src/login.ts", Regular, 33),
        entry("src/long.txt", Regular, 51),
        entry("src/raw.bin", Regular, 3),
    ]
}

#[tokio::test]
async fn a_tree_lists_all_files_with_modes_and_sizes() {
    let world = World::new().await;
    let main = world.main().await;
    assert_eq!(world.forge.tree(&main).await.unwrap(), all_files());
}

#[tokio::test]
async fn a_tree_too_large_for_one_answer_is_walked() {
    let world = World::new().await;
    let main = world.main().await;
    world.github.set_tree_limit(6);
    assert_eq!(world.forge.tree(&main).await.unwrap(), all_files());
    let trees = world
        .asked()
        .iter()
        .filter(|request| request.contains("/git/trees/"))
        .count();
    assert_eq!(
        trees,
        3,
        "the root twice, then `src` whole: {:?}",
        world.asked()
    );
}

#[tokio::test]
async fn a_folder_too_large_to_be_listed_is_said_to_be() {
    let world = World::new().await;
    let main = world.main().await;
    world.github.set_tree_limit(2);
    let error = world.forge.tree(&main).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the folder `` has more files than GitHub's API lists; use a checkout"
    );
}

#[tokio::test]
async fn files_come_byte_for_byte_with_their_modes() {
    let world = World::new().await;
    let main = world.main().await;
    let file = |name: &'static str| {
        let (forge, main) = (&world.forge, &main);
        async move { forge.file(main, &path(name)).await.unwrap() }
    };
    let expect = |content: &[u8], mode| {
        Some(FileAt {
            content: content.to_vec(),
            mode,
        })
    };
    // Twice: folder by folder, and out of a tree that is known.
    for _ in 0..2 {
        let crlf = b"const timeout = 10;\r\nsession();\r\n";
        assert_eq!(file("src/login.ts").await, expect(crlf, FileMode::Regular));
        assert_eq!(
            file("src/raw.bin").await,
            expect(&[0xff, 0, 0xfe], FileMode::Regular)
        );
        assert_eq!(
            file("run.sh").await,
            expect(b"#!/bin/sh\n", FileMode::Executable)
        );
        assert_eq!(file("link").await, expect(b"README.md", FileMode::Symlink));
        let odd = "fn ü() {}".as_bytes();
        assert_eq!(
            file("src/deep/er/ü b.rs").await,
            expect(odd, FileMode::Regular)
        );
        for absent in ["src", "src/none.ts", "none/x", "README.md/x"] {
            assert_eq!(file(absent).await, None, "{absent}");
        }
        world.forge.tree(&main).await.unwrap();
    }
}

#[tokio::test]
async fn a_branch_that_is_not_there_is_none_and_a_repository_that_is_not_there_an_error() {
    let world = World::new().await;
    assert_eq!(world.forge.head("none/such").await.unwrap(), None);
    let main = world.git(&["rev-parse", "main"]);
    assert_eq!(world.main().await.0, main);
    let mut other = setup(&world.github.base_url, "bob-token");
    other.name = "elsewhere".to_owned();
    let error = GitHubForge::new(other)
        .unwrap()
        .head("main")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "not found: repository acme/elsewhere, or the token may not see it (it takes the \
         permission Metadata: read)"
    );
}

#[tokio::test]
async fn an_empty_repository_has_no_branches() {
    let world = World::new().await;
    world.git(&["update-ref", "-d", "refs/heads/main"]);
    assert_eq!(world.forge.head("main").await.unwrap(), None);
}

#[tokio::test]
async fn code_search_finds_files_with_all_the_words() {
    let world = World::new().await;
    let words = ["timeout".to_owned(), "session".to_owned()];
    assert_eq!(
        world.forge.search(&words, 5).await.unwrap(),
        ["src/login.ts"]
    );
    let asked = world.github.requests().pop().unwrap();
    assert_eq!(
        asked.query[0],
        ("q".to_owned(), "timeout session repo:acme/shop".to_owned())
    );
    assert_eq!(
        world
            .forge
            .search(&["nowhere".to_owned()], 5)
            .await
            .unwrap(),
        [""; 0]
    );
    assert_eq!(world.forge.search(&[], 5).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn permissions_are_those_of_the_repository() {
    let world = World::new().await;
    world.github.set_level("dave", Level::None);
    for (login, expected) in [
        ("alice", Permission::Admin),
        ("bob", Permission::Write),
        ("carol", Permission::Read),
        ("dave", Permission::None),
        ("nobody", Permission::None),
    ] {
        assert_eq!(
            world.forge.permission(login).await.unwrap(),
            expected,
            "{login}"
        );
    }
    let error = world
        .forge_as("carol-token")
        .permission("bob")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the permission of bob in acme/shop: the forge does not allow it: Must have push access to \
         view collaborator permission. (the token likely lacks the permission Metadata: read, and \
         the right to push)"
    );
    let error = world.forge.permission("..").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`..` cannot be a part of a name at GitHub"
    );
}

#[tokio::test]
async fn the_strategy_is_the_first_that_the_repository_allows() {
    let world = World::new().await;
    assert_eq!(world.forge.default_branch().await.unwrap(), "main");
    for (merge, squash, expected) in [
        (true, true, MergeStrategy::Merge),
        (false, true, MergeStrategy::Squash),
        (false, false, MergeStrategy::Rebase),
    ] {
        world.github.set_merge_methods(MergeMethods {
            merge,
            squash,
            rebase: true,
        });
        assert_eq!(world.forge.default_strategy().await.unwrap(), expected);
    }
}

#[tokio::test]
async fn we_are_who_the_token_says_also_when_it_is_of_an_app() {
    let mut options = GitHubOptions::default();
    options.users.push(User {
        login: "codespar[bot]".to_owned(),
        token: "app-token".to_owned(),
        level: Level::Write,
        kind: TokenKind::App,
    });
    let world = World::with(options).await;
    assert_eq!(world.forge.whoami().await.unwrap(), "bob");
    assert_eq!(
        world.forge_as("app-token").whoami().await.unwrap(),
        "codespar[bot]"
    );
}

#[tokio::test]
async fn a_bad_token_is_named_as_the_reason_and_never_shown() {
    let world = World::new().await;
    let forge = world.forge_as("s3cret-of-nobody");
    let error = forge.default_branch().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "repository acme/shop: the forge does not allow it: GitHub does not accept the token (Bad \
         credentials); it may be mistyped, expired or revoked"
    );
    assert!(matches!(error, ForgeError::Forbidden { .. }));
    let shown = format!(
        "{error:?} {forge:?} {:?}",
        setup(&world.github.base_url, "s3cret-of-nobody")
    );
    assert!(!shown.contains("s3cret"), "{shown}");
    assert_eq!(forge.describe(), "acme/shop on 127.0.0.1");
    assert_eq!(forge.max_body_chars(), 65_536);
}

#[tokio::test]
async fn a_setup_that_cannot_work_is_refused_at_once() {
    let refused = |change: fn(&mut codespar_forge::GitHubSetup)| {
        let mut setup = setup("https://api.github.com", "t");
        change(&mut setup);
        GitHubForge::new(setup).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|setup| setup.access = GitHubAccess::Token(String::new().into())),
        "the GitHub token is empty"
    );
    assert_eq!(
        refused(|setup| setup.access = GitHubAccess::Token("a\nb".to_owned().into())),
        "the GitHub token has characters that no token has"
    );
    assert_eq!(
        refused(|setup| setup.name = "a/b".to_owned()),
        "`acme/a/b` is no repository of GitHub; it is written owner/name"
    );
    assert_eq!(
        refused(|setup| setup.api = "ftp://x".parse().unwrap()),
        "the address of GitHub's API must begin with https://"
    );
    let forge = GitHubForge::new(setup("https://api.github.com", "t")).unwrap();
    assert_eq!(forge.describe(), "acme/shop on github.com");
}

// Git blocks a thread while the server answers it on another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_repository_can_be_cloned_with_a_token() {
    let world = World::new().await;
    let clone = world.path("clone");
    let clone = clone.to_str().unwrap();
    world.git(&[
        "clone",
        "-q",
        &world.github.clone_url_with("carol-token"),
        clone,
    ]);
    let read = std::fs::read_to_string(world.path("clone/src/long.txt")).unwrap();
    assert_eq!(read, crate::world::LONG_FILE);
    let requests = world.github.requests();
    let statuses: Vec<u16> = requests.iter().map(|request| request.status).collect();
    assert_eq!(
        statuses.first(),
        Some(&401),
        "git asks without the token first"
    );
    assert_eq!(statuses.last(), Some(&200));
}

#[tokio::test]
async fn a_file_that_comes_wrapped_in_json_is_unwrapped() {
    let world = World::new().await;
    let main = world.main().await;
    let plain = world.forge.file(&main, &path("src/raw.bin")).await.unwrap();
    world.github.answer_json_only();
    let forge = world.forge_as("bob-token");
    let wrapped = forge.file(&main, &path("src/raw.bin")).await.unwrap();
    assert_eq!(wrapped.as_ref().unwrap().content, [0xff, 0x00, 0xfe]);
    assert_eq!(wrapped, plain);
}

#[tokio::test]
async fn a_page_in_between_is_never_taken_for_a_file_a_diff_or_json() {
    let world = World::new().await;
    let main = world.main().await;
    let pull = world.pull("fix", "README.md", "# Store\n").await;
    let page = |path: &str| {
        let fault = GitHubFault::new("GET", path, FaultKind::SignInPage);
        world.github.inject(fault);
    };
    let blob = world.git(&["rev-parse", "main:README.md"]);
    page(&format!("/git/blobs/{blob}"));
    let error = world.forge.file(&main, &path("README.md")).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "file README.md of acme/shop: GitHub's answer is not the file that was asked for: its \
         content has another id"
    );
    page("/pulls/1");
    let error = world.forge.diff(pull.number).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "pull request #1 of acme/shop: GitHub answers with text/html instead of a diff; a proxy or \
         a sign-in page may be in between"
    );
    page("/pulls/1");
    let error = world.forge.pull_request(pull.number).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "pull request #1 of acme/shop: GitHub answers with text/html instead of JSON; a proxy or a \
         sign-in page may be in between"
    );
}

#[tokio::test]
async fn a_diff_is_put_together_where_a_server_answers_with_json_only() {
    let world = World::new().await;
    let pull = world.pull("fix", "README.md", "# Store\n").await;
    world.github.answer_json_only();
    let diff = world.forge.diff(pull.number).await.unwrap();
    assert!(
        diff.starts_with("diff --git a/README.md b/README.md\n") && diff.contains("\n+# Store\n"),
        "{diff}"
    );
}
