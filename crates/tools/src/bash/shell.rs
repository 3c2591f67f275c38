//! The shell itself: where it is, and how it tells us where it ended up.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read},
    os::unix::{ffi::OsStringExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use tempfile::TempPath;

/// Where bash usually is.
const PLACES: [&str; 4] = [
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/run/current-system/sw/bin/bash",
];

pub(super) struct Shell {
    pub(super) program: PathBuf,
}

impl Shell {
    /// bash, or `sh` where there is none.
    pub(super) fn find(env: &[(OsString, OsString)]) -> Self {
        let path = env.iter().find(|(name, _)| name == "PATH");
        let searched = path
            .into_iter()
            .flat_map(|(_, value)| std::env::split_paths(value))
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join("bash"));
        let program = PLACES
            .iter()
            .map(PathBuf::from)
            .chain(searched)
            .find(|place| place.is_file());
        Self {
            program: program.unwrap_or_else(|| "/bin/sh".into()),
        }
    }
}

/// A file in the session's own directory in which the shell notes where it ended.
pub(super) struct CwdNote(TempPath);

impl CwdNote {
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        let file = tempfile::Builder::new()
            .prefix(".cwd-")
            .tempfile_in(directory)?;
        Ok(Self(file.into_temp_path()))
    }

    /// The command, with the note taken however it ends.
    pub(super) fn script(&self, command: &str) -> String {
        let file = quote(&self.0.to_string_lossy());
        let trap = quote(&format!("{{ pwd -P > {file}; }} 2>/dev/null"));
        format!("trap {trap} EXIT\n{command}")
    }

    /// What was noted. The command could have put anything in that place, so only a plain file is
    /// opened and only so much of it is read.
    pub(super) fn read(self) -> Option<PathBuf> {
        let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags(careful.bits().cast_signed())
            .open(&self.0)
            .ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(16 << 10).read_to_end(&mut bytes).ok()?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        let path = PathBuf::from(OsString::from_vec(bytes));
        // Through no symlink: the check against the workspace is by its text.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        path.is_absolute().then_some(real)
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_holds_for_quotes() {
        assert_eq!(quote("it's"), r"'it'\''s'");
    }
}
