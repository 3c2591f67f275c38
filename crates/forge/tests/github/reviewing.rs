//! Reviews.

use codespar_forge::{Forge, NewReview};
use codespar_protocol::{CommitId, Review, ReviewComment, Verdict};

use crate::world::{LONG_FILE, World};

fn comment(path: &str, line: u32, body: &str) -> ReviewComment {
    ReviewComment {
        path: path.to_owned(),
        line,
        body: body.to_owned(),
    }
}

fn new_review(commit: &CommitId, comments: Vec<ReviewComment>) -> NewReview {
    NewReview {
        commit: commit.clone(),
        verdict: Verdict::RequestChanges,
        body: "Two things.\n<!-- codespar-key: r1 -->".to_owned(),
        comments,
        key: "r1".to_owned(),
    }
}

/// Line 10 of the long file changes; its diff shows 7 to 13.
async fn world_with_pull() -> (World, CommitId) {
    let world = World::new().await;
    let pull = world
        .pull(
            "codespar/a",
            "src/long.txt",
            &LONG_FILE.replace("10\n", "ten\n"),
        )
        .await;
    (world, pull.head_commit)
}

#[tokio::test]
async fn a_review_is_posted_once_with_its_comments() {
    let (world, head) = world_with_pull().await;
    let alice = world.forge_as("alice-token");
    let comments = vec![
        comment("src/long.txt", 10, "why?"),
        comment("src/long.txt", 13, "hm"),
    ];
    let new = new_review(&head, comments.clone());
    let posted = alice.review(1, &new).await.unwrap();
    let expected = Review {
        id: posted.id.clone(),
        author: "alice".to_owned(),
        verdict: Verdict::RequestChanges,
        body: new.body.clone(),
        comments,
        commit: head,
        at: posted.at,
    };
    assert_eq!(posted, expected);
    assert_eq!(alice.review(1, &new).await.unwrap(), expected);
    assert_eq!(world.forge.reviews(1).await.unwrap(), [expected]);
    assert_eq!(world.count("POST /pulls/1/reviews"), 1);
}

#[tokio::test]
async fn comments_outside_the_diff_move_into_the_body_and_the_others_stay() {
    let (world, head) = world_with_pull().await;
    let inside = comment("src/long.txt", 7, "fine");
    let new = new_review(
        &head,
        vec![
            inside.clone(),
            comment("src/long.txt", 14, "far\noff"),
            comment("README.md", 1, "not touched"),
        ],
    );
    let posted = world.forge_as("alice-token").review(1, &new).await.unwrap();
    assert_eq!(posted.comments, [inside]);
    assert_eq!(
        posted.body,
        "Two things.\n<!-- codespar-key: r1 -->\n\nOn lines that the diff does not show:\n\n- \
         `src/long.txt:14`: far\n  off\n- `README.md:1`: not touched"
    );
    assert_eq!(world.forge.reviews(1).await.unwrap(), [posted]);
}

#[tokio::test]
async fn a_verdict_on_ones_own_work_goes_into_words() {
    let (world, head) = world_with_pull().await;
    let new = new_review(&head, vec![comment("README.md", 1, "x")]);
    let posted = world.forge.review(1, &new).await.unwrap();
    assert_eq!(posted.verdict, Verdict::Comment);
    assert_eq!(
        posted.body,
        "Verdict: changes are needed.\n\nTwo things.\n<!-- codespar-key: r1 -->\n\nOn lines that the \
         diff does not show:\n\n- `README.md:1`: x"
    );
}

#[tokio::test]
async fn a_key_that_someone_else_copied_does_not_count() {
    let (world, head) = world_with_pull().await;
    let new = new_review(&head, Vec::new());
    world.forge_as("carol-token").review(1, &new).await.unwrap();
    let ours = world.forge_as("alice-token").review(1, &new).await.unwrap();
    assert_eq!(ours.author, "alice");
    assert_eq!(world.github.review_count(1), 2);
}

#[tokio::test]
async fn a_review_that_is_refused_for_good_is_an_error() {
    let (world, _) = world_with_pull().await;
    let new = new_review(
        &CommitId("f".repeat(40)),
        vec![comment("src/long.txt", 10, "x")],
    );
    let error = world
        .forge_as("alice-token")
        .review(1, &new)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a review of pull request #1 of acme/shop: Unprocessable Entity: The commit is not part of \
         the pull request (422)"
    );
    assert_eq!(world.github.review_count(1), 0);
}

#[tokio::test]
async fn more_than_a_page_of_reviews_comes_in_order() {
    let (world, head) = world_with_pull().await;
    let alice = world.forge_as("alice-token");
    for number in 0..101 {
        let mut new = new_review(&head, Vec::new());
        new.key = format!("k{number}");
        new.body = format!("{number}\n<!-- codespar-key: k{number} -->");
        alice.review(1, &new).await.unwrap();
    }
    let reviews = world.forge.reviews(1).await.unwrap();
    let numbers: Vec<&str> = reviews
        .iter()
        .filter_map(|review| review.body.lines().next())
        .collect();
    assert_eq!(
        numbers,
        (0..101)
            .map(|number| number.to_string())
            .collect::<Vec<_>>()
    );
}
