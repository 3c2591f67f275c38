//! What the user's git would do with a commit: sign it, and run the repository's hooks on it.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use codespar_testkit::{CapturedRequest, Script};

use crate::{
    common::Bench,
    repository::{FIX, answer, dev, git, greeting, script},
};

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn fix() -> Script {
    script(&["greet.sh"], [answer("Say hi", FIX)])
}

/// Signs as git expects it of `gpg`.
const SIGNER: &str = "#!/bin/sh\ncat >/dev/null\n\
    printf '\\n[GNUPG:] SIG_CREATED D 1 8 00 1 X\\n' >&2\n\
    printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nZmFrZQ==\\n-----END PGP SIGNATURE-----\\n'\n";

/// The user wants signatures, made by a program with this text.
fn sign_with(bench: &Bench, text: &str) {
    let signer = bench.room.home().join("signer");
    program(&signer, text);
    let config = format!(
        "[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {}\n",
        signer.display()
    );
    fs::write(bench.room.home().join(".gitconfig"), config).unwrap();
}

fn is_signed(bench: &Bench, commit: &str) -> bool {
    let object = git(&bench.work(), &["cat-file", "commit", commit]);
    object.contains("\ngpgsig -----BEGIN PGP SIGNATURE-----\n")
}

#[test]
fn commits_and_merges_are_signed_where_the_users_git_signs() {
    let bench = greeting(fix());
    sign_with(&bench, SIGNER);
    bench.trust();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert!(report["not_signed"].is_null(), "{report}");
    assert!(is_signed(&bench, report["branch"].as_str().unwrap()));
    let merged = bench.run(&["merge", "1", "--merge"]);
    assert_eq!(merged.status.code(), Some(0), "{}", merged.stderr);
    assert!(!merged.stdout.contains("not signed"), "{}", merged.stdout);
    assert!(is_signed(&bench, "main"));
}

#[test]
fn a_commit_that_cannot_be_signed_is_made_and_the_report_says_why() {
    let bench = greeting(fix());
    sign_with(
        &bench,
        "#!/bin/sh\ncat >/dev/null\necho no secret key >&2\nexit 2\n",
    );
    let finished = bench.run(&["dev", "make it say hi"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let line = finished
        .stdout
        .lines()
        .find(|line| line.starts_with("→ Not signed: "));
    assert!(
        line.unwrap().contains("no secret key"),
        "{}",
        finished.stdout
    );
    let merged = bench.run(&["merge", "1", "--squash"]);
    assert_eq!(merged.status.code(), Some(0), "{}", merged.stderr);
    assert!(merged.stdout.contains("not signed: "), "{}", merged.stdout);
    assert!(!is_signed(&bench, "main"));
}

#[test]
fn a_repository_names_no_program_that_signs() {
    let bench = greeting(fix());
    let work = bench.work();
    let evil = format!("#!/bin/sh\ntouch {}/ran\n", bench.room.home().display());
    program(&bench.room.home().join("evil"), &evil);
    let evil = bench.room.home().join("evil").display().to_string();
    git(&work, &["config", "commit.gpgSign", "true"]);
    git(&work, &["config", "gpg.program", &evil]);
    git(&work, &["config", "gpg.ssh.defaultKeyCommand", &evil]);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert!(
        report["not_signed"].is_null(),
        "it is not the user's wish: {report}"
    );
    sign_with(&bench, SIGNER);
    let merged = bench.run(&["merge", "1", "--merge"]);
    assert_eq!(merged.status.code(), Some(0), "{}", merged.stderr);
    assert!(is_signed(&bench, "main"), "the user's own program signs");
    assert!(!bench.room.home().join("ran").exists());
}

/// A hook that is content if the change is staged, and tries to leave something outside.
fn hook(bench: &Bench, end: &str) {
    let outside = bench.room.home().join("escaped");
    let text = format!(
        "#!/bin/sh\ngit diff --cached --name-only | grep -qx greet.sh || exit 9\n\
         touch {} 2>/dev/null\n{end}\n",
        outside.display()
    );
    program(&bench.work().join(".git/hooks/pre-commit"), &text);
}

#[test]
fn the_hook_of_a_trusted_repository_runs_in_the_sandbox_and_is_named() {
    let bench = greeting(fix());
    hook(&bench, "exit 0");
    bench.trust();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let hooks = report["verification"]["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 1, "{report}");
    assert_eq!(hooks[0]["name"], ".git/hooks/pre-commit");
    assert_eq!(hooks[0]["run"]["exit_code"], 0, "{report}");
    assert_eq!(report["pull_request"]["draft"], false);
    assert!(!bench.room.home().join("escaped").exists());
    let body = crate::repository::pull(&bench, 1)["pull_request"]["body"].to_string();
    assert!(
        body.contains("Hook `.git/hooks/pre-commit` of the repository: passed"),
        "{body}"
    );
}

#[test]
fn a_hook_that_refuses_the_change_makes_it_a_draft() {
    let bench = greeting(fix());
    hook(&bench, "echo lines are too long; exit 1");
    bench.trust();
    let finished = bench.run(&["dev", "make it say hi"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let text = &finished.stdout;
    assert!(
        text.contains("Draft ready: a hook of the repository refuses it"),
        "{text}"
    );
    assert!(
        text.contains("→ Hook .git/hooks/pre-commit: failed with exit code 1"),
        "{text}"
    );
    assert!(text.contains("→ PR #1 (draft): "), "{text}");
}

fn is_for_writer(request: &CapturedRequest) -> bool {
    request.system_text().contains("turns an instruction into")
}

/// Refuses a greeting without a comment, and says so.
const WANTS_COMMENT: &str =
    "grep -q '# short' greet.sh || { echo greet.sh:2 needs a comment; exit 1; }";

const COMMENTED: &str =
    "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hi\n>>>REPLACE\ngreeting=hi # short\n===END===\n";

#[test]
fn a_hook_that_refuses_the_change_is_given_to_the_repair() {
    let answers = [answer("Say hi", FIX), answer("Say hi, shortly", COMMENTED)];
    let bench = greeting(script(&["greet.sh"], answers));
    hook(&bench, WANTS_COMMENT);
    bench.trust();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let hooks = report["verification"]["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 1, "{report}");
    assert_eq!(hooks[0]["run"]["exit_code"], 0, "{report}");
    assert_eq!(report["pull_request"]["draft"], false, "{report}");
    let branch = report["branch"].as_str().unwrap();
    let file = git(&bench.work(), &["show", &format!("{branch}:greet.sh")]);
    assert!(file.contains("greeting=hi # short"), "{file}");
    let requests = bench.server.requests();
    let mut writers = requests.iter().filter(|request| is_for_writer(request));
    let asked = writers.next_back().unwrap().messages().last().unwrap();
    let asked = asked.to_string();
    for part in [
        "`.git/hooks/pre-commit` of the repository failed with exit code 1",
        "greet.sh:2 needs a comment",
    ] {
        assert!(asked.contains(part), "{asked}");
    }
}

#[test]
fn a_repair_that_does_not_help_with_a_hook_ends_as_a_draft_that_names_it() {
    let elsewhere = "===FILE: other.sh===\necho other\n===END===\n";
    let more = "===FILE: third.sh===\necho third\n===END===\n";
    let answers = [
        answer("Say hi", FIX),
        answer("Say hi", elsewhere),
        answer("Say hi", more),
    ];
    let bench = greeting(script(&["greet.sh"], answers));
    hook(&bench, WANTS_COMMENT);
    bench.trust();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["pull_request"]["draft"], true, "{report}");
    let hooks = report["verification"]["hooks"].as_array().unwrap();
    assert_eq!(hooks[0]["run"]["exit_code"], 1, "{report}");
    // The hook says the same as before the repair: nobody is asked again.
    let requests = bench.server.requests();
    let writers = requests.iter().filter(|request| is_for_writer(request));
    assert_eq!(writers.count(), 2);
}

#[test]
fn the_hook_of_a_repository_that_is_not_trusted_does_not_run() {
    let bench = greeting(fix());
    hook(&bench, "exit 1");
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert!(report["verification"]["hooks"].is_null(), "{report}");
    assert_eq!(report["pull_request"]["draft"], false);
}
