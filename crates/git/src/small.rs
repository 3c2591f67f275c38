//! Reads small files of a git directory that somebody else wrote.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// The content of a regular file of at most `limit` bytes. A named pipe or a device in its place is
/// an error, not a wait without end. Links are followed.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::other(format!("is larger than {limit} bytes")));
    }
    Ok(content)
}

/// The first line, without its end.
pub(crate) fn read_line(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = read(path, 16 * 1024)?;
    if let Some(end) = content.iter().position(|byte| *byte == b'\n') {
        content.truncate(end);
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_devices_and_large_files_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let large = dir.path().join("large");
        std::fs::write(&large, [b'x'; 11]).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero"), &large] {
            read(path, 10).unwrap_err();
        }
        assert_eq!(read(&large, 11).unwrap().len(), 11);
    }
}
