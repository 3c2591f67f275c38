//! The shell itself: where it is, and how it tells us where it ended up.

use std::{
    ffi::OsString,
    io,
    os::unix::{ffi::OsStringExt, fs::FileExt},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// More than this is no path.
const LONGEST_NOTE: usize = 8 << 10;

/// Where bash usually is.
const PLACES: [&str; 4] = [
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/run/current-system/sw/bin/bash",
];

/// The program that runs commands. The usual places come before `PATH`, whose directories may be
/// writable by the project.
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

/// A file in the session's own directory in which the shell notes where it ended. It is used for
/// one command after another: to make and remove a file takes longer than many a command.
#[derive(Debug)]
pub(crate) struct CwdNote(NamedTempFile);

/// What is written after a note, and instead of one.
const END: u8 = 0;

impl CwdNote {
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        let file = tempfile::Builder::new()
            .prefix(".cwd-")
            .tempfile_in(directory)?;
        Ok(Self(file))
    }

    /// The command, with the note taken however it ends. The file is opened without truncation
    /// (`1<>`), which `noclobber` does not forbid. The note is the directory, a newline and a zero
    /// byte; what an earlier, longer note left behind that byte is ignored.
    pub(super) fn script(&self, command: &str) -> io::Result<String> {
        self.0.as_file().write_all_at(&[END], 0)?;
        let file = quote(&self.0.path().to_string_lossy());
        let trap = quote(&format!(
            "{{ {{ pwd -P && printf '\\0'; }} 1<> {file}; }} 2>/dev/null"
        ));
        Ok(format!("trap {trap} EXIT\n{command}"))
    }

    /// What was noted, and the file for the next command if it was used. The command could have put
    /// anything in its place, so it is not opened anew.
    pub(super) fn read(self) -> Option<(PathBuf, Self)> {
        let mut bytes = vec![0; LONGEST_NOTE];
        let count = self.0.as_file().read_at(&mut bytes, 0).ok()?;
        let end = bytes[..count].iter().position(|byte| *byte == END)?;
        let path = bytes[..end].strip_suffix(b"\n")?;
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        // Through no symlink: the check against the workspace is by its text.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        path.is_absolute().then_some((real, self))
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
