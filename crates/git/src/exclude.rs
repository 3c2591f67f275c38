//! Files that one user's git leaves out of commits, without a change of the repository.
//!
//! `info/exclude` is in the common directory, so a pattern holds in every work tree of the
//! repository. A `.gitignore` of the repository is stronger: what it includes again stays visible.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
};

use crate::{GitError, Location, small};

/// A file that is larger was not written by hand.
const MOST_BYTES: u64 = 1024 * 1024;

impl Location {
    /// Adds a pattern to `info/exclude`, once. Lines that are there stay; a link in the place of the
    /// file is an error, since what it leads to may belong to something else. Two processes that add
    /// the same pattern at the same time may leave it twice, which means the same.
    pub fn exclude(&self, pattern: &str) -> Result<(), GitError> {
        let dir = self.common_dir.join("info");
        let file = dir.join("exclude");
        let known = match small::read(&file, MOST_BYTES) {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(GitError::file(&file)(error)),
        };
        let mut lines = known.split(|byte| *byte == b'\n');
        if lines.any(|line| line.trim_ascii_end() == pattern.as_bytes()) {
            return Ok(());
        }
        let line_end = match known.last() {
            None | Some(b'\n') => "",
            Some(_) => "\n",
        };
        std::fs::create_dir_all(&dir).map_err(GitError::file(&dir))?;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .custom_flags(flags.bits().cast_signed())
            .open(&file);
        // In one call, so that lines of two processes do not mix.
        let added = format!("{line_end}{pattern}\n");
        opened
            .and_then(|mut opened| opened.write_all(added.as_bytes()))
            .map_err(GitError::file(&file))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::{RepositoryKind, init};

    const PATTERN: &str = "**/own.json";

    fn location(dir: &Path) -> Location {
        init(dir, RepositoryKind::WorkTree).unwrap();
        Location::find(dir).unwrap()
    }

    #[test]
    fn a_pattern_is_added_once_and_other_lines_stay() {
        let dir = tempfile::tempdir().unwrap();
        let location = location(dir.path());
        let info = location.common_dir.join("info");
        let _ = fs::remove_dir_all(&info);
        for _ in 0..2 {
            location.exclude(PATTERN).unwrap();
        }
        let text = || fs::read_to_string(info.join("exclude")).unwrap();
        assert_eq!(text(), "**/own.json\n");
        fs::write(info.join("exclude"), "# mine\n*.log").unwrap();
        for _ in 0..2 {
            location.exclude(PATTERN).unwrap();
        }
        assert_eq!(text(), "# mine\n*.log\n**/own.json\n");
    }

    #[test]
    fn a_link_in_the_place_of_the_file_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let location = location(dir.path());
        let file = location.common_dir.join("info/exclude");
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "theirs\n").unwrap();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&file);
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        location.exclude(PATTERN).unwrap_err();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "theirs\n");
    }
}
