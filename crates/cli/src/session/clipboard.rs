//! The picture on the clipboard, kept as a file that a message can name.
//!
//! It is asked for by the program that the desktop has for it; which one follows from the display.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use codespar_protocol::NoticeLevel;
use codespar_runtime::Environment;
use codespar_tools::{MAX_IMAGE_BYTES, child_environment, picture_type};
use jiff::Timestamp;
use tokio::{io::AsyncReadExt, process::Command, time::timeout};

use super::SessionDriver;

/// A program that does not answer by then waits for something that nobody does.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Older ones are removed, by the time in their names. A draft or the history may name one that is
/// not sent yet.
const KEPT: usize = 50;

#[derive(Debug, thiserror::Error)]
enum ClipboardError {
    #[error(
        "there is no clipboard on this side of ssh; copy the picture here and name it by its path"
    )]
    Remote,
    #[error("there is no clipboard here; name the picture by its path")]
    None,
    #[error("the clipboard needs `{0}`; install it, or name the picture by its path")]
    NoProgram(&'static str),
    #[error("`{program}` failed: {error}")]
    Failed {
        program: &'static str,
        error: io::Error,
    },
    #[error("`{program}` did not answer within {} s", TIME_LIMIT.as_secs())]
    TimedOut { program: &'static str },
    #[error("there is no picture on the clipboard")]
    NoPicture,
    #[error("the picture has more than {:.2} MB", MAX_IMAGE_BYTES as f64 / 1e6)]
    TooLarge,
    #[error("the picture cannot be kept in {}: {error}", .dir.display())]
    NotKept { dir: PathBuf, error: io::Error },
}

/// Programs that write a picture to their standard output.
const WAYLAND: (&str, &[&str]) = ("wl-paste", &["--no-newline", "--type", "image/png"]);
const X11: (&str, &[&str]) = (
    "xclip",
    &["-selection", "clipboard", "-target", "image/png", "-out"],
);
const MACOS: (&str, &[&str]) = ("pngpaste", &["-"]);

impl SessionDriver {
    /// Puts it into the composer; what cannot be attached is said.
    pub(super) async fn paste_picture(&mut self) {
        let dir = self.project.dir.state().join("terminal/images");
        let picture = read(&self.project.dir.environment).await;
        match picture.and_then(|bytes| keep(&bytes, &dir)) {
            Ok(path) => self.view.insert_file(&path.to_string_lossy()),
            Err(error) => self.view.notice(NoticeLevel::Warning, error.to_string()),
        }
    }
}

/// Wayland before X11: under Wayland both are often set.
fn program(
    environment: &Environment,
) -> Result<(&'static str, &'static [&'static str]), ClipboardError> {
    let is_set = |name| environment.var(name).is_some();
    if cfg!(target_os = "macos") {
        Ok(MACOS)
    } else if is_set("WAYLAND_DISPLAY") {
        Ok(WAYLAND)
    } else if is_set("DISPLAY") {
        Ok(X11)
    } else if is_set("SSH_CONNECTION") {
        Err(ClipboardError::Remote)
    } else {
        Err(ClipboardError::None)
    }
}

/// The program gets an environment without secrets, and is killed if it does not answer in time.
/// Nothing of what it writes to its standard error is shown.
async fn read(environment: &Environment) -> Result<Vec<u8>, ClipboardError> {
    let (program, args) = program(environment)?;
    let vars = environment.vars.iter().cloned();
    let pass = ["XAUTHORITY".to_owned()];
    let mut child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(child_environment(vars, [], &pass))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ClipboardError::NoProgram(program),
            _ => ClipboardError::Failed { program, error },
        })?;
    let mut bytes = Vec::new();
    if let Some(output) = child.stdout.take() {
        let mut output = output.take(MAX_IMAGE_BYTES + 1);
        let reading = timeout(TIME_LIMIT, output.read_to_end(&mut bytes)).await;
        let read = reading.map_err(|_| ClipboardError::TimedOut { program })?;
        read.map_err(|error| ClipboardError::Failed { program, error })?;
    }
    if bytes.len() as u64 > MAX_IMAGE_BYTES {
        return Err(ClipboardError::TooLarge);
    }
    Ok(bytes)
}

/// By its content: a program can write anything.
fn keep(bytes: &[u8], dir: &Path) -> Result<PathBuf, ClipboardError> {
    let media_type = picture_type(bytes).ok_or(ClipboardError::NoPicture)?;
    let end = media_type.strip_prefix("image/").unwrap_or(media_type);
    let name = format!("clipboard-{}.{end}", Timestamp::now().as_millisecond());
    let path = dir.join(name);
    let kept = fs::create_dir_all(dir)
        .and_then(|()| {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(bytes)
        })
        .and_then(|()| remove_old(dir));
    kept.map_err(|error| ClipboardError::NotKept {
        dir: dir.to_owned(),
        error,
    })?;
    Ok(path)
}

/// Their names are in the order of time.
fn remove_old(dir: &Path) -> io::Result<()> {
    let entries = fs::read_dir(dir)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let old = paths.len().saturating_sub(KEPT);
    paths[..old].iter().try_for_each(fs::remove_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_are_kept_and_only_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let refused = keep(b"#!/bin/sh\n", dir.path()).unwrap_err();
        assert_eq!(refused.to_string(), "there is no picture on the clipboard");
        for number in 0..KEPT {
            fs::write(dir.path().join(format!("clipboard-{number:03}.png")), "x").unwrap();
        }
        let path = keep(b"\x89PNG\r\n\x1a\nrest", dir.path()).unwrap();
        assert_eq!(path.extension().unwrap(), "png");
        assert!(path.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), KEPT);
        assert!(!dir.path().join("clipboard-000.png").exists());
    }
}
