//! Files with an ending in a directory and those below it, within bounds.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

/// Directories below the one that is named.
const DEEPEST: usize = 8;
/// Files that are listed, entries of one directory that are looked at, and directories in all.
const MOST: usize = 1_000;
/// What comes with a collection that was cloned, and has none of its files.
const PASSED_OVER: [&str; 3] = [".git", ".github", "node_modules"];

/// What [`nested`] has found.
#[derive(Debug, Default)]
pub struct Nested {
    /// In order of name, directory by directory. Links and other things that are no directories are
    /// among them: whoever opens one decides where it may lead.
    pub files: Vec<PathBuf>,
    /// What was not looked at, so that nothing is missing without a word.
    pub left_out: Vec<(PathBuf, LeftOut)>,
}

/// Why something was not looked at. Reads on after "cannot be read: ".
#[derive(Debug)]
pub enum LeftOut {
    /// A directory that cannot be read.
    Unreadable(io::Error),
    /// A link to a directory: it may lead anywhere, also back.
    Link,
    /// A directory below too many others.
    TooDeep,
    /// Where the bounds were reached.
    TooMany,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => error.fmt(f),
            Self::Link => f.write_str("it is a link to a directory"),
            Self::TooDeep => write!(f, "it is more than {DEEPEST} directories deep"),
            Self::TooMany => write!(f, "there are more than {MOST} files or directories"),
        }
    }
}

/// Lists the files with this ending. A directory that is not there has none. The directory itself
/// may be a link, those below it may not.
pub fn nested(dir: &Path, extension: &str) -> Nested {
    let mut walk = Walk {
        extension,
        dirs: 0,
        found: Nested::default(),
    };
    walk.dir(dir, 0);
    walk.found
}

struct Walk<'a> {
    extension: &'a str,
    dirs: usize,
    found: Nested,
}

impl Walk<'_> {
    fn dir(&mut self, dir: &Path, depth: usize) {
        self.dirs += 1;
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.leave_out(dir, LeftOut::Unreadable(error)),
        };
        let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut paths: Vec<PathBuf> = entries.take(MOST + 1).collect();
        if paths.len() > MOST {
            paths.truncate(MOST);
            self.leave_out(dir, LeftOut::TooMany);
        }
        paths.sort();
        for path in paths {
            self.entry(path, depth);
        }
    }

    fn entry(&mut self, path: PathBuf, depth: usize) {
        let Ok(facts) = fs::symlink_metadata(&path) else {
            return;
        };
        let name = path.file_name().unwrap_or_default();
        if facts.is_dir() {
            if PASSED_OVER.iter().any(|passed| name == *passed) {
                return;
            }
            match (depth < DEEPEST, self.dirs < MOST) {
                (true, true) => self.dir(&path, depth + 1),
                (false, _) => self.leave_out(&path, LeftOut::TooDeep),
                (true, false) => self.leave_out(&path, LeftOut::TooMany),
            }
        } else if facts.is_symlink() && path.is_dir() {
            self.leave_out(&path, LeftOut::Link);
        } else if path.extension().is_some_and(|end| end == self.extension) {
            match self.found.files.len() < MOST {
                true => self.found.files.push(path),
                false => self.leave_out(&path, LeftOut::TooMany),
            }
        }
    }

    /// That there is too much is said once, where it was noticed.
    fn leave_out(&mut self, path: &Path, why: LeftOut) {
        let is_told = |(_, told): &(PathBuf, LeftOut)| matches!(told, LeftOut::TooMany);
        let is_much = matches!(why, LeftOut::TooMany);
        if !(is_much && self.found.left_out.iter().any(is_told)) {
            self.found.left_out.push((path.to_path_buf(), why));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(dir: &Path, paths: impl IntoIterator<Item = PathBuf>) -> Vec<String> {
        let paths = paths.into_iter();
        let names = paths.map(|path| path.strip_prefix(dir).unwrap().display().to_string());
        names.collect()
    }

    #[test]
    fn files_of_all_directories_are_listed_and_no_link_to_a_directory_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        for name in ["b.md", "a/c.md", "a/d/e.md", "a/f.txt", ".git/g.md"] {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        symlink(dir, dir.join("a/back")).unwrap();
        symlink("b.md", dir.join("z.md")).unwrap();
        let found = nested(dir, "md");
        assert_eq!(
            names(dir, found.files),
            ["a/c.md", "a/d/e.md", "b.md", "z.md"]
        );
        let left: Vec<String> = found
            .left_out
            .iter()
            .map(|(_, why)| why.to_string())
            .collect();
        assert_eq!(left, ["it is a link to a directory"]);
        assert_eq!(
            names(dir, found.left_out.into_iter().map(|(path, _)| path)),
            ["a/back"]
        );
        let none = nested(&dir.join("nowhere"), "md");
        assert!(none.files.is_empty() && none.left_out.is_empty());
    }

    #[test]
    fn what_is_beyond_the_bounds_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let deep: PathBuf = (0..=DEEPEST).map(|level| level.to_string()).collect();
        fs::create_dir_all(dir.join(&deep)).unwrap();
        fs::write(dir.join(&deep).join("x.md"), "").unwrap();
        fs::write(dir.join(&deep).parent().unwrap().join("y.md"), "").unwrap();
        let found = nested(dir, "md");
        assert_eq!(found.files.len(), 1);
        assert!(matches!(&found.left_out[..], [(path, LeftOut::TooDeep)] if path.ends_with(&deep)));
        for index in 0..=MOST {
            fs::write(dir.join(format!("{index}.md")), "").unwrap();
        }
        let found = nested(dir, "md");
        assert!(found.files.len() <= MOST);
        let much = found.left_out.iter();
        let much = much.filter(|(_, why)| matches!(why, LeftOut::TooMany));
        assert_eq!(much.count(), 1);
    }
}
