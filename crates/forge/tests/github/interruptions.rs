//! Answers that are lost: whatever makes something outside makes it once.

use codespar_forge::{Forge, ForgeError, GitHubForge, MergeOrder, NewReview};
use codespar_protocol::{MergeStrategy, Verdict};
use codespar_testkit::github::{FaultKind, GitHubFault};

use crate::world::{World, new_commit, new_pull, setup};

const LOSSES: [FaultKind; 4] = [
    FaultKind::CutAfter,
    FaultKind::BadGatewayAfter,
    FaultKind::CutBefore,
    FaultKind::Status(500),
];

fn fault(method: &str, path: &str, kind: &FaultKind) -> GitHubFault {
    GitHubFault::new(method, path, kind.clone())
}

#[tokio::test]
async fn a_commit_is_made_once_whichever_answer_is_lost() {
    for kind in LOSSES {
        for (method, path) in [
            ("POST", "/git/blobs"),
            ("POST", "/git/trees"),
            ("POST", "/git/commits"),
            ("POST", "/git/refs"),
            ("PATCH", "/git/refs/heads/codespar/a"),
        ] {
            let world = World::new().await;
            let mut parent = world.main().await;
            if method == "PATCH" {
                parent = world.branch("codespar/a", "run.sh", "first\n").await;
            }
            world.github.inject(fault(method, path, &kind));
            let mut new = new_commit("codespar/a", &parent, "README.md", "x\n");
            new.key = "k".to_owned();
            new.message = "m\n\nCodeSpar-Key: k".to_owned();
            let made = world.forge.commit(&new).await.unwrap();
            assert_eq!(world.github.faults_left(), 0, "{method} {path} {kind:?}");
            let range = format!("{parent}..codespar/a");
            assert_eq!(
                world.git(&["rev-list", &range]),
                made.0,
                "{method} {path} {kind:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_pull_request_is_opened_once_when_the_answer_is_lost() {
    for kind in LOSSES {
        let world = World::new().await;
        world.branch("codespar/a", "README.md", "x\n").await;
        world.github.inject(fault("POST", "/pulls", &kind));
        let opened = world
            .forge
            .open_pull_request(&new_pull("codespar/a"))
            .await
            .unwrap();
        assert_eq!(
            (opened.number, world.github.pull_count()),
            (1, 1),
            "{kind:?}"
        );
        assert_eq!(world.github.faults_left(), 0);
    }
}

#[tokio::test]
async fn a_review_is_posted_once_when_the_answer_is_lost() {
    for kind in LOSSES {
        let world = World::new().await;
        let pull = world.pull("codespar/a", "README.md", "x\n").await;
        world.github.inject(fault("POST", "/reviews", &kind));
        let new = NewReview {
            commit: pull.head_commit,
            verdict: Verdict::Comment,
            body: "Fine.\n<!-- codespar-key: r -->".to_owned(),
            comments: Vec::new(),
            key: "r".to_owned(),
        };
        let posted = world.forge.review(1, &new).await.unwrap();
        assert_eq!(posted.body, new.body, "{kind:?}");
        assert_eq!(
            (world.github.review_count(1), world.github.faults_left()),
            (1, 0),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn a_merge_happens_once_when_the_answer_is_lost() {
    for kind in LOSSES {
        let world = World::new().await;
        let pull = world.pull("codespar/a", "README.md", "x\n").await;
        let before = world.main().await;
        world.github.inject(fault("PUT", "/merge", &kind));
        let order = MergeOrder {
            strategy: MergeStrategy::Squash,
            expected_head: pull.head_commit,
            title: None,
        };
        let merged = world.forge.merge(1, &order).await.unwrap();
        assert_eq!(
            world.git(&["rev-list", &format!("{before}..main")]),
            merged.0,
            "{kind:?}"
        );
        assert_eq!(world.github.faults_left(), 0);
        world.github.inject(fault("DELETE", "/codespar/a", &kind));
        world.forge.delete_branch("codespar/a").await.unwrap();
        assert_eq!(world.forge.head("codespar/a").await.unwrap(), None);
    }
}

#[tokio::test]
async fn reading_is_tried_again_and_given_up_in_the_end() {
    let world = World::new().await;
    for kind in &LOSSES {
        world.github.inject(fault("GET", "/acme/shop", kind));
    }
    assert_eq!(world.forge.default_branch().await.unwrap(), "main");
    assert_eq!(world.count("GET "), 5);
    for _ in 0..9 {
        world
            .github
            .inject(GitHubFault::status("GET", "/acme/shop", 503));
    }
    let error = world.forge.default_branch().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "repository acme/shop: GitHub answers 503 Server Error"
    );
    assert_eq!(world.github.faults_left(), 4);
    assert!(matches!(error, ForgeError::Unavailable { .. }));
}

#[tokio::test]
async fn a_host_that_is_not_there_is_unavailable() {
    let world = World::new().await;
    let gone = world.github.base_url.clone();
    drop(world);
    let forge = GitHubForge::new(setup(&gone, "s3cret")).unwrap();
    let mut error = forge.default_branch().await;
    // The listener closes a moment after the drop.
    while error.is_ok() {
        error = forge.default_branch().await;
    }
    let error = error.unwrap_err();
    assert!(
        matches!(&error, ForgeError::Unavailable { what, .. } if what == "repository acme/shop"),
        "{error:?}"
    );
    assert!(!format!("{error:?}").contains("s3cret"));
}
