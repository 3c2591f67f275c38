//! Trees of commits that may be made to be too large: a few objects can stand for any number of
//! files.
//!
//! Ten trees that each list the next one ten times are 10^10 files in eleven objects. Git would
//! write them all out, or fill memory with an index of them.

use std::{io::Read, time::Duration};

use crate::{Git, GitError, GitLimits};

/// More than the largest repositories that are worked on.
const MOST_FILES: usize = 2_000_000;

impl Git {
    /// Refuses a commit with more files than can be written out or read into an index. The names
    /// are counted as git lists them, so a tree that is too large costs no more than the limit.
    /// That the commit exists is not checked: a failing `ls-tree` is not an error here.
    pub fn check_size(&self, commit: &str) -> Result<(), GitError> {
        let limits = GitLimits {
            bytes: 1 << 30,
            time: Duration::from_secs(60),
            ..GitLimits::default()
        };
        let args = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit];
        let mut stream = self.call(args).limits(limits).stream()?;
        let mut buffer = vec![0; 64 << 10];
        let mut files = 0;
        loop {
            let read = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(_) => return stream.end().map(drop),
            };
            files += buffer[..read].iter().filter(|byte| **byte == 0).count();
            if files > MOST_FILES {
                return Err(GitError::TooManyFiles {
                    commit: commit.to_owned(),
                    limit: MOST_FILES,
                });
            }
        }
        stream.end().map(drop)
    }
}
