//! Throw-away work trees.

use codespar_forge::{ForgeError, check_out, remove_checkout};

use crate::repository::{Repository, commit_all, git, write};

#[tokio::test]
async fn a_checkout_has_the_commits_files_and_goes_without_a_trace() {
    let repo = Repository::new().await;
    let first = repo.at("main");
    write(&repo.root, "b.txt", "later\n");
    commit_all(&repo.root, "later");
    let before = repo.belongings();
    let path = repo.home.path().join("trees/verify 1");
    // Again after a crash, with something left behind in it.
    for _ in 0..2 {
        check_out(&repo.root, &first, &path).await.unwrap();
        let text = std::fs::read_to_string(path.join("b.txt")).unwrap();
        assert_eq!(text, "b\n");
        assert_eq!(git(&path, &["rev-parse", "HEAD"]), first.0);
        assert!(!path.join("left").exists());
        write(&path, "left", "x");
        write(&path, "b.txt", "changed");
    }
    assert_eq!(repo.belongings(), before);
    remove_checkout(&repo.root, &path).await.unwrap();
    assert!(!path.exists());
    remove_checkout(&repo.root, &path).await.unwrap();
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(repo.git(&["branch", "--list"]), "* main");

    check_out(&repo.root, &first, &path).await.unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    check_out(&repo.root, &first, &path).await.unwrap();
    assert!(path.join("b.txt").exists());
}

#[tokio::test]
async fn what_is_no_checkout_is_left_alone() {
    let repo = Repository::new().await;
    let path = repo.home.path().join("precious");
    write(&path, "thesis.txt", "x");
    for refused in [
        check_out(&repo.root, &repo.at("main"), &path).await,
        remove_checkout(&repo.root, &path).await,
        remove_checkout(&repo.root, &repo.root).await,
    ] {
        assert!(
            matches!(refused, Err(ForgeError::Refused(_))),
            "{refused:?}"
        );
    }
    assert!(path.join("thesis.txt").exists() && repo.root.join("b.txt").exists());
}
