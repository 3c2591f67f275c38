//! Read: the located files at the commit and what goes with them, within a budget.
//!
//! Files come from the forge at the base commit, so the user's uncommitted work is neither shown
//! nor published. Secrets are replaced before a file is cut to its size. The reading is recorded
//! with its texts: a later attempt shows the model the same, even if the files cannot be had any
//! more.

use std::borrow::Cow;

use codespar_change::verify::detect;
use codespar_locate::{
    Companions, ContextBudget, ContextKind, ContextText, Excerpt, ShownFile, companion_excerpt,
    spend, tree,
};
use codespar_protocol::{FileMode, RepoPath};
use codespar_pulls::{Forge, ForgeError};
use serde::{Deserialize, Serialize};

use super::{Base, Located, blocking};
use crate::{Failure, VerifyChoice, run::Run};

/// What a file is shown for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShownAs {
    /// It probably has to change.
    #[default]
    Source,
    Test,
    Rules,
    Changelog,
}

impl ShownAs {
    fn kind(self) -> ContextKind {
        match self {
            Self::Source => ContextKind::Source,
            Self::Test => ContextKind::Test,
            Self::Rules => ContextKind::Rules,
            Self::Changelog => ContextKind::Changelog,
        }
    }
}

/// One file as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) path: String,
    /// All of it, or the parts that matter.
    pub(crate) text: String,
    /// Of such a file the model may edit places but not write it whole.
    pub(crate) is_partial: bool,
    /// There are marks in place of secrets.
    #[serde(default)]
    pub(crate) is_redacted: bool,
    #[serde(default)]
    pub(crate) shown_as: ShownAs,
}

impl Shown {
    /// Whether the model has seen all of the file as it is.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_partial && !self.is_redacted
    }

    /// For the renderer of the prompt, which is in `locate`.
    fn in_context(&self) -> ShownFile<'_> {
        ShownFile {
            path: &self.path,
            text: &self.text,
            kind: self.shown_as.kind(),
            is_partial: self.is_partial,
            is_redacted: self.is_redacted,
        }
    }
}

/// What the model sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) files: Vec<Shown>,
    /// Files that were left out, and why.
    pub(crate) skipped: Vec<(String, String)>,
    /// Files that were located and that the budget did not reach. With `auto`, one of these that
    /// was named or picked sends the run to the agent.
    #[serde(default)]
    pub(crate) left_out: Vec<String>,
    /// The directories.
    #[serde(default)]
    pub(crate) tree: String,
    /// The command that tests the change.
    #[serde(default)]
    pub(crate) verify: Option<String>,
}

/// A text without its secrets.
struct CleanText {
    path: String,
    text: String,
    is_redacted: bool,
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
        for path in &reading.left_out {
            self.say(
                "read",
                &format!("   {path} is not shown: the context is full (`dev.contextBytes`)"),
            );
        }
        Ok(reading)
    }

    /// `spend` decides which parts of which files fit; files come in the order in which they were
    /// located.
    async fn read_files(&self, base: &Base, located: &Located) -> Result<Reading, Failure> {
        let mut reading = Reading::default();
        let mut texts = Vec::new();
        for path in located.paths() {
            match self.clean_text(base, path).await? {
                Ok(text) => texts.push(text),
                Err(reason) => reading.skipped.push((path.to_owned(), reason)),
            }
        }
        let pairs: Vec<(&str, &str)> = texts
            .iter()
            .map(|file| (file.path.as_str(), file.text.as_str()))
            .collect();
        let excerpts = spend(&pairs, &self.order.instruction, self.budget());
        for (file, excerpt) in texts.iter().zip(excerpts) {
            match excerpt {
                Some(excerpt) => {
                    let shown = shown(file, excerpt, ShownAs::Source);
                    reading.files.push(shown);
                }
                None => reading.left_out.push(file.path.clone()),
            }
        }
        self.read_surroundings(base, located, &mut reading).await?;
        Ok(reading)
    }

    /// Adds tests, instructions, changelog, directories and the command that verifies. In addition
    /// to the budget of the files, each with a limit of its own (`companion_excerpt`).
    async fn read_surroundings(
        &self,
        base: &Base,
        located: &Located,
        reading: &mut Reading,
    ) -> Result<(), Failure> {
        let entries = self.link.forge.tree(&base.commit).await?;
        let paths: Vec<String> = entries.into_iter().map(|entry| entry.path).collect();
        let chosen: Vec<&str> = located.paths().collect();
        let companions = Companions::find(&paths, &chosen, &located.tests);
        reading.tree = tree(&paths, &chosen);
        let tests = companions
            .tests
            .into_iter()
            .map(|path| (path, ShownAs::Test));
        let rules = companions
            .rules
            .into_iter()
            .map(|path| (path, ShownAs::Rules));
        let changelog = companions.changelog.into_iter();
        let changelog = changelog.map(|path| (path, ShownAs::Changelog));
        for (path, shown_as) in rules.chain(tests).chain(changelog) {
            // One that cannot be shown was not asked for by anybody.
            let Ok(file) = self.clean_text(base, &path).await? else {
                continue;
            };
            let excerpt = companion_excerpt(
                shown_as.kind(),
                (&file.path, &file.text),
                &self.order.instruction,
                self.budget(),
            );
            // Instructions are often there twice under two names.
            if !reading.files.iter().any(|known| known.text == excerpt.text) {
                reading.files.push(shown(&file, excerpt, shown_as));
            }
        }
        reading.verify = self.verify_command(base, &paths).await?;
        Ok(())
    }

    /// The budget for the files to change.
    fn budget(&self) -> ContextBudget {
        ContextBudget {
            bytes: self.order.limits.context_bytes,
            max_file_bytes: self.order.limits.max_file_bytes,
        }
    }

    /// The command that will test the change, found as it will be found then, from a directory that
    /// has only the files of the root. Nothing where nothing will be run.
    async fn verify_command(
        &self,
        base: &Base,
        paths: &[String],
    ) -> Result<Option<String>, Failure> {
        /// Files that say which command it is. Of others only the name counts.
        const TELLING: &[&str] = &[
            "package.json",
            "setup.cfg",
            "tox.ini",
            "pyproject.toml",
            "Makefile",
            "makefile",
            "GNUmakefile",
        ];
        match &self.order.verify {
            VerifyChoice::Command(command) => return Ok(Some(self.redacted(command))),
            VerifyChoice::Skip => return Ok(None),
            VerifyChoice::Detect => {}
        }
        if self.link.clone.is_none() {
            return Ok(None);
        }
        let mut files: Vec<(String, String)> = Vec::new();
        for path in paths.iter().filter(|path| !path.contains('/')) {
            let text = match TELLING.contains(&path.as_str()) {
                true => self.file_text(base, path).await?.unwrap_or_default(),
                false => String::new(),
            };
            files.push((path.clone(), text));
        }
        let found = blocking(move || {
            let broken = |error: std::io::Error| Failure::Broken(error.to_string());
            let root = tempfile::tempdir().map_err(broken)?;
            for (name, text) in files {
                // A name that this system does not have says nothing about its tests.
                let _ = std::fs::write(root.path().join(name), text);
            }
            Ok(detect(root.path()))
        });
        Ok(found.await?.map(|command| self.redacted(&command)))
    }

    /// A file without its secrets. It is cut after that: part of a secret would not be known for
    /// one.
    async fn clean_text(
        &self,
        base: &Base,
        path: &str,
    ) -> Result<Result<CleanText, String>, Failure> {
        Ok(self.file_text(base, path).await?.map(|text| {
            let redacted = self.setup.redactor.redact(&text);
            let is_redacted = matches!(redacted, Cow::Owned(_));
            CleanText {
                path: path.to_owned(),
                text: redacted.into_owned(),
                is_redacted,
            }
        }))
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

fn shown(file: &CleanText, excerpt: Excerpt, shown_as: ShownAs) -> Shown {
    Shown {
        path: file.path.clone(),
        text: excerpt.text,
        is_partial: excerpt.partial,
        is_redacted: file.is_redacted,
        shown_as,
    }
}

impl Reading {
    /// For the model: the instruction, the files and their surroundings.
    pub(crate) fn prompt(&self, instruction: &str) -> String {
        let files: Vec<ShownFile<'_>> = self.files.iter().map(Shown::in_context).collect();
        let left_out: Vec<&str> = self.left_out.iter().map(String::as_str).collect();
        let text = ContextText {
            instruction,
            files: &files,
            tree: &self.tree,
            verify: self.verify.as_deref(),
            left_out: &left_out,
        };
        text.to_string()
    }

    /// Bytes of the files to change that are shown.
    pub(crate) fn bytes(&self) -> usize {
        let files = self.files.iter();
        files
            .filter(|file| file.shown_as == ShownAs::Source)
            .map(|file| file.text.len())
            .sum()
    }
}
