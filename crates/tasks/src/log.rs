//! The output file of a task that tells what it does: for people to follow, without secrets.

use std::{fs::File, io::Write as _, path::Path, sync::Arc};

use codespar_policy::Redactor;

/// Text of models, commands and repositories goes to a file only through this, or through
/// [`codespar_tools::process::Capture`] where it comes in pieces.
///
/// The file has no limit of its own: what is written here is one line for each event of an agent or
/// step of a workflow, not the output of commands.
pub struct TaskLog {
    file: File,
    redactor: Arc<Redactor>,
}

impl TaskLog {
    /// Continues the file, or begins it. The error names it.
    pub fn open(path: &Path, redactor: &Arc<Redactor>) -> Result<Self, String> {
        let refused = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(refused)?;
        }
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .map_err(refused)?;
        Ok(Self {
            file,
            redactor: redactor.clone(),
        })
    }

    /// Adds a text and ends its line.
    pub fn write(&mut self, text: &str) {
        // A log that cannot be written is no reason to stop the work.
        let _ = writeln!(self.file, "{}", self.redactor.redact(text));
    }
}
