//! Puts files back to what they were.
//!
//! A file is restored only if it is what the last recorded change left. Anything else is the work
//! of the user or of a command, and is left alone unless the caller says otherwise. Something that
//! is no regular file, and a path with a link in it, is never touched.
//!
//! Each file is a step of its own, recorded before it is made. A crash between two steps leaves
//! files that are restored and files that are not; the same restore can then be made again.

use std::{
    fs::{Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use codespar_files::{OpenError, Place, Temporary};
use jiff::Timestamp;

use super::{
    ChangeCause, ChangeRecord, CheckpointError, CheckpointStore, FileState, MOST_KEPT_BYTES,
};
use crate::atomic;

/// A file, what it is to become, and what it is expected to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreStep {
    pub path: PathBuf,
    target: FileState,
    /// After the last change, and before it: that may not have been made.
    expected: [FileState; 2],
    new_dirs: usize,
}

impl RestoreStep {
    /// One for each file of these changes: back to before the first of them.
    pub fn all<'a>(records: impl IntoIterator<Item = &'a ChangeRecord>) -> Vec<Self> {
        let mut steps: Vec<Self> = Vec::new();
        for record in records {
            let expected = [record.after.clone(), record.before.clone()];
            match steps.iter_mut().find(|step| step.path == record.path) {
                Some(step) => step.expected = expected,
                None => steps.push(Self {
                    path: record.path.clone(),
                    target: record.before.clone(),
                    expected,
                    new_dirs: record.new_dirs,
                }),
            }
        }
        steps
    }
}

/// What is done about a file that is not what the last change left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    LeaveAlone,
    /// Its content is kept like any other, so this can be undone as well.
    Overwrite,
}

/// Why a file is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileConflict {
    #[error("it was changed since, by a command or by hand")]
    Changed,
    #[error("it was removed since, by a command or by hand")]
    Removed,
    #[error("something that is no regular file is in its place, or a link is in its path")]
    NotRegular,
    #[error("it is read-only")]
    ReadOnly,
    #[error("it is larger than {} MiB, or the session has kept too much", MOST_KEPT_BYTES >> 20)]
    NotKept,
    #[error("{0}")]
    Unreadable(String),
}

impl FileConflict {
    /// Whether `OnConflict::Overwrite` restores it all the same.
    pub fn can_be_overwritten(&self) -> bool {
        matches!(self, Self::Changed | Self::Removed)
    }
}

/// What a restore would do to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreVerdict {
    /// It is what it should be.
    Unneeded,
    Possible,
    Conflict(FileConflict),
}

/// A step that was looked at and not made. A content is `None` where there is no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRestore {
    pub verdict: RestoreVerdict,
    pub now: Option<Vec<u8>>,
    pub then: Option<Vec<u8>>,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It was what it should be.
    Unneeded,
    Restored,
    LeftAlone(FileConflict),
}

/// A restore under way.
#[derive(Debug, Clone)]
pub struct Restore {
    pub store: CheckpointStore,
    /// What its own changes are recorded as.
    pub cause: ChangeCause,
}

/// A file as it is now.
struct Current {
    /// `None` while its directory is missing.
    place: Option<Place>,
    found: Option<(Metadata, Vec<u8>)>,
}

/// A step whose record is written.
pub(super) struct Prepared<'a> {
    step: &'a RestoreStep,
    current: Current,
    content: Vec<u8>,
}

impl Restore {
    /// Looks at a file without changing anything.
    pub fn plan(&self, step: &RestoreStep, on_conflict: OnConflict) -> PlannedRestore {
        let (verdict, now) = match Current::of(&step.path) {
            Ok(current) => (
                current.verdict(step, on_conflict),
                current.found.map(|(_, content)| content),
            ),
            Err(conflict) => (RestoreVerdict::Conflict(conflict), None),
        };
        let has_content = matches!(step.target, FileState::Content { .. });
        let then = match has_content.then(|| self.store.content(&step.target)) {
            None => None,
            Some(Ok(content)) => Some(content),
            Some(Err(error)) => {
                let verdict = match verdict {
                    RestoreVerdict::Unneeded => RestoreVerdict::Unneeded,
                    _ => RestoreVerdict::Conflict(FileConflict::Unreadable(error.to_string())),
                };
                return PlannedRestore {
                    verdict,
                    now,
                    then: None,
                };
            }
        };
        PlannedRestore { verdict, now, then }
    }

    /// Restores a file. An error means that the checkpoints cannot be used; the file is as it was.
    pub fn run(
        &self,
        step: &RestoreStep,
        on_conflict: OnConflict,
    ) -> Result<RestoreOutcome, CheckpointError> {
        Ok(match self.prepare(step, on_conflict)? {
            Ok(prepared) => match prepared.finish() {
                Ok(()) => RestoreOutcome::Restored,
                Err(error) => {
                    RestoreOutcome::LeftAlone(FileConflict::Unreadable(error.to_string()))
                }
            },
            Err(outcome) => outcome,
        })
    }

    /// Keeps the file as it is now and records what will be done. The inner error says that nothing
    /// will be.
    pub(super) fn prepare<'a>(
        &self,
        step: &'a RestoreStep,
        on_conflict: OnConflict,
    ) -> Result<Result<Prepared<'a>, RestoreOutcome>, CheckpointError> {
        let left = |conflict| Ok(Err(RestoreOutcome::LeftAlone(conflict)));
        let current = match Current::of(&step.path) {
            Ok(current) => current,
            Err(conflict) => return left(conflict),
        };
        match current.verdict(step, on_conflict) {
            RestoreVerdict::Unneeded => return Ok(Err(RestoreOutcome::Unneeded)),
            RestoreVerdict::Conflict(conflict) => return left(conflict),
            RestoreVerdict::Possible => {}
        }
        let content = match self.store.content(&step.target) {
            Ok(content) => content,
            Err(error) => return left(FileConflict::Unreadable(error.to_string())),
        };
        let before = current.state();
        if let Some((_, content)) = &current.found {
            self.store.keep(&before, content)?;
        }
        self.store.append(&ChangeRecord {
            at: Timestamp::now(),
            cause: self.cause,
            path: step.path.clone(),
            before,
            after: step.target.clone(),
            new_dirs: match current.place {
                Some(_) => 0,
                None => missing_dirs(&step.path),
            },
        })?;
        Ok(Ok(Prepared {
            step,
            current,
            content,
        }))
    }
}

impl Current {
    fn of(path: &Path) -> Result<Self, FileConflict> {
        let place = match codespar_files::place(path) {
            Ok(place) => place,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    place: None,
                    found: None,
                });
            }
            Err(_) => return Err(FileConflict::NotRegular),
        };
        let read = place.open().and_then(|file| {
            let metadata = file.metadata.clone();
            Ok((metadata, file.read(MOST_KEPT_BYTES)?))
        });
        let found = match read {
            Ok(found) => Some(found),
            Err(OpenError::Missing) => None,
            Err(OpenError::TooLarge { .. }) => return Err(FileConflict::NotKept),
            Err(OpenError::Directory | OpenError::NotRegular | OpenError::Proc) => {
                return Err(FileConflict::NotRegular);
            }
            Err(error) => return Err(FileConflict::Unreadable(error.to_string())),
        };
        Ok(Self {
            place: Some(place),
            found,
        })
    }

    fn state(&self) -> FileState {
        match &self.found {
            Some((metadata, content)) => FileState::of(content, metadata.mode()),
            None => FileState::Absent,
        }
    }

    fn verdict(&self, step: &RestoreStep, on_conflict: OnConflict) -> RestoreVerdict {
        let state = self.state();
        if state.is_same(&step.target) {
            return RestoreVerdict::Unneeded;
        }
        if matches!(step.target, FileState::NotKept { .. }) {
            return RestoreVerdict::Conflict(FileConflict::NotKept);
        }
        let found = self.found.as_ref();
        if found.is_some_and(|(metadata, _)| metadata.permissions().readonly()) {
            return RestoreVerdict::Conflict(FileConflict::ReadOnly);
        }
        let is_expected = step.expected.iter().any(|known| known.is_same(&state));
        match (is_expected || on_conflict == OnConflict::Overwrite, found) {
            (true, _) => RestoreVerdict::Possible,
            (false, Some(_)) => RestoreVerdict::Conflict(FileConflict::Changed),
            (false, None) => RestoreVerdict::Conflict(FileConflict::Removed),
        }
    }
}

impl Prepared<'_> {
    /// The mode of a file that is there stays; one that is made again gets the mode it had.
    pub(super) fn finish(self) -> io::Result<()> {
        let Self {
            step,
            current,
            content,
        } = self;
        let FileState::Content { mode, .. } = step.target else {
            return remove(current.place.as_ref(), &step.path, step.new_dirs);
        };
        let place = match current.place {
            Some(place) => place,
            None => codespar_files::make_place(&step.path)?,
        };
        if let Some((metadata, _)) = &current.found {
            return atomic::replace(&place, &content, Some(metadata)).map(|_| ());
        }
        let (mut new, file) = Temporary::beside(&place, &content)?;
        if mode != 0 {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        new.persist(&place)
    }
}

/// Directories that were made for the file go with it, as far as they are empty.
fn remove(place: Option<&Place>, path: &Path, new_dirs: usize) -> io::Result<()> {
    if let Some(place) = place {
        place.remove_file()?;
    }
    for dir in path.ancestors().skip(1).take(new_dirs) {
        let removed = codespar_files::place(dir).and_then(|place| place.remove_dir());
        if removed.is_err() {
            break;
        }
    }
    Ok(())
}

/// How many of the directories around a file do not exist.
pub(crate) fn missing_dirs(path: &Path) -> usize {
    let is_missing = |dir: &&Path| {
        let found = dir.symlink_metadata();
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    path.ancestors().skip(1).take_while(is_missing).count()
}
