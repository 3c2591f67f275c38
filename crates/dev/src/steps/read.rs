//! Read: the located files at the commit, long ones cut to what matters.

use std::{borrow::Cow, fmt::Write as _};

use codespar_locate::{Excerpt, regions};
use codespar_protocol::{FileMode, RepoPath};
use codespar_pulls::{Forge, ForgeError};
use serde::{Deserialize, Serialize};

use super::{Base, Located};
use crate::{Failure, run::Run};

/// One file as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) path: String,
    /// All of it, or the parts that matter.
    pub(crate) text: String,
    pub(crate) is_partial: bool,
    /// There are marks in place of secrets.
    #[serde(default)]
    pub(crate) is_redacted: bool,
}

/// What the model sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) files: Vec<Shown>,
    /// Files that were left out, and why.
    pub(crate) skipped: Vec<(String, String)>,
}

impl Run {
    pub(crate) async fn read(&self, base: &Base, located: &Located) -> Result<Reading, Failure> {
        self.check_stop()?;
        let reading = self
            .ledger
            .once("read", || self.read_files(base, located))
            .await?;
        for (path, reason) in &reading.skipped {
            self.say("read", &format!("   {path} was not read: {reason}"));
        }
        Ok(reading)
    }

    async fn read_files(&self, base: &Base, located: &Located) -> Result<Reading, Failure> {
        let mut reading = Reading {
            files: Vec::new(),
            skipped: Vec::new(),
        };
        for path in located.paths() {
            let text = match self.file_text(base, path).await? {
                Ok(text) => text,
                Err(reason) => {
                    reading.skipped.push((path.to_owned(), reason));
                    continue;
                }
            };
            // Cut after that: part of a secret would not be known for one.
            let redacted = self.setup.redactor.redact(&text);
            let Excerpt { text, partial } = regions(
                &redacted,
                &self.order.instruction,
                self.order.limits.max_file_bytes,
            );
            reading.files.push(Shown {
                path: path.to_owned(),
                text,
                is_partial: partial,
                is_redacted: matches!(redacted, Cow::Owned(_)),
            });
        }
        Ok(reading)
    }

    /// A file at the commit as text, or why it cannot be shown as such. An outage of the forge is a
    /// failure: the file may well be readable.
    pub(crate) async fn file_text(
        &self,
        base: &Base,
        path: &str,
    ) -> Result<Result<String, String>, Failure> {
        let Ok(repo_path) = RepoPath::new(path) else {
            return Ok(Err("its name is not one that can be changed".to_owned()));
        };
        let file = match self.link.forge.file(&base.commit, &repo_path).await {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(Err("it is not there".to_owned())),
            Err(error @ (ForgeError::Refused(_) | ForgeError::NotFound(_))) => {
                return Ok(Err(self.redacted(&error.to_string())));
            }
            Err(error) => return Err(error.into()),
        };
        if file.mode == FileMode::Symlink {
            return Ok(Err("it is a symbolic link".to_owned()));
        }
        let text = String::from_utf8(file.content).ok();
        Ok(text
            .filter(|text| !text.contains('\0'))
            .ok_or_else(|| "it is not text".to_owned()))
    }
}

impl Reading {
    /// For the model: the instruction and the files.
    pub(crate) fn prompt(&self, instruction: &str) -> String {
        let mut out = format!("<instruction>\n{}\n</instruction>\n", instruction.trim());
        // Writing to a string cannot fail.
        for file in &self.files {
            let part = match (file.is_partial, file.is_redacted) {
                (false, false) => "",
                (true, false) => " shown=\"in part; change it with SEARCH and REPLACE only\"",
                (_, true) => {
                    " shown=\"without its secrets: `[redacted]` stands for each of them; change it with \
                     SEARCH and REPLACE only, and have the same marks in both or leave them out\""
                }
            };
            let end = if file.text.ends_with('\n') { "" } else { "\n" };
            let _ = write!(
                out,
                "\n<file path=\"{}\"{part}>\n{}{end}</file>\n",
                file.path, file.text
            );
        }
        if self.files.is_empty() {
            out.push_str("\nNo file of the repository seems to fit the instruction; new files can be made.\n");
        }
        out
    }

    /// Whether the model has seen all of a file.
    pub(crate) fn has_whole(&self, path: &str) -> bool {
        self.files
            .iter()
            .any(|file| file.path == path && !file.is_partial && !file.is_redacted)
    }

    /// Whether the model has seen marks in place of secrets.
    pub(crate) fn hides_secrets(&self) -> bool {
        self.files.iter().any(|file| file.is_redacted)
    }
}
