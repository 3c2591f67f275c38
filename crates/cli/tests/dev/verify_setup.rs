//! Dependencies that are installed for the tests, from a registry on this machine.

use std::fs;

use serde_json::{Value, json};

use crate::{
    common::Bench,
    dependencies::{FIX_JS, GREET_JS, TEST_JS, assert_verified, fingerprint},
    github::Hub,
    registry::{self, Registry},
    repository::{answer, dev, repository, script},
};

pub(crate) fn settings(bench: &Bench, settings: &Value) {
    fs::create_dir_all(bench.room.codespar_home()).unwrap();
    let path = bench.room.codespar_home().join("settings.json");
    fs::write(path, settings.to_string()).unwrap();
}

/// The files of a project that needs `tiny`.
fn files(registry: &Registry) -> Vec<(&'static str, String)> {
    let [_, (_, lock)] = registry::project(&registry.url());
    let package = json!({
        "name": "p", "version": "1.0.0", "dependencies": {"tiny": "1.0.0"},
        "scripts": {"test": "node test.js"},
    });
    vec![
        ("greet.js", GREET_JS.to_owned()),
        ("test.js", TEST_JS.to_owned()),
        ("package.json", package.to_string()),
        ("package-lock.json", lock),
        (".gitignore", "node_modules\n".to_owned()),
    ]
}

fn borrowed<'a>(files: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    files
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect()
}

#[test]
fn a_clone_from_github_is_verified_with_what_the_setup_installs_once() {
    let registry = Registry::start();
    let files = files(&registry);
    for setup in [None, Some("npm ci --ignore-scripts")] {
        let turns = || script(&["greet.js"], [answer("Say hi", FIX_JS)]);
        let hub = Hub::with_files(turns(), &borrowed(&files));
        let mut wanted = json!({"sandbox": {"allowedDomains": [registry.name()]}});
        if let Some(setup) = setup {
            wanted["verify"] = json!({"setup": setup});
        }
        settings(&hub.bench, &wanted);
        let asked = registry.requests().len();
        let (report, code) = hub.dev(&["make it say hi"]);
        assert_verified(&report, code);
        assert_eq!(report["verification"]["command"], "npm test");
        assert_eq!(registry.requests().len(), asked + 1);
        // The next run has it from the cache.
        let (report, code) = hub.dev(&["make it say hi again", "--verify", "node test.js"]);
        assert_verified(&report, code);
        assert_eq!(registry.requests().len(), asked + 1);
    }
}

#[test]
fn what_is_older_than_its_lock_file_is_installed_anew_and_left_as_it_is_in_the_checkout() {
    let registry = Registry::start();
    let files = files(&registry);
    let bench = repository(
        script(&["greet.js"], [0; 3].map(|_| answer("Say hi", FIX_JS))),
        &borrowed(&files),
    );
    settings(
        &bench,
        &json!({"sandbox": {"allowedDomains": [registry.name()]}}),
    );
    bench.file("node_modules/tiny/index.js", "module.exports = 41;\n");
    // Written after it was installed.
    std::thread::sleep(std::time::Duration::from_millis(20));
    bench.file("package-lock.json", &files[3].1);
    let before = fingerprint(&bench.work().join("node_modules"));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
    assert_eq!(registry.requests().len(), 1);
    assert_eq!(fingerprint(&bench.work().join("node_modules")), before);
    // Not wanted: the tests see what there is.
    let (report, code) = dev(
        &bench,
        &[
            "make it say hi",
            "--verify-setup",
            "",
            "--verify",
            "node  test.js",
        ],
    );
    assert_eq!(code, Some(3), "{report}");
}

#[test]
fn without_mounts_the_packages_of_the_checkout_are_not_seen_and_a_setup_installs_into_the_copy() {
    let registry = Registry::start();
    let files = files(&registry);
    let bench = repository(
        script(&["greet.js"], [answer("Say hi", FIX_JS)]),
        &borrowed(&files),
    );
    settings(
        &bench,
        &json!({"sandbox": {"mode": "landlock", "allowedDomains": [registry.name()]}}),
    );
    bench.file("node_modules/tiny/index.js", "module.exports = 42;\n");
    let before = fingerprint(&bench.work().join("node_modules"));
    // Nothing is due: what is installed is newer than the lock file. The tests miss it.
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
    assert_eq!(registry.requests().len(), 1);
    assert_eq!(fingerprint(&bench.work().join("node_modules")), before);
    let args = [
        "make it say hi",
        "--verify-setup",
        "",
        "--verify",
        "node test.js",
    ];
    let (report, code) = dev(&bench, &args);
    assert_eq!(code, Some(0), "{report}");
    let reason = report["not_verified"].as_str().unwrap();
    assert!(reason.contains("the module `tiny` is missing"), "{reason}");
}
