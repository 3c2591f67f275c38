//! Read: a file as numbered lines, or a picture.
//!
//! The kind of a file is told by its first bytes, not by its name. Text comes page by page with
//! line numbers; the whole file is still read up to 32 MiB, to record its hash: after that the file
//! may be edited, even if only a part was shown. A picture becomes an image block. Everything else
//! is refused with its kind, because its bytes would mean nothing to a model.
//!
//! ```text
//!  99<tab>fn main() {
//! 100<tab>    run();
//! (214 lines in all; go on with offset 101)
//! ```

mod page;

use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use codespar_files::{OpenError, RegularFile};
use codespar_policy::Access;
use codespar_protocol::{ContentBlock, Image};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use self::page::{Page, Window};
use crate::{
    Call, Context, Effect, FileLedger, Intent, Tool, ToolError, ToolOutput, blocking, input,
    ledger::{ContentHash, HASHED_BYTES},
    paths,
    sniff::{FileKind, SNIFFED_BYTES, sniff},
};

/// Lines given when no limit is. A page ends earlier when it is as long as a result may be.
const DEFAULT_LINES: usize = 2_000;
/// A longer file is not read, not even in part: finding a line in it would take too long.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;
/// A picture's bytes: five megabytes, which providers take, once written in base64.
pub const MAX_IMAGE_BYTES: u64 = 5 * 1024 * 1024 / 4 * 3;

pub(crate) struct Read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    file_path: String,
    /// First line, from 1
    offset: Option<usize>,
    /// Number of lines
    limit: Option<usize>,
}

/// After a notebook: the offered form of Edit would mean writing JSON in JSON.
const NOTEBOOK: &str = "\n(To change a cell, call Edit with notebook_path, cell_id, new_source and \
                        perhaps cell_type (code, markdown) and edit_mode (replace, insert after \
                        cell_id, delete).)";

#[async_trait]
impl Tool for Read {
    fn name(&self) -> &str {
        "Read"
    }

    fn description(&self) -> &str {
        "Reads a file. Text comes as lines with their numbers and a tab before them (not part of \
         the file), 2000 lines at most unless limit says otherwise. Images (png, jpg, gif, webp) \
         are shown. Not for directories."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    fn inspect(&self, input: &RawValue, context: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(input)?;
        let path = paths::resolve(context, &input.file_path)?;
        Ok(Intent {
            summary: paths::shown(&path, &context.cwd()),
            access: vec![Access::Read(path)],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let read = async {
            let input: Input = input::parse(&call.input)?;
            let path = call.path()?;
            let (cwd, ledger) = (context.cwd(), context.ledger().clone());
            blocking::look(call.cancel, move |_| read(&path, &cwd, &input, &ledger)).await
        };
        read.await.unwrap_or_else(ToolOutput::from)
    }
}

/// The file is opened once, and size, kind and content all come from that handle. The first bytes
/// are read to tell the kind and put in front of the rest again.
fn read(
    path: &Path,
    cwd: &Path,
    input: &Input,
    ledger: &FileLedger,
) -> Result<ToolOutput, ToolError> {
    let name = paths::shown(path, cwd);
    let failed = |error: io::Error| ToolError(format!("cannot read {name}: {error}"));
    let RegularFile { mut file, metadata } = match codespar_files::open(path) {
        Ok(opened) => opened,
        Err(OpenError::Missing) => return Err(paths::missing(path, cwd)),
        Err(OpenError::Directory) => {
            return Err(ToolError(format!(
                "{name} is a directory, not a file; list it instead"
            )));
        }
        Err(OpenError::NotRegular) => {
            return Err(ToolError(format!("{name} is not a regular file")));
        }
        Err(error) => return Err(ToolError(format!("cannot read {name}: {error}"))),
    };
    if metadata.len() > MAX_BYTES {
        return Err(ToolError(format!(
            "{name} has {} bytes, too many for Read; use a command",
            metadata.len()
        )));
    }
    let mut head = Vec::with_capacity(SNIFFED_BYTES);
    let start = (&mut file).take(SNIFFED_BYTES as u64);
    { start }.read_to_end(&mut head).map_err(failed)?;
    match sniff(&head) {
        FileKind::Image(media_type) => {
            image(&name, &metadata, media_type, head, file).map(|(output, content)| {
                ledger.record(path, &metadata, &content);
                output
            })
        }
        FileKind::Binary(kind) => Err(ToolError(format!(
            "{name} is {kind} of {} bytes, not text; look at it with a command",
            metadata.len()
        ))),
        FileKind::Text => {
            let mut hash = (metadata.len() <= HASHED_BYTES).then(ContentHash::default);
            let window = Window {
                first: input.offset.unwrap_or(1).max(1),
                limit: input.limit.unwrap_or(DEFAULT_LINES),
            };
            let content = io::Cursor::new(head).chain(file);
            let page = Page::read(content, window, hash.as_mut()).map_err(failed)?;
            ledger.record_hash(path, &metadata, hash);
            let mut text = page.show(&name, window)?;
            if path.extension().is_some_and(|ending| ending == "ipynb") {
                text.push_str(NOTEBOOK);
            }
            Ok(ToolOutput::text(text))
        }
    }
}

/// The picture as a block, and its bytes for the ledger. The size is checked before reading and
/// bounded while reading, as the file may grow.
fn image(
    name: &str,
    metadata: &Metadata,
    media_type: &str,
    mut content: Vec<u8>,
    file: File,
) -> Result<(ToolOutput, Vec<u8>), ToolError> {
    if metadata.len() > MAX_IMAGE_BYTES {
        return Err(ToolError(format!(
            "{name} is an image of {} bytes; at most {MAX_IMAGE_BYTES} can be shown",
            metadata.len()
        )));
    }
    let failed = |error: String| ToolError(format!("cannot read {name}: {error}"));
    file.take(MAX_IMAGE_BYTES)
        .read_to_end(&mut content)
        .map_err(|error| failed(error.to_string()))?;
    let image = Image::base64(media_type, &STANDARD.encode(&content))
        .map_err(|error| failed(error.to_string()))?;
    Ok((
        ToolOutput::blocks(vec![ContentBlock::Image(image)]),
        content,
    ))
}

#[cfg(test)]
mod tests;
