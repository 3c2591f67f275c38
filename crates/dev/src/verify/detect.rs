//! Which command tests a project, by the files at its root.

use std::path::Path;

/// The project's own test command, if its files tell.
pub fn detect(root: &Path) -> Option<String> {
    let has = |name: &str| root.join(name).is_file();
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
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
}
