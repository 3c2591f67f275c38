//! Which command tests a project, by the files at its root.

use std::path::Path;

/// A longer file says nothing about tests.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The project's own test command, if its files tell. A file that leads out of the project or is
/// no regular file says nothing.
pub fn detect(root: &Path) -> Option<String> {
    let has = |name: &str| root.join(name).is_file();
    let read = |name: &str| read(root, name);
    if has("Cargo.toml") {
        return Some("cargo test".to_owned());
    }
    if has("package.json") && node_script(&read("package.json")) {
        let runner = if has("pnpm-lock.yaml") {
            "pnpm"
        } else if has("yarn.lock") {
            "yarn"
        } else {
            "npm"
        };
        return Some(format!("{runner} test"));
    }
    if has("go.mod") {
        return Some("go test ./...".to_owned());
    }
    let pytest = has("pytest.ini")
        || has("pyproject.toml")
        || read("setup.cfg").contains("[tool:pytest]")
        || read("tox.ini").contains("[pytest]");
    if pytest {
        return Some("python3 -m pytest -q".to_owned());
    }
    ["Makefile", "makefile", "GNUmakefile"]
        .iter()
        .any(|name| makes_tests(&read(name)))
        .then(|| "make test".to_owned())
}

fn read(root: &Path, name: &str) -> String {
    let bytes = codespar_files::read_inside(root, Path::new(name), MAX_BYTES);
    bytes
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// Whether there is a test script, other than the one that `npm init` writes.
fn node_script(package: &str) -> bool {
    let json: serde_json::Value = serde_json::from_str(package).unwrap_or_default();
    json.pointer("/scripts/test")
        .and_then(serde_json::Value::as_str)
        .is_some_and(|script| !script.contains("no test specified"))
}

fn makes_tests(makefile: &str) -> bool {
    makefile.lines().any(|line| {
        line.strip_prefix("test").is_some_and(|rest| {
            let rest = rest.trim_start();
            rest.starts_with(':') && !rest.starts_with(":=")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_at_the_root_tell_the_command() {
        for (name, text, command) in [
            ("Cargo.toml", "", Some("cargo test")),
            (
                "package.json",
                r#"{"scripts":{"test":"node t.js"}}"#,
                Some("npm test"),
            ),
            (
                "package.json",
                r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#,
                None,
            ),
            ("package.json", "{", None),
            ("go.mod", "", Some("go test ./...")),
            ("pyproject.toml", "", Some("python3 -m pytest -q")),
            ("pytest.ini", "", Some("python3 -m pytest -q")),
            (
                "Makefile",
                "all:\n\ttrue\ntest: all\n\tsh t.sh\n",
                Some("make test"),
            ),
            ("Makefile", "test := 1\ntesting:\n", None),
            ("README.md", "", None),
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(name), text).unwrap();
            assert_eq!(detect(dir.path()).as_deref(), command, "{name} {text}");
        }
    }
    #[test]
    fn a_file_that_is_a_device_a_pipe_or_elsewhere_says_nothing() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().unwrap();
        let text = "[tool:pytest]\n[pytest]\ntest:\n";
        std::fs::write(outside.path().join("file"), text).unwrap();
        let pipe = outside.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let targets = ["/dev/zero".into(), pipe, outside.path().join("file")];
        for name in ["setup.cfg", "tox.ini", "Makefile", "package.json"] {
            for target in &targets {
                let dir = tempfile::tempdir().unwrap();
                symlink(target, dir.path().join(name)).unwrap();
                assert_eq!(detect(dir.path()), None, "{name} {}", target.display());
            }
        }
    }
}
