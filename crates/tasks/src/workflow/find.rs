//! Which file a workflow's name means.

use std::path::{Component, Path, PathBuf};

const DIR: &str = ".codespar/workflows";

/// The file of a workflow: a path (with a slash or `.toml`) from `cwd`, or a name in the nearest
/// `.codespar/workflows` from `cwd` up to `root`.
pub fn find_workflow(name: &str, root: &Path, cwd: &Path) -> Result<PathBuf, String> {
    if name.contains('/') || name.ends_with(".toml") {
        return resolved(&cwd.join(name), root);
    }
    let dirs = || {
        cwd.ancestors()
            .take_while(|dir| dir.starts_with(root))
            .map(|dir| dir.join(DIR))
    };
    if let Some(path) = dirs()
        .map(|dir| dir.join(format!("{name}.toml")))
        .find(|path| path.exists())
    {
        return resolved(&path, root);
    }
    let mut known: Vec<String> = dirs().flat_map(|dir| names(&dir)).collect();
    known.sort();
    known.dedup();
    Err(if known.is_empty() {
        format!(
            "there is no workflow `{name}`: there is no file {}",
            root.join(DIR).join(format!("{name}.toml")).display()
        )
    } else {
        format!(
            "there is no workflow `{name}`; there are: {}",
            known.join(", ")
        )
    })
}

/// The file without links. One that a project seems to hold must really be in it. `..` is resolved
/// by name here, so that a path that is meant to lead out does not count as a link.
fn resolved(path: &Path, root: &Path) -> Result<PathBuf, String> {
    let real = path
        .canonicalize()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let mut written = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                written.pop();
            }
            other => written.push(other),
        }
    }
    if written.starts_with(root) && !real.starts_with(root) {
        return Err(format!(
            "{}: is a link that leads out of the project",
            path.display()
        ));
    }
    Ok(real)
}

fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            Some(name.to_str()?.strip_suffix(".toml")?.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_of_a_name_is_found_and_others_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let inner = root.join("a/b");
        for (place, name) in [(&root, "ship"), (&root, "test"), (&inner, "ship")] {
            std::fs::create_dir_all(place.join(DIR)).unwrap();
            std::fs::write(place.join(DIR).join(format!("{name}.toml")), "").unwrap();
        }
        let file = |place: &Path, name: &str| Ok(place.join(DIR).join(name));
        assert_eq!(
            find_workflow("ship", &root, &inner),
            file(&inner, "ship.toml")
        );
        assert_eq!(
            find_workflow("test", &root, &inner),
            file(&root, "test.toml")
        );
        assert_eq!(
            find_workflow("../../.codespar/workflows/ship.toml", &root, &inner),
            file(&root, "ship.toml")
        );
        std::os::unix::fs::symlink("/dev/zero", root.join(DIR).join("endless.toml")).unwrap();
        for name in ["endless", "../../.codespar/workflows/endless.toml"] {
            let refused = find_workflow(name, &root, &inner).unwrap_err();
            assert!(refused.ends_with("leads out of the project"), "{refused}");
        }
        std::fs::remove_file(root.join(DIR).join("endless.toml")).unwrap();
        assert_eq!(
            find_workflow("walk", &root, &inner),
            Err("there is no workflow `walk`; there are: ship, test".to_owned())
        );
    }
}
