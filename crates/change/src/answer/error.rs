//! Why an answer could not be read, in words a model can act on.

use std::fmt;

/// An answer whose blocks cannot be told apart or read. Every problem that was seen is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct AnswerError {
    /// At least one, in the order of the answer.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line of the answer, from 1.
    pub line: usize,
    /// The file the block speaks of, as written; `None` outside blocks.
    pub path: Option<String>,
    /// What is wrong and what to do.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the answer", self.line)?;
        if let Some(path) = &self.path {
            write!(f, ", in the block of `{path}`")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}
