//! Paths as a model writes them: resolved to where they really lead, shown short.
//!
//! Permissions are decided on real paths, so a link inside the workspace that leads outside is
//! judged by where it leads. Paths that do not exist yet are resolved as far as they do: a new file
//! in a linked directory is a file in the real one.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{Context, ToolError};

/// Links followed before a path counts as a loop.
const MAX_LINKS: usize = 40;
/// Names looked at when a file is missing.
const MAX_NEIGHBOURS: usize = 2_000;

/// The absolute path that `path` leads to, with `.`, `..` and every symlink resolved as far as
/// the path exists. Only links are looked at; nothing is opened.
///
/// A relative path starts from the working directory of the shell. `..` is applied after links, as
/// the kernel does it, and not on the text of the path.
pub(crate) fn resolve(context: &Context, path: &str) -> Result<PathBuf, ToolError> {
    if path.is_empty() {
        return Err(ToolError("the path is empty".to_owned()));
    }
    if path.contains('\0') {
        return Err(ToolError("the path has a NUL character in it".to_owned()));
    }
    follow(&context.cwd().join(path), &mut 0)
        .ok_or_else(|| ToolError(format!("{path}: too many symbolic links")))
}

/// `None` after too many links. A component that cannot be read as a link counts as an ordinary
/// name, whatever the reason: opening it later tells.
fn follow(path: &Path, links: &mut usize) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => resolved.push(component),
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => {
                let next = resolved.join(name);
                match fs::read_link(&next) {
                    Ok(target) => {
                        *links += 1;
                        if *links > MAX_LINKS {
                            return None;
                        }
                        resolved = follow(&resolved.join(target), links)?;
                    }
                    Err(_) => resolved = next,
                }
            }
        }
    }
    Some(resolved)
}

/// Relative to the current directory when below it: shorter to read, and every tool takes it.
pub(crate) fn shown(path: &Path, cwd: &Path) -> String {
    match path.strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// Why a missing file is missing, and what is there instead. Where a name is off by a letter or by
/// case, the suggestion saves a listing.
pub(crate) fn missing(path: &Path, cwd: &Path) -> ToolError {
    let name = shown(path, cwd);
    let parent = path.parent().unwrap_or(path);
    if !parent.is_dir() {
        let parent = shown(parent, cwd);
        return ToolError(format!(
            "{name} does not exist, nor does the directory {parent}"
        ));
    }
    let alike = alike(path, parent);
    if alike.is_empty() {
        return ToolError(format!("{name} does not exist"));
    }
    let alike: Vec<String> = alike.iter().map(|path| shown(path, cwd)).collect();
    ToolError(format!(
        "{name} does not exist. Did you mean {}?",
        alike.join(" or ")
    ))
}

/// At most three names that are probably meant by `wanted`, nearest first.
pub(crate) fn close_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const NAMED: usize = 3;
    const CLOSE: f64 = 0.6;
    let rated = names.map(|name| (strsim::normalized_damerau_levenshtein(wanted, name), name));
    let mut close: Vec<(f64, &str)> = rated.filter(|(rate, _)| *rate >= CLOSE).collect();
    close.sort_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
    close
        .into_iter()
        .take(NAMED)
        .map(|(_, name)| name)
        .collect()
}

/// Neighbours with a similar name, nearest first.
fn alike(path: &Path, parent: &Path) -> Vec<PathBuf> {
    let Some(wanted) = path.file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let names: Vec<String> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .take(MAX_NEIGHBOURS)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let lower: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let possible = lower.iter().map(String::as_str);
    close_names(&wanted.to_lowercase(), possible)
        .into_iter()
        .filter_map(|near| lower.iter().position(|name| name == near))
        .map(|at| parent.join(&names[at]))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::Bench;

    #[test]
    fn links_and_dots_lead_to_the_real_path_even_when_it_does_not_exist() {
        let bench = Bench::new();
        let outside = Bench::new();
        symlink(outside.root(), bench.path("away")).unwrap();
        symlink("missing/target.txt", bench.path("dangling")).unwrap();
        let resolve = |path: &str| resolve(bench.context(), path).unwrap();
        assert_eq!(resolve("a/./b/../c.txt"), bench.path("a/c.txt"));
        assert_eq!(resolve("away/new/x.txt"), outside.path("new/x.txt"));
        assert_eq!(
            resolve("away/../x"),
            outside.root().parent().unwrap().join("x")
        );
        assert_eq!(resolve("dangling"), bench.path("missing/target.txt"));
        assert_eq!(resolve("/../../etc"), PathBuf::from("/etc"));
    }

    #[test]
    fn a_loop_of_links_an_empty_path_and_a_nul_are_errors() {
        let bench = Bench::new();
        symlink("two", bench.path("one")).unwrap();
        symlink("one", bench.path("two")).unwrap();
        let error = |path: &str| resolve(bench.context(), path).unwrap_err().0;
        assert_eq!(error("one"), "one: too many symbolic links");
        assert_eq!(error(""), "the path is empty");
        assert_eq!(error("a\0b"), "the path has a NUL character in it");
    }

    #[test]
    fn a_missing_file_is_answered_with_names_like_it() {
        let bench = Bench::new();
        bench.write("src/Session.ts", "");
        bench.write("src/other.rs", "");
        let missing = |path: &str| missing(&bench.path(path), bench.root()).0;
        assert_eq!(
            missing("src/sesion.ts"),
            "src/sesion.ts does not exist. Did you mean src/Session.ts?"
        );
        assert_eq!(missing("src/zzz"), "src/zzz does not exist");
        assert_eq!(
            missing("lib/a.rs"),
            "lib/a.rs does not exist, nor does the directory lib"
        );
    }
}
