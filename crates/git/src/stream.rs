//! The output of a git that is read while it runs.
//!
//! For lists that may be very long and are worked on as they come, or stopped early. The limits of
//! the call hold: a read that passes one is an error, and the same error comes back, typed, from
//! [`Stream::end`].

use std::{
    io::{self, Read},
    process::{Child, ChildStdout},
    sync::Arc,
};

use crate::{GitError, GitLimits, pump::Pump, view::View};

/// A running git. It ends when this is dropped.
///
/// Reads return end of file when git closes its output; that alone does not say that git succeeded,
/// so the last step is [`Stream::end`].
pub struct Stream {
    pump: Pump,
    stdout: Option<ChildStdout>,
    /// Bytes that may still come.
    left: usize,
    /// What a read failed with, kept for [`Stream::end`].
    problem: Option<GitError>,
    _view: Option<Arc<View>>,
}

impl Stream {
    pub(crate) fn new(
        mut child: Child,
        command: String,
        limits: GitLimits,
        view: Option<Arc<View>>,
    ) -> Self {
        let stdout = child.stdout.take();
        Self {
            pump: Pump::new(child, command, limits, Arc::default()),
            stdout,
            left: limits.bytes,
            problem: None,
            _view: view,
        }
    }

    /// Waits for its end; whether it succeeded. A limit that reading ran into is the error here.
    /// Output that was not read is thrown away: git gets a closed pipe and usually fails by it.
    pub fn end(mut self) -> Result<bool, GitError> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        drop(self.stdout.take());
        Ok(self.pump.wait()?.success())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(stdout) = &mut self.stdout else {
            return Ok(0);
        };
        let read = self.pump.read_some(stdout, buffer);
        let read = read.and_then(|read| match self.left.checked_sub(read) {
            Some(left) => {
                self.left = left;
                Ok(read)
            }
            None => Err(self.pump.too_much()),
        });
        read.map_err(|problem| {
            let error = io::Error::other(problem.to_string());
            self.problem = Some(problem);
            error
        })
    }
}
