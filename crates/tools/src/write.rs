//! Write: a whole file.
//!
//! A new file is created with its directories; an existing one must have been read and be unchanged
//! ([`FileLedger`]). Either way the content appears under its name whole or not at all. Written and
//! edited files go through the same [`Target`].
//!
//! A whole file cannot say which secret a redaction mark stood for. So where the old file has
//! secrets that were not shown, a new text with more marks than before is refused.

use std::{fs::Metadata, io, path::Path, sync::Arc};

use async_trait::async_trait;
use codespar_files::{OpenError, Place};
use codespar_policy::{Access, Redactor};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{
    ApprovedText, Call, Checkpoints, Context, Effect, FileLedger, Intent, LedgerProblem, Proposal,
    Tool, ToolError, ToolOutput, atomic, blocking,
    checkpoints::{Upcoming, missing_dirs},
    input,
    ledger::HASHED_BYTES,
    paths,
    tool::path_of,
};

pub(crate) struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    file_path: String,
    content: String,
}

#[async_trait]
impl Tool for Write {
    fn name(&self) -> &str {
        "Write"
    }

    fn description(&self) -> &str {
        "Writes a file whole, making its directories. An existing file must have been read first. \
         To change part of a file use Edit."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, input: &RawValue, context: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(input)?;
        let path = paths::resolve(context, &input.file_path)?;
        Ok(Intent {
            summary: paths::shown(&path, &context.cwd()),
            access: vec![Access::Write(path)],
        })
    }

    async fn propose(
        &self,
        input: &RawValue,
        access: &[Access],
        context: &Context,
    ) -> Option<Proposal> {
        let Input { content, .. } = input::parse(input).ok()?;
        let path = path_of(access).ok()?;
        let (cwd, records) = (context.cwd(), context.file_records());
        let redactor = context.redactor().clone();
        let propose = move |_: &CancellationToken| {
            let target = writable(&path, &cwd, &content, &records, &redactor)?;
            Ok(target.proposal(content))
        };
        let proposal = blocking::look(CancellationToken::new(), propose).await;
        proposal.ok().flatten()
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let write = async {
            let Input { content, .. } = input::parse(&call.input)?;
            let path = call.path()?;
            let (cwd, records) = (context.cwd(), context.file_records());
            let redactor = context.redactor().clone();
            let write = move || match &call.text {
                Some(text) => write_approved(&path, &cwd, text, &records),
                None => write(&path, &cwd, &content, &records, &redactor),
            };
            blocking::change(call.cancel, write).await
        };
        write.await.map_or_else(ToolOutput::from, ToolOutput::text)
    }
}

/// Writes a text that was made from the file as it was, if it is still so.
pub(crate) fn write_approved(
    path: &Path,
    cwd: &Path,
    text: &ApprovedText,
    records: &FileRecords,
) -> Result<String, ToolError> {
    let name = paths::shown(path, cwd);
    let target = Target::find(path, &name)?;
    let Some(before) = &target.before else {
        return Err(not_as_shown(&name));
    };
    if before.content != text.before.as_bytes() {
        return Err(not_as_shown(&name));
    }
    let ledger = &records.ledger;
    let seen = ledger.check(path, &before.metadata, &before.content);
    target.save(path, text.after.as_bytes(), records)?;
    if seen == Err(LedgerProblem::NotRead) {
        // Its author has seen the change and nothing else of the file.
        ledger.forget(path);
    }
    let (lines, old) = (text.after.lines().count(), text.before.lines().count());
    Ok(format!("Updated {name} ({lines} lines, before {old})"))
}

fn not_as_shown(name: &str) -> ToolError {
    ToolError(format!(
        "{name} is not written: it has changed since its hunks were shown to the user; read it \
         again"
    ))
}

/// Where to write, if the content may be written there.
fn writable(
    path: &Path,
    cwd: &Path,
    content: &str,
    records: &FileRecords,
    redactor: &Redactor,
) -> Result<Target, ToolError> {
    let name = paths::shown(path, cwd);
    let target = Target::find(path, &name)?;
    if let Some(before) = &target.before {
        let problem = records
            .ledger
            .check(path, &before.metadata, &before.content);
        problem.map_err(|problem| ToolError(format!("{name} is not written: {problem}")))?;
        let old = String::from_utf8_lossy(&before.content);
        if let Some(mark) = redactor.added_mark(&old, content) {
            return Err(ToolError(format!(
                "{name} is not written: `{mark}` stands for a secret of the file that was not \
                 shown, and would take its place; use Edit"
            )));
        }
    }
    Ok(target)
}

fn write(
    path: &Path,
    cwd: &Path,
    content: &str,
    records: &FileRecords,
    redactor: &Redactor,
) -> Result<String, ToolError> {
    let name = paths::shown(path, cwd);
    let target = writable(path, cwd, content, records, redactor)?;
    target.save(path, content.as_bytes(), records)?;
    let lines = content.lines().count();
    Ok(match target.before {
        None => format!("Created {name} ({lines} lines)"),
        Some(before) => {
            let old = String::from_utf8_lossy(&before.content).lines().count();
            format!("Updated {name} ({lines} lines, before {old})")
        }
    })
}

/// A file that is there.
pub(crate) struct Existing {
    pub(crate) metadata: Metadata,
    /// Its bytes; none for a file too long to be hashed, which is known by its metadata.
    pub(crate) content: Vec<u8>,
}

/// Where a file is to be written. What is read and what is written is at one held place, so that
/// a link that appears meanwhile leads nowhere.
pub(crate) struct Target {
    /// `None` while its directory is missing.
    place: Option<Place>,
    /// The regular file that is there.
    pub(crate) before: Option<Existing>,
}

impl Target {
    /// What is at `path`: nothing, or a regular file.
    ///
    /// A missing directory is not an error and is not made yet: a call that fails its checks leaves
    /// nothing behind.
    pub(crate) fn find(path: &Path, name: &str) -> Result<Self, ToolError> {
        let failed =
            |error: &dyn std::fmt::Display| ToolError(format!("cannot read {name}: {error}"));
        let place = match codespar_files::place(path) {
            Ok(place) => place,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    place: None,
                    before: None,
                });
            }
            Err(error) => return Err(failed(&error)),
        };
        let before = match place.open() {
            Ok(opened) => {
                let metadata = opened.metadata.clone();
                let content = if metadata.len() <= HASHED_BYTES {
                    let read = opened.read(HASHED_BYTES);
                    read.map_err(|error| failed(&error))?
                } else {
                    Vec::new()
                };
                Some(Existing { metadata, content })
            }
            Err(OpenError::Missing) => None,
            Err(OpenError::Directory) => {
                return Err(ToolError(format!("{name} is a directory")));
            }
            Err(OpenError::NotRegular) => {
                return Err(ToolError(format!("{name} is not a regular file")));
            }
            Err(error) => return Err(failed(&error)),
        };
        Ok(Self {
            place: Some(place),
            before,
        })
    }

    /// The change from what is there to another text; none for a file that is missing, too long to
    /// be held, or not text.
    pub(crate) fn proposal(self, after: String) -> Option<Proposal> {
        let before = self.before?;
        if before.metadata.len() > HASHED_BYTES {
            return None;
        }
        Proposal::new(String::from_utf8(before.content).ok()?, after)
    }

    /// Keeps what is there, writes the file and remembers it as seen. Missing directories are made,
    /// one by one without following links, and stay if the file then cannot be written.
    pub(crate) fn save(
        &self,
        path: &Path,
        content: &[u8],
        records: &FileRecords,
    ) -> Result<(), ToolError> {
        let failed = |error: &dyn std::fmt::Display| {
            ToolError(format!("cannot write {}: {error}", path.display()))
        };
        let before = self.before.as_ref().map(|before| &before.metadata);
        atomic::check(path, before)?;
        let mut new_dirs = 0;
        let place = match &self.place {
            Some(place) => place.clone(),
            None => {
                new_dirs = missing_dirs(path);
                codespar_files::make_place(path).map_err(|error| failed(&error))?
            }
        };
        if let Some(checkpoints) = &records.checkpoints {
            let upcoming = Upcoming {
                path,
                before: self.before.as_ref(),
                after: content,
                new_dirs,
            };
            let captured = checkpoints.capture(&upcoming);
            captured.map_err(|error| failed(&error))?;
        }
        let metadata = atomic::write(&place, path, content, before)?;
        records.ledger.record(path, &metadata, content);
        Ok(())
    }
}

/// What is told of every file that a tool writes. Clones share it.
#[derive(Clone)]
pub(crate) struct FileRecords {
    pub(crate) ledger: FileLedger,
    pub(crate) checkpoints: Option<Arc<Checkpoints>>,
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    };

    use serde_json::json;

    use super::*;
    use crate::{read::Read, testing::Bench};

    #[tokio::test]
    async fn a_new_file_is_made_with_its_directories() {
        let bench = Bench::new();
        let input = json!({"file_path": "src/deep/a.rs", "content": "one\ntwo\n"});
        assert_eq!(
            bench.run(&Write, input).await,
            "Created src/deep/a.rs (2 lines)"
        );
        assert_eq!(bench.text("src/deep/a.rs"), "one\ntwo\n");
        let plain = bench.write("plain", "");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&bench.path("src/deep/a.rs")), mode(&plain));
    }

    #[tokio::test]
    async fn an_existing_file_must_have_been_read_and_not_changed_since() {
        let bench = Bench::new();
        bench.write("a.txt", "one\n");
        let input = json!({"file_path": "a.txt", "content": "new\n"});
        assert_eq!(
            bench.fail(&Write, input.clone()).await,
            "a.txt is not written: it has not been read yet; read it first"
        );
        bench.run(&Read, json!({"file_path": "a.txt"})).await;
        bench.write("a.txt", "two\n");
        assert_eq!(
            bench.fail(&Write, input.clone()).await,
            "a.txt is not written: it has changed since it was read; read it again"
        );
        assert_eq!(bench.text("a.txt"), "two\n");
        bench.run(&Read, json!({"file_path": "a.txt"})).await;
        assert_eq!(
            bench.run(&Write, input).await,
            "Updated a.txt (1 lines, before 1)"
        );
        let again = json!({"file_path": "a.txt", "content": ""});
        assert_eq!(
            bench.run(&Write, again).await,
            "Updated a.txt (0 lines, before 1)"
        );
        assert_eq!(bench.text("a.txt"), "");
    }

    #[tokio::test]
    async fn the_mode_stays_and_a_link_stays_a_link() {
        let bench = Bench::new();
        let script = bench.write("real.sh", "#!/bin/sh\n");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("real.sh", bench.path("link.sh")).unwrap();
        bench.run(&Read, json!({"file_path": "link.sh"})).await;
        bench
            .run(
                &Write,
                json!({"file_path": "link.sh", "content": "#!/bin/bash\n"}),
            )
            .await;
        assert_eq!(bench.text("real.sh"), "#!/bin/bash\n");
        assert_eq!(fs::metadata(&script).unwrap().mode() & 0o777, 0o755);
        assert!(
            fs::symlink_metadata(bench.path("link.sh"))
                .unwrap()
                .is_symlink()
        );
        assert_eq!(bench.names("."), ["link.sh", "real.sh"]);
    }

    #[tokio::test]
    async fn a_directory_a_read_only_file_and_a_file_for_a_directory_are_refused() {
        let bench = Bench::new();
        fs::create_dir(bench.path("dir")).unwrap();
        let write = |path: &str| json!({"file_path": path, "content": "x"});
        assert_eq!(bench.fail(&Write, write("dir")).await, "dir is a directory");
        let locked = bench.write("locked", "x");
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o444)).unwrap();
        bench.run(&Read, json!({"file_path": "locked"})).await;
        let error = bench.fail(&Write, write("locked")).await;
        assert!(error.contains("is read-only"), "{error}");
        let error = bench.fail(&Write, write("locked/below")).await;
        assert!(error.contains("Not a directory"), "{error}");
    }

    #[test]
    fn the_intent_is_to_write_where_the_path_really_leads() {
        let bench = Bench::new();
        let outside = Bench::new();
        symlink(outside.root(), bench.path("away")).unwrap();
        let intent = bench.inspect(&Write, &json!({"file_path": "away/x", "content": ""}));
        assert_eq!(intent.unwrap().access, [Access::Write(outside.path("x"))]);
    }
}
