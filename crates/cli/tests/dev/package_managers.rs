//! Dependencies that the package managers themselves install for the tests, as lock files say, from
//! an index on this machine.

use std::{fs, path::Path, process::Command};

use serde_json::json;

use crate::{
    dependencies::{assert_verified, rustup_home},
    file_server::FileServer,
    github::Hub,
    repository::{answer, script},
    verify_setup::settings,
};

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output.stdout
}

/// `tiny` 1.0.0, which is 42, as a wheel in an index.
fn python_index() -> FileServer {
    let server = FileServer::start();
    let dir = tempfile::tempdir().unwrap();
    let about = "tiny-1.0.0.dist-info";
    fs::create_dir(dir.path().join(about)).unwrap();
    for (name, text) in [
        ("tiny.py", "VALUE = 42\n".to_owned()),
        (
            "tiny-1.0.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0.0\n".to_owned(),
        ),
        (
            "tiny-1.0.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
                .to_owned(),
        ),
        (
            "tiny-1.0.0.dist-info/RECORD",
            format!("tiny.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n"),
        ),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let wheel = "tiny-1.0.0-py3-none-any.whl";
    let args = ["-m", "zipfile", "-c", wheel, "tiny.py", about];
    output(Command::new("python3").args(args).current_dir(dir.path()));
    server.file(
        &format!("/files/{wheel}"),
        fs::read(dir.path().join(wheel)).unwrap(),
    );
    server.file(
        "/simple/tiny/",
        format!("<a href=\"/files/{wheel}\">{wheel}</a>"),
    );
    server
}

#[test]
#[ignore = "needs python3 with pip"]
fn pip_installs_what_requirements_name_for_a_clone_from_github() {
    let server = python_index();
    let fix = "===FILE: calc.py===\n<<<SEARCH\nTWO = 3\n>>>REPLACE\nTWO = 2\n===END===\n";
    let test = "import unittest, calc, tiny\n\
        class Test(unittest.TestCase):\n    \
            def test_it(self):\n        self.assertEqual(calc.TWO + 40, tiny.VALUE)\n";
    let hub = Hub::with_files(
        script(&["calc.py"], [0; 2].map(|_| answer("Two is two", fix))),
        &[
            ("calc.py", "TWO = 3\n"),
            ("test_calc.py", test),
            ("requirements.txt", "tiny==1.0.0\n"),
            (".gitignore", ".venv\n__pycache__\n"),
        ],
    );
    let config = hub.bench.room.home().join(".config/pip");
    fs::create_dir_all(&config).unwrap();
    let index = format!("[global]\nindex-url = {}/simple\n", server.url());
    fs::write(config.join("pip.conf"), index).unwrap();
    let wanted = json!({"sandbox": {"allowedDomains": [server.name()]}});
    settings(&hub.bench, &wanted);
    let (report, code) = hub.dev(&["two is two", "--verify", "python3 -m unittest"]);
    assert_verified(&report, code);
    assert_eq!(report["verification"]["before"]["counts"]["failed"], 1);
    let asked = server.requests();
    assert!(asked.iter().any(|path| path.ends_with(".whl")), "{asked:?}");
    // The next run has it from what was installed.
    let (report, code) = hub.dev(&["again", "--verify", "python3 -m unittest -v"]);
    assert_verified(&report, code);
    assert_eq!(server.requests(), asked);
}

/// `tiny` 1.0.0, which has a constant, as a crate in a sparse registry.
fn cargo_index() -> FileServer {
    let server = FileServer::start();
    let dir = tempfile::tempdir().unwrap();
    let package = dir.path().join("tiny-1.0.0");
    fs::create_dir_all(package.join("src")).unwrap();
    let manifest = "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::write(package.join("src/lib.rs"), "pub const FORTY: u32 = 40;\n").unwrap();
    let args = ["-czf", "tiny.crate", "tiny-1.0.0"];
    output(Command::new("tar").args(args).current_dir(dir.path()));
    let file = dir.path().join("tiny.crate");
    let sum = output(Command::new("sha256sum").arg(&file));
    let sum = String::from_utf8(sum).unwrap();
    let entry = json!({
        "name": "tiny", "vers": "1.0.0", "deps": [], "features": {}, "yanked": false,
        "cksum": sum.split(' ').next(),
    });
    let dl = format!("{}/dl/{{crate}}-{{version}}.crate", server.url());
    server.file("/index/config.json", json!({"dl": dl}).to_string());
    server.file("/index/ti/ny/tiny", format!("{entry}\n"));
    server.file("/dl/tiny-1.0.0.crate", fs::read(file).unwrap());
    server
}

fn registry_config(dir: &Path, server: &FileServer) {
    fs::create_dir_all(dir).unwrap();
    let config = format!(
        "[source.crates-io]\nreplace-with = \"local\"\n\
         [source.local]\nregistry = \"sparse+{}/index/\"\n",
        server.url()
    );
    fs::write(dir.join("config.toml"), config).unwrap();
}

#[test]
fn cargo_fetches_what_the_lock_file_names_for_a_clone_from_github() {
    let server = cargo_index();
    let manifest = "[package]\nname = \"calc\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\
                    [dependencies]\ntiny = \"1\"\n";
    let code = "pub fn two() -> u32 {\n    3\n}\n#[test]\nfn is_two() {\n    \
                assert_eq!(two() + tiny::FORTY, 42);\n}\n";
    let project = tempfile::tempdir().unwrap();
    fs::create_dir(project.path().join("src")).unwrap();
    fs::write(project.path().join("Cargo.toml"), manifest).unwrap();
    fs::write(project.path().join("src/lib.rs"), code).unwrap();
    let cargo_home = project.path().join("cargo-home");
    registry_config(&cargo_home, &server);
    output(
        Command::new("cargo")
            .arg("generate-lockfile")
            .current_dir(project.path())
            .env("CARGO_HOME", &cargo_home)
            .env("RUSTUP_HOME", rustup_home()),
    );
    let lock = fs::read_to_string(project.path().join("Cargo.lock")).unwrap();
    let fix = "===FILE: lib.rs===\n<<<SEARCH\n    3\n>>>REPLACE\n    2\n===END===\n";
    let manifest = format!("{manifest}[lib]\npath = \"lib.rs\"\n");
    let hub = Hub::with_files(
        script(&["lib.rs"], [0; 2].map(|_| answer("Two is two", fix))),
        &[
            ("Cargo.toml", manifest.as_str()),
            ("Cargo.lock", lock.as_str()),
            ("lib.rs", code),
            (".gitignore", "target\n"),
        ],
    );
    registry_config(&hub.bench.room.home().join(".cargo"), &server);
    let wanted = json!({"sandbox": {"allowedDomains": [server.name()]}});
    settings(&hub.bench, &wanted);
    let env = [("RUSTUP_HOME", rustup_home())];
    let (report, code) = hub.dev_with(&env, &["two is two"]);
    assert_verified(&report, code);
    assert_eq!(report["verification"]["command"], "cargo test");
    assert_eq!(report["verification"]["before"]["counts"]["failed"], 1);
    let asked = server.requests();
    assert!(
        asked.iter().any(|path| path.starts_with("/dl/")),
        "{asked:?}"
    );
    // The next run has it from what was fetched.
    let (report, code) = hub.dev_with(&env, &["again", "--verify", "cargo test --lib"]);
    assert_verified(&report, code);
    assert_eq!(server.requests(), asked);
}
