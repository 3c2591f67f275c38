//! Repositories that want git to run programs, and merges that were cut short.

use std::{fs, path::PathBuf};

use crate::{
    common::{Bench, parsed},
    repository::{FIX, answer, branches, dev, git, greeting, pull, script},
};

/// Everything of the repository's that git could run says that it ran.
fn plant(bench: &Bench) -> PathBuf {
    let work = bench.work();
    let mark = work.with_file_name("ran-outside");
    let evil = format!("touch {}; cat", mark.display());
    fs::write(
        work.join(".git/info/attributes"),
        "* filter=evil diff=evil merge=evil\n",
    )
    .unwrap();
    let url = format!("ext::sh -c touch% {}", mark.display());
    for (key, value) in [
        ("filter.evil.clean", evil.as_str()),
        ("filter.evil.smudge", &evil),
        ("diff.evil.command", &evil),
        ("diff.evil.textconv", &evil),
        ("merge.evil.driver", &evil),
        ("core.fsmonitor", &evil),
        ("remote.origin.url", &url),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("protocol.ext.allow", "always"),
    ] {
        // Not through git, which would obey what is planted already.
        let (section, name) = key.rsplit_once('.').unwrap();
        let section = match section.split_once('.') {
            Some((section, sub)) => format!("{section} \"{sub}\""),
            None => section.to_owned(),
        };
        let path = work.join(".git/config");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("{text}[{section}]\n\t{name} = \"{value}\"\n")).unwrap();
    }
    for hook in [
        "reference-transaction",
        "post-checkout",
        "post-merge",
        "post-index-change",
    ] {
        let path = work.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{evil}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, mode).unwrap();
    }
    mark
}

#[test]
fn dev_locate_diff_and_merge_run_nothing_of_the_repository() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let mark = plant(&bench);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    for args in [
        &["locate", "the greeting"][..],
        &["pr", "diff", "1"],
        &["doctor"],
        &["merge", "1"],
    ] {
        let finished = bench.run(args);
        assert_eq!(
            finished.status.code(),
            Some(0),
            "{args:?}: {}",
            finished.stderr
        );
    }
    let text = fs::read_to_string(bench.work().join("greet.sh")).unwrap();
    assert!(text.contains("greeting=hi"), "{text}");
    assert!(!mark.exists());
}

#[test]
fn a_missing_promised_object_stops_dev_and_fetches_nothing() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let blob = git(&bench.work(), &["rev-parse", "HEAD:greet.sh"]);
    let mark = plant(&bench);
    let (dir, file) = blob.trim().split_at(2);
    fs::remove_file(bench.work().join(".git/objects").join(dir).join(file)).unwrap();
    let finished = bench.run(&["dev", "--json", "make it say hi"]);
    assert_ne!(finished.status.code(), Some(0), "{}", finished.stdout);
    assert!(!mark.exists());
}

/// As a merge leaves it that is killed after the base moved and before that is on record.
fn move_the_base(bench: &Bench, head: &str) -> String {
    let work = bench.work();
    let tree = git(&work, &["rev-parse", &format!("{head}^{{tree}}")]);
    let message = format!("Merge\n\nCodeSpar-Merge: #1 {head}\n");
    let args = [
        "commit-tree",
        tree.trim(),
        "-p",
        "main",
        "-p",
        head,
        "-m",
        &message,
    ];
    let merged = git(&work, &args).trim().to_owned();
    git(&work, &["merge", "--quiet", "--ff-only", &merged]);
    merged
}

#[test]
fn a_merge_that_was_killed_before_its_record_is_finished_by_the_next_one() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let head = pull(&bench, 1)["pull_request"]["head_commit"].clone();
    let head = match head.as_str() {
        Some(head) => head.to_owned(),
        None => git(
            &bench.work(),
            &["rev-parse", report["branch"].as_str().unwrap()],
        )
        .trim()
        .to_owned(),
    };
    let merged = move_the_base(&bench, &head);
    let finished = bench.run(&["merge", "1", "--json"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(parsed(&finished.stdout)["commit"], merged.as_str());
    assert_eq!(git(&bench.work(), &["rev-parse", "main"]).trim(), merged);
    assert!(branches(&bench).is_empty());
    let again = bench.run(&["merge", "1"]);
    assert!(again.stderr.contains("it is merged"), "{}", again.stderr);
}
