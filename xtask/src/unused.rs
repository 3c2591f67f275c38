//! Dependencies that a crate declares and never speaks of.
//!
//! A text search and not a compiler: a dependency counts as used if some source of the crate names
//! it as a word. A name in a string counts as a use; a dependency that is there only to enable a
//! feature is reported.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::metadata::Package;

/// One line for each dependency of the package, dev and build dependencies included.
pub(crate) fn problems(package: &Package) -> Result<Vec<String>> {
    let folder = package
        .manifest_path
        .parent()
        .with_context(|| format!("{} has no folder", package.name))?;
    let sources = sources(folder)?;
    let mut problems = Vec::new();
    for dependency in &package.dependencies {
        let name = dependency.crate_name();
        if !sources.iter().any(|source| speaks_of(source, &name)) {
            problems.push(format!(
                "{} declares `{}` and never uses it",
                package.name, dependency.name
            ));
        }
    }
    Ok(problems)
}

/// The text of all Rust sources of a crate.
fn sources(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = ["src", "tests", "benches", "examples", "build.rs"]
        .iter()
        .map(|name| folder.join(name))
        .filter(|path| path.exists())
        .collect();
    while let Some(path) = open.pop() {
        let place = || format!("cannot read {}", path.display());
        if path.is_dir() {
            for entry in fs::read_dir(&path).with_context(place)? {
                open.push(entry.with_context(place)?.path());
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(fs::read_to_string(&path).with_context(place)?);
        }
    }
    Ok(found)
}

/// Whether the name occurs as a word outside of line comments.
fn speaks_of(source: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    source
        .lines()
        .map(|line| line.trim_start())
        // Documentation may hold code that is compiled; other comments do not count.
        .filter(|line| {
            !line.starts_with("//") || line.starts_with("///") || line.starts_with("//!")
        })
        .any(|line| line.split(|c| !is_word(c)).any(|word| word == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    #[test]
    fn a_dependency_is_used_when_some_source_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "src/deep/er.rs",
            "use tree_sitter::Parser;\n// anyhow is not used\n",
        );
        write("tests/it.rs", "serde_json::json!(1);");
        write("README.md", "clap");
        let dependency = |name: &str, rename: Option<&str>| Dependency {
            name: name.to_owned(),
            rename: rename.map(str::to_owned),
            kind: None,
        };
        let package = Package {
            id: String::new(),
            name: "here".to_owned(),
            version: String::new(),
            license: None,
            manifest_path: folder.path().join("Cargo.toml"),
            dependencies: vec![
                dependency("tree-sitter", None),
                dependency("json", Some("serde-json")),
                dependency("serde", None),
                dependency("anyhow", None),
                dependency("clap", None),
            ],
        };
        assert_eq!(
            problems(&package).unwrap(),
            [
                "here declares `serde` and never uses it",
                "here declares `anyhow` and never uses it",
                "here declares `clap` and never uses it"
            ]
        );
    }
}
