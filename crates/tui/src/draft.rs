//! The text being typed, kept on disk: it comes back after a crash.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use codespar_terminal::editor::{Editor, EditorDraft};

/// Where a draft is kept. Errors are ignored: a draft that cannot be kept must not stop anybody
/// from typing.
pub(crate) struct DraftFile(PathBuf);

impl DraftFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The draft that was left, if there is one. A file that cannot be read as a draft counts as
    /// none.
    pub(crate) fn load(&self) -> Option<EditorDraft> {
        let text = fs::read_to_string(&self.0).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Written to a temporary name and renamed, readable by the user alone. An empty text removes
    /// the file.
    pub(crate) fn save(&self, editor: &Editor) {
        if editor.is_empty() {
            let _ = fs::remove_file(&self.0);
            return;
        }
        let Ok(text) = serde_json::to_string(&editor.draft()) else {
            return;
        };
        let temporary = self.0.with_extension("new");
        if write(&temporary, &text).is_ok() {
            let _ = fs::rename(&temporary, &self.0);
        }
    }
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}
