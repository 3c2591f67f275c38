//! Which file a workflow's name means.

use std::path::{Path, PathBuf};

const DIR: &str = ".codespar/workflows";

/// The file of a workflow: a path (with a slash or `.toml`) from `cwd`, or a name in the nearest
/// `.codespar/workflows` from `cwd` up to `root`.
pub fn find_workflow(name: &str, root: &Path, cwd: &Path) -> Result<PathBuf, String> {
    if name.contains('/') || name.ends_with(".toml") {
        let path = cwd.join(name);
        return path
            .canonicalize()
            .map_err(|error| format!("{}: {error}", path.display()));
    }
    let dirs = || {
        cwd.ancestors()
            .take_while(|dir| dir.starts_with(root))
            .map(|dir| dir.join(DIR))
    };
    if let Some(path) = dirs()
        .map(|dir| dir.join(format!("{name}.toml")))
        .find(|path| path.is_file())
    {
        return Ok(path);
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
        assert_eq!(
            find_workflow("walk", &root, &inner),
            Err("there is no workflow `walk`; there are: ship, test".to_owned())
        );
    }
}
