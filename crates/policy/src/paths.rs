//! Paths by text alone: normal form and containment.

use std::path::{Component, Path, PathBuf};

/// The path without `.`, `..` and doubled separators. `..` at the root stays at the root; in a
/// relative path, `..` that has nothing to undo is kept. Symlinks are not looked at.
pub fn normalise(path: &Path) -> PathBuf {
    let mut parts: Vec<Component<'_>> = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match parts.last() {
                Some(Component::Normal(_)) => {
                    parts.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                _ => parts.push(component),
            },
            other => parts.push(other),
        }
    }
    if parts.is_empty() {
        PathBuf::from(".")
    } else {
        parts.into_iter().collect()
    }
}

/// Whether `path` is `dir` or below it, both taken in their normal form.
pub fn is_inside(path: &Path, dir: &Path) -> bool {
    normalise(path).starts_with(normalise(dir))
}

/// `path` as seen from `cwd`, in normal form.
pub(crate) fn resolve(path: &Path, cwd: &Path) -> PathBuf {
    normalise(&cwd.join(path))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/a/./b//c", "/a/b/c")]
    #[case("/a/b/../c", "/a/c")]
    #[case("/../../a", "/a")]
    #[case("a/../../b", "../b")]
    #[case("a/..", ".")]
    #[case("/", "/")]
    fn a_path_is_brought_to_its_normal_form(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(normalise(Path::new(path)), Path::new(expected));
    }

    #[rstest]
    #[case("/w/a", "/w", true)]
    #[case("/w", "/w", true)]
    #[case("/w/../x", "/w", false)]
    #[case("/wider", "/w", false)]
    #[case("/w/a/../../w/b", "/w/", true)]
    fn inside_is_by_whole_components(#[case] path: &str, #[case] dir: &str, #[case] inside: bool) {
        assert_eq!(is_inside(Path::new(path), Path::new(dir)), inside);
    }
}
