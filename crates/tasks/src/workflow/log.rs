//! The output of a workflow: one line for each transition of a step.

use std::{collections::HashSet, path::Path, sync::Arc};

use codespar_policy::Redactor;

use crate::TaskLog;

/// Lines name the task, so that each is written once, also when a workflow is taken up again.
pub(super) struct StepLog {
    log: TaskLog,
    redactor: Arc<Redactor>,
    /// Lines of this and earlier runners.
    written: HashSet<String>,
}

impl StepLog {
    pub(super) fn open(path: &Path, redactor: &Arc<Redactor>) -> Result<Self, String> {
        let written = std::fs::read_to_string(path).unwrap_or_default();
        Ok(Self {
            log: TaskLog::open(path, redactor)?,
            redactor: redactor.clone(),
            written: written.lines().map(str::to_owned).collect(),
        })
    }

    pub(super) fn line(&mut self, text: &str) {
        // Part of a secret would not be known for one, so it is cut after that.
        let text = self.redactor.redact(text);
        // An error may have several lines; the first says what it is.
        let line = text.lines().next().unwrap_or_default();
        if self.written.insert(line.to_owned()) {
            self.log.write(line);
        }
    }
}
