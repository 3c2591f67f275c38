//! The forge on repositories that want programs to run.

use std::fs;

use codespar_forge::{Forge, ForgeError};
use codespar_protocol::{CommitId, MergeStrategy};

use crate::repository::{Repository, added, commit_all, forge_of, modified, order, write};

/// Everything that git could be made to run says that it ran.
fn plant(repo: &Repository) -> std::path::PathBuf {
    let mark = repo.home.path().join("ran");
    let evil = format!("touch {}; cat", mark.display());
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "merge.evil.driver",
        "diff.evil.textconv",
        "diff.evil.command",
        "core.fsmonitor",
    ] {
        repo.git(&["config", key, &evil]);
    }
    let hook = repo.root.join(".git/hooks/reference-transaction");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n{evil}\n")).unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    mark
}

#[tokio::test]
async fn committing_comparing_and_merging_run_nothing_of_the_repository() {
    let repo = Repository::new().await;
    write(
        &repo.root,
        ".gitattributes",
        "* filter=evil diff=evil merge=evil\n",
    );
    commit_all(&repo.root, "attributes");
    let mark = plant(&repo);
    let forge = forge_of(repo.home.path(), &repo.root).await;
    let head = repo
        .on("one", "k", vec![modified("b.txt", "c\n"), added("d", "d")])
        .await;
    repo.open("one").await;
    assert!(forge.diff(1).await.unwrap().contains("+c"));
    forge.mergeability(1).await.unwrap();
    forge.search(&["one".to_owned()], 5).await.unwrap();
    forge
        .merge(1, &order(MergeStrategy::Merge, &head))
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(repo.root.join("b.txt")).unwrap(), "c\n");
    assert!(!mark.exists());
}

#[tokio::test]
async fn a_missing_object_of_a_promisor_is_an_error_and_not_a_command() {
    let repo = Repository::new().await;
    let mark = repo.home.path().join("ran");
    let url = format!("ext::sh -c touch% {}", mark.display());
    repo.git(&["config", "remote.origin.url", &url]);
    repo.git(&["config", "remote.origin.promisor", "true"]);
    repo.git(&["config", "extensions.partialClone", "origin"]);
    repo.git(&["config", "protocol.ext.allow", "always"]);
    let blob = repo.git(&["rev-parse", "main:b.txt"]);
    let (dir, file) = blob.split_at(2);
    fs::remove_file(repo.root.join(".git/objects").join(dir).join(file)).unwrap();
    let forge = forge_of(repo.home.path(), &repo.root).await;
    let path = codespar_protocol::RepoPath::new("b.txt").unwrap();
    let error = forge.file(&repo.at("main"), &path).await.unwrap_err();
    assert!(matches!(error, ForgeError::Unavailable { .. }), "{error}");
    assert!(!mark.exists());
}

#[tokio::test]
async fn names_that_are_revisions_or_options_are_no_branches() {
    let repo = Repository::new().await;
    for name in ["main~0", "main^{commit}", "-x", "a..b", "main@{0}"] {
        assert_eq!(repo.forge.head(name).await.unwrap(), None, "{name}");
    }
    let none = repo.forge.tree(&CommitId("--output=x".to_owned())).await;
    assert!(matches!(none, Err(ForgeError::NotFound(_))), "{none:?}");
}
