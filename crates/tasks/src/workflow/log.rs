//! The output of a workflow: one line for each transition of a step.

use std::{collections::HashSet, fs::File, io::Write as _, path::Path};

/// Lines name the task, so that each is written once, also when a workflow is taken up again.
pub(super) struct StepLog {
    file: File,
    written: HashSet<String>,
}

impl StepLog {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let refused = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(refused)?;
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .map_err(refused)?;
        Ok(Self {
            file,
            written: written.lines().map(str::to_owned).collect(),
        })
    }

    pub(super) fn line(&mut self, line: &str) {
        // An error may have several lines; the first says what it is.
        let line = line.lines().next().unwrap_or_default();
        if self.written.insert(line.to_owned()) {
            // A log that cannot be written is no reason to stop the work.
            let _ = writeln!(self.file, "{line}");
        }
    }
}
