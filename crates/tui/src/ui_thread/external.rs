//! The text in the user's own editor.

use std::{fs, io::Write, process::Command, time::Instant};

use super::{TuiError, Ui};
use crate::handle::Message;
use codespar_protocol::NoticeLevel;

impl Ui {
    /// `None` if there is no editor or it failed; the text stays as it was then.
    pub(super) fn external_editor(&mut self, text: &str) -> Result<Option<String>, TuiError> {
        let Some(editor) = self.editor.clone() else {
            self.warn("set VISUAL or EDITOR to edit the text in an editor");
            return Ok(None);
        };
        self.give_away()?;
        let edited = edit(&editor, text);
        self.take_back()?;
        match edited {
            Ok(edited) => Ok(Some(edited)),
            Err(error) => {
                self.warn(&format!("the editor `{editor}` failed: {error}"));
                Ok(None)
            }
        }
    }

    fn warn(&mut self, text: &str) {
        let notice = Message::Notice(NoticeLevel::Warning, text.to_owned());
        self.app.message(notice, Instant::now());
    }
}

/// The command line may have arguments. It runs in the terminal, as the user would run it. By a
/// shell, since `EDITOR` may have arguments. The path is an argument of its own and never part of
/// the command line. The file is private and goes afterwards.
fn edit(editor: &str, text: &str) -> std::io::Result<String> {
    let mut file = tempfile::Builder::new()
        .prefix("codespar-")
        .suffix(".md")
        .tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(file.path())
        .status()?;
    if !status.success() {
        return Err(std::io::Error::other(status.to_string()));
    }
    let edited = fs::read_to_string(file.path())?;
    Ok(edited.trim_end_matches('\n').to_owned())
}
