//! Tests that run with the dependencies of the user's checkout, which stay as they are.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    process::Command,
};

use codespar_testkit::{Conversation, Matcher, Script, ScriptedModel, Turn, process::spawn};
use serde_json::{Value, json};

use crate::{
    common::{Bench, PATIENCE, parsed},
    repository::{answer, commit_all, dev, pull, repository, script},
};

/// Every file below a directory: kind and mode, time of change, content.
pub(crate) fn fingerprint(dir: &Path) -> BTreeMap<String, (u32, i64, i64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(path) = open.pop() {
        let facts = path.symlink_metadata().unwrap();
        let content = if facts.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            target.into_os_string().into_encoded_bytes()
        } else if facts.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            Vec::new()
        } else {
            fs::read(&path).unwrap()
        };
        all.insert(
            path.display().to_string(),
            (facts.mode(), facts.mtime(), facts.mtime_nsec(), content),
        );
    }
    assert!(all.len() > 1, "{} is empty", dir.display());
    all
}

/// A program whose test needs the package `tiny`, and the change that makes it pass.
pub(crate) const GREET_JS: &str = "module.exports = 'hello';\n";
pub(crate) const FIX_JS: &str = "===FILE: greet.js===\n<<<SEARCH\nmodule.exports = 'hello';\n>>>REPLACE\nmodule.exports = 'hi';\n===END===\n";
pub(crate) const TEST_JS: &str = "if (require('tiny') !== 42) throw new Error('another tiny');\n\
    if (require('./greet') !== 'hi') { console.log('1 failed'); process.exit(1); }\n\
    console.log('1 passed');\n";
pub(crate) const PACKAGE_JS: &str = r#"{"name": "p", "scripts": {"test": "node test.js"}}"#;

/// With `tiny` installed, as `npm install` leaves it.
pub(crate) fn with_node_modules(test: &str) -> Bench {
    let bench = repository(
        script(&["greet.js"], [answer("Say hi", FIX_JS)]),
        &[
            ("greet.js", GREET_JS),
            ("test.js", test),
            ("package.json", PACKAGE_JS),
            (".gitignore", "node_modules\n"),
        ],
    );
    bench.file("node_modules/tiny/package.json", r#"{"main": "tiny.js"}"#);
    bench.file("node_modules/tiny/tiny.js", "module.exports = 42;\n");
    bench
}

pub(crate) fn assert_verified(report: &Value, code: Option<i32>) {
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["not_verified"], Value::Null, "{report}");
    assert_eq!(report["verification"]["after"]["exit_code"], 0, "{report}");
}

#[test]
fn tests_see_the_installed_packages_of_the_checkout_and_cannot_change_them() {
    let vandal = "const fs = require('fs');\n\
        fs.writeFileSync('node_modules/tiny/tiny.js', 'module.exports = 42; // changed');\n\
        fs.writeFileSync('node_modules/new.js', 'x');\n\
        fs.utimesSync('node_modules', 1, 1);\n\
        fs.chmodSync('node_modules/tiny/package.json', 0o777);\n";
    // The mount itself cannot go, what is in it can.
    let removal = "for (const name of fs.readdirSync('node_modules')) {\n\
          fs.rmSync('node_modules/' + name, {recursive: true});\n\
        }\n\
        if (fs.readdirSync('node_modules').length) throw new Error('something is left');\n";
    let test = format!("{vandal}{TEST_JS}{removal}");
    let bench = with_node_modules(&test);
    let before = fingerprint(&bench.work().join("node_modules"));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
    assert_eq!(report["verification"]["before"]["counts"]["failed"], 1);
    assert_eq!(fingerprint(&bench.work().join("node_modules")), before);
    let left = bench.room.codespar_home().join("dev/runs");
    assert!(!left.exists() || fs::read_dir(left).unwrap().next().is_none());
}

#[test]
fn packages_of_nested_projects_are_seen_too() {
    let bench = repository(
        script(&["greet.js"], [answer("Say hi", FIX_JS)]),
        &[
            ("greet.js", GREET_JS),
            (
                "web/app/test.js",
                "if (require('tiny') !== 42 || require('../../greet') !== 'hi') process.exit(1);\n",
            ),
            ("web/app/package.json", "{}"),
            ("package.json", "{}"),
            (".gitignore", "node_modules/\n"),
        ],
    );
    bench.file(
        "web/app/node_modules/tiny/index.js",
        "module.exports = 42;\n",
    );
    let before = fingerprint(&bench.work().join("web/app/node_modules"));
    let (report, code) = dev(
        &bench,
        &["make it say hi", "--verify", "cd web/app && node test.js"],
    );
    assert_verified(&report, code);
    assert_eq!(
        fingerprint(&bench.work().join("web/app/node_modules")),
        before
    );
}

/// Runs a program that has to succeed. How the tests themselves were built does not count for what
/// it builds.
fn run(dir: &Path, program: &str, args: &[&str], env: &[(&str, &str)]) {
    let output = Command::new(program)
        .args(args)
        .env_remove("CARGO_PROFILE_DEV_DEBUG")
        .current_dir(dir)
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {said}");
}

#[test]
fn a_virtual_environment_works_with_its_scripts_and_with_the_project_installed_in_it() {
    let fix = "===FILE: src/calc.py===\n<<<SEARCH\ntwo = 3\n>>>REPLACE\ntwo = 2\n===END===\n";
    let bench = repository(
        script(&["src/calc.py"], [answer("Two is two", fix)]),
        &[
            ("src/calc.py", "two = 3\n"),
            (
                "test_calc.py",
                "import unittest, calc, tiny\n\
                 class T(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual((calc.two, tiny.value), (2, 42))\n",
            ),
            (".gitignore", ".venv\n"),
        ],
    );
    let work = bench.work().canonicalize().unwrap();
    let args = ["-m", "venv", "--without-pip", ".venv"];
    run(&work, "python3", &args, &[]);
    let packages = fs::read_dir(work.join(".venv/lib"))
        .unwrap()
        .next()
        .unwrap();
    let packages = packages.unwrap().path().join("site-packages");
    fs::write(packages.join("tiny.py"), "value = 42\n").unwrap();
    // As `pip install -e` does it: by the absolute path of the checkout.
    let source = work.join("src").display().to_string();
    fs::write(packages.join("project.pth"), source).unwrap();
    let check = work.join(".venv/bin/check");
    let text = format!(
        "#!{}/.venv/bin/python\nimport unittest\nunittest.main(module='test_calc')\n",
        work.display()
    );
    fs::write(&check, text).unwrap();
    fs::set_permissions(&check, fs::Permissions::from_mode(0o755)).unwrap();
    let before = fingerprint(&work.join(".venv"));
    for command in [
        "PYTHONPATH=. check",
        "python3 -m unittest",
        "python -m unittest",
    ] {
        let (report, code) = dev(&bench, &["make two two", "--verify", command]);
        assert_verified(&report, code);
        assert_eq!(
            report["verification"]["before"]["counts"],
            json!({"passed": 0, "failed": 1}),
            "{command}"
        );
        assert_eq!(fingerprint(&work.join(".venv")), before, "{command}");
    }
}

#[test]
fn a_warm_target_directory_spares_the_dependencies() {
    let fix = "===FILE: member/src/lib.rs===\n<<<SEARCH\n    3\n>>>REPLACE\n    2\n===END===\n";
    let bench = repository(
        script(&["member/src/lib.rs"], [answer("Two is two", fix)]),
        &[
            (
                "Cargo.toml",
                "[workspace]\nmembers = [\"member\"]\nresolver = \"2\"\n",
            ),
            (
                "member/Cargo.toml",
                "[package]\nname = \"member\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[dependencies]\ntiny = \"1\"\n",
            ),
            (
                "member/src/lib.rs",
                "pub fn two() -> u32 {\n    3\n}\n#[test]\nfn is_two() {\n    assert_eq!(two() + tiny::FORTY, 42);\n}\n",
            ),
            (".gitignore", "target\n"),
        ],
    );
    // A registry on disk. Its package can be built only where the variable is set.
    let home = bench.room.home();
    let package = home.join(".cargo/vendored/tiny");
    fs::create_dir_all(package.join("src")).unwrap();
    for (name, text) in [
        (
            "Cargo.toml",
            "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\nbuild = \"build.rs\"\n",
        ),
        (
            "build.rs",
            "fn main() {\n    println!(\"cargo:rerun-if-changed=build.rs\");\n    std::env::var(\"WARM\").expect(\"it is built again\");\n}\n",
        ),
        ("src/lib.rs", "pub const FORTY: u32 = 40;\n"),
        (".cargo-checksum.json", "{\"files\": {}}"),
    ] {
        fs::write(package.join(name), text).unwrap();
    }
    let config = format!(
        "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"{}\"\n",
        home.join(".cargo/vendored").display()
    );
    fs::write(home.join(".cargo/config.toml"), config).unwrap();
    let work = bench.work();
    let cargo_home = home.join(".cargo").display().to_string();
    let rustup_home = rustup_home();
    let env = [
        ("CARGO_HOME", cargo_home.as_str()),
        ("RUSTUP_HOME", rustup_home.as_str()),
        ("WARM", "1"),
    ];
    let args = ["test", "--no-run", "--quiet", "--offline"];
    run(&work, "cargo", &args, &env);
    commit_all(&bench, "Lock");
    let before = fingerprint(&work.join("target"));
    let mut command = bench.command(&["dev", "--json", "make two two"]);
    command.env("RUSTUP_HOME", &rustup_home);
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    let report = parsed(&finished.stdout);
    assert_verified(&report, finished.status.code());
    assert_eq!(report["verification"]["command"], "cargo test");
    assert_eq!(report["verification"]["before"]["counts"]["failed"], 1);
    assert_eq!(fingerprint(&work.join("target")), before);
}

/// Where the toolchain of these tests is.
pub(crate) fn rustup_home() -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    std::env::var("RUSTUP_HOME").unwrap_or_else(|_| format!("{home}/.rustup"))
}

#[test]
#[ignore = "needs go"]
fn a_go_module_is_tested_with_the_modules_of_the_user() {
    let fix =
        "===FILE: two.go===\n<<<SEARCH\nconst Two = 3\n>>>REPLACE\nconst Two = 2\n===END===\n";
    let bench = repository(
        script(&["two.go"], [answer("Two is two", fix)]),
        &[
            ("go.mod", "module example.com/two\n\ngo 1.19\n"),
            ("two.go", "package two\n\nconst Two = 3\n"),
            (
                "two_test.go",
                "package two\n\nimport (\n\t\"testing\"\n\n\t\"example.com/tiny\"\n)\n\n\
                 func TestTwo(t *testing.T) {\n\tif Two+tiny.Forty != 42 {\n\t\tt.Fatal(Two)\n\t}\n}\n",
            ),
            (".gitignore", "vendor\n"),
        ],
    );
    bench.file(
        "go.mod",
        "module example.com/two\n\ngo 1.19\n\nrequire example.com/tiny v1.0.0\n",
    );
    commit_all(&bench, "Require");
    bench.file(
        "vendor/modules.txt",
        "# example.com/tiny v1.0.0\n## explicit; go 1.19\nexample.com/tiny\n",
    );
    bench.file(
        "vendor/example.com/tiny/tiny.go",
        "package tiny\n\nconst Forty = 40\n",
    );
    let before = fingerprint(&bench.work().join("vendor"));
    let (report, code) = dev(&bench, &["make two two"]);
    assert_verified(&report, code);
    assert_eq!(report["verification"]["command"], "go test ./...");
    assert_eq!(fingerprint(&bench.work().join("vendor")), before);
}

#[test]
fn a_missing_program_or_module_is_named_and_nothing_is_paid_for_it() {
    for (test, command, expected) in [
        (TEST_JS, "npm test", "the module `tiny` is missing"),
        ("", "sh -c 'jest --ci'", "the program `jest` is missing"),
        (
            "",
            "python3 -c 'import tiny_package'",
            "the module `tiny_package` is missing",
        ),
    ] {
        let bench = with_node_modules(test);
        fs::remove_dir_all(bench.work().join("node_modules")).unwrap();
        let (report, code) = dev(&bench, &["make it say hi", "--verify", command]);
        assert_eq!(code, Some(0), "{report}");
        let reason = report["not_verified"].as_str().unwrap();
        assert!(
            reason.starts_with(&format!("cannot verify here: {expected}")),
            "{reason}"
        );
        assert!(reason.contains("`verify.setup`"), "{reason}");
        assert_eq!(report["pull_request"]["draft"], false, "{report}");
        // The picker and the writer.
        assert_eq!(bench.server.request_count(), 2, "{command}");
        let shown = pull(&bench, 1);
        let body = shown["pull_request"]["body"].as_str().unwrap();
        assert!(body.contains(expected), "{body}");
    }
}

#[test]
fn a_module_that_only_the_change_wants_is_a_failing_change() {
    let bad = "===FILE: greet.js===\n<<<SEARCH\nmodule.exports = 'hello';\n>>>REPLACE\nrequire('nowhere');\nmodule.exports = 'hi';\n===END===\n";
    let mended = "===FILE: greet.js===\n<<<SEARCH\nrequire('nowhere');\n>>>REPLACE\n===END===\n";
    let bench = with_node_modules(TEST_JS);
    let bench = Bench {
        server: ScriptedModel::start_blocking(script(
            &["greet.js"],
            [answer("Say hi", bad), answer("Say hi", mended)],
        ))
        .unwrap(),
        ..bench
    };
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_verified(&report, code);
    assert_eq!(bench.server.request_count(), 3);
    let repair = bench.server.last_request().unwrap().json().to_string();
    assert!(repair.contains("Cannot find module 'nowhere'"), "{repair}");
}

#[test]
fn an_agent_has_the_packages_in_its_tree_and_they_are_no_part_of_its_change() {
    let command =
        "echo '// planted' >> node_modules/tiny/tiny.js && sed -i s/hello/hi/ greet.js && npm test";
    let agent = Conversation::new("agent", Matcher::first_user_contains("throw-away copy"))
        .turn(Turn::tool("Bash", &json!({ "command": command })))
        .turn(Turn::text("Say hi"));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.js\"]"));
    let bench = Bench {
        server: ScriptedModel::start_blocking(
            Script::new().conversation(picker).conversation(agent),
        )
        .unwrap(),
        ..with_node_modules(TEST_JS)
    };
    let before = fingerprint(&bench.work().join("node_modules"));
    let args = [
        "make it say hi",
        "--engine",
        "agent",
        "--allowedTools",
        "Bash",
    ];
    let (report, code) = dev(&bench, &args);
    assert_verified(&report, code);
    assert_eq!(
        report["files"],
        json!([{"path": "greet.js", "change": "modified", "added": 1, "removed": 1}])
    );
    let results = bench.server.last_request().unwrap().json().to_string();
    assert!(results.contains("1 passed"), "{results}");
    assert_eq!(fingerprint(&bench.work().join("node_modules")), before);
}
