//! Objects that nothing refers to yet, beside somebody who collects garbage.

use codespar_git::{Quarantine, Repository, Trust};

use crate::scene::{Scene, git, plain};

#[test]
fn kept_objects_outlive_a_collection_and_are_collected_when_given_up() {
    let scene = Scene::new();
    let repository = Repository::find(&scene.root, Trust::Untrusted).unwrap();
    let outside = repository.git().unwrap();
    let quarantine = Quarantine::new(&outside, repository.location()).unwrap();
    let call = quarantine.git().call(["hash-object", "-w", "--stdin"]);
    let blob = call.input("new").run().unwrap().checked().unwrap().text();
    let is_there = || {
        plain(&scene.root, &["cat-file", "-e", &blob])
            .status
            .success()
    };
    assert!(!is_there());
    let kept = quarantine.keep().unwrap();
    git(&scene.root, &["gc", "--quiet", "--prune=now"]);
    assert!(is_there());
    drop(kept);
    git(&scene.root, &["gc", "--quiet", "--prune=now"]);
    assert!(!is_there());
}
