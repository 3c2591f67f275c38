//! Files that cannot be shown to a model take no place among those that are.

use serde_json::json;

use crate::{
    common::Bench,
    repository::{FIX, GREET, answer, commit_all, dev, repository, script},
};

/// A repository in which one file can be shown, beside binary files and a link. One file is read.
fn mixed(picked: &[&str]) -> Bench {
    let bench = repository(
        script(picked, [answer("Say hi", FIX)]),
        &[
            ("greet.sh", GREET),
            (".codespar/settings.json", r#"{"dev":{"maxFiles":1}}"#),
        ],
    );
    // The names are those of sources, so only the content tells.
    std::fs::write(bench.work().join("say.sh"), b"\x7fELF\0\0say hi").unwrap();
    std::fs::write(bench.work().join("latin.sh"), b"# say hi \xe9\n").unwrap();
    std::os::unix::fs::symlink("greet.sh", bench.work().join("link.sh")).unwrap();
    commit_all(&bench, "Add files");
    bench.trust();
    bench
}

/// The files in the request to the model that writes.
fn shown(bench: &Bench) -> Vec<String> {
    let request = bench.server.last_request().unwrap().json().to_string();
    let parts = request.split("<file path=\\\"").skip(1);
    parts
        .map(|part| part.split('\\').next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_next_candidate_takes_the_place_of_a_binary_file_that_was_picked() {
    let bench = mixed(&["say.sh", "link.sh", "latin.sh", "greet.sh"]);
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(shown(&bench), ["greet.sh"]);
    assert_eq!(report["located"], json!(["greet.sh"]));
    // The user did not name any of them.
    assert_eq!(report["not_read"], json!(null));
}

#[test]
fn a_file_that_the_instruction_names_and_cannot_be_shown_is_reported() {
    let bench = mixed(&["greet.sh"]);
    let (report, code) = dev(
        &bench,
        &["make `say.sh` and `latin.sh` say hi", "--no-verify"],
    );
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(shown(&bench), ["greet.sh"]);
    assert_eq!(
        report["not_read"],
        json!([
            {"path": "say.sh", "reason": "it is not text"},
            {"path": "latin.sh", "reason": "it is not text"}
        ])
    );
    let id = report["task_id"].as_str().unwrap();
    let output = bench.run(&["task", "output", id]).stdout;
    assert!(
        output.contains("→ Not read: say.sh: it is not text"),
        "{output}"
    );
}
