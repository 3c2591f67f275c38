//! A model that writes down what another one answers.
//!
//! Only whole answers are recorded: a call that fails, is cancelled or is dropped before its end
//! leaves no line. The answer is on disk before the caller sees it; if it cannot be written, the
//! caller gets the error instead of the answer.

use std::{fmt, fs, io::Write, path::PathBuf, sync::Arc};

use futures::{StreamExt, stream::BoxStream};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    Redaction,
    digest::{Found, digest, redact_strings, turn},
    fault,
    tape::{Asked, FORMAT, Header, Line, Matching, Piece},
};
use crate::{Model, ModelError, ModelEvent, Request, Response, failure::excerpt};

/// Passes everything through, and appends each whole answer to a file before it is yielded.
#[derive(Clone)]
pub struct CassetteRecorder {
    inner: Arc<dyn Model>,
    tape: Arc<Tape>,
}

impl fmt::Debug for CassetteRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassetteRecorder")
            .field("inner", &self.inner.provider())
            .field("path", &self.tape.path)
            .finish()
    }
}

/// Shared by all streams of a recorder. Only one process should record to a file: nothing keeps two
/// of them from writing a header each.
struct Tape {
    path: PathBuf,
    redact: Redaction,
    /// One line at a time.
    writing: Mutex<()>,
}

impl CassetteRecorder {
    /// Records what `inner` answers to the file at `path`, which is appended to if it is there.
    pub fn new(inner: Arc<dyn Model>, path: impl Into<PathBuf>, redact: Redaction) -> Self {
        Self {
            inner,
            tape: Arc::new(Tape {
                path: path.into(),
                redact,
                writing: Mutex::new(()),
            }),
        }
    }
}

impl Model for CassetteRecorder {
    /// The text and thinking that came are kept in pieces as they came, so that a replay streams in
    /// the same way.
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let tape = self.tape.clone();
        let asked = Arc::new(request.clone());
        let pieces = Arc::new(Mutex::new(Vec::new()));
        let inner = self.inner.stream(request, cancel);
        inner
            .then(move |event| {
                let (tape, asked, pieces) = (tape.clone(), asked.clone(), pieces.clone());
                async move {
                    match &event {
                        Ok(ModelEvent::TextDelta(text)) => {
                            pieces.lock().push(Piece::Text(text.clone()));
                        }
                        Ok(ModelEvent::ThinkingDelta(text)) => {
                            pieces.lock().push(Piece::Thinking(text.clone()));
                        }
                        // What came of the failed try is void.
                        Ok(ModelEvent::Retrying { .. }) => pieces.lock().clear(),
                        Ok(ModelEvent::Finished(response)) => {
                            let pieces = std::mem::take(&mut *pieces.lock());
                            let response = response.clone();
                            let path = tape.path.clone();
                            let write = move || tape.record(&asked, pieces, response);
                            let written = tokio::task::spawn_blocking(write).await;
                            written.map_err(|error| fault(&path, error))??;
                        }
                        Ok(ModelEvent::Counted(_)) | Err(_) => {}
                    }
                    event
                }
            })
            .boxed()
    }

    fn provider(&self) -> &'static str {
        self.inner.provider()
    }

    fn may_charge(&self) -> bool {
        self.inner.may_charge()
    }

    fn searches_web(&self) -> bool {
        self.inner.searches_web()
    }
}

impl Tape {
    /// Blocking: it runs on the pool of blocking threads. Of the request only a digest, the model,
    /// the number of messages and the beginning of the last one are written.
    fn record(
        &self,
        request: &Request,
        pieces: Vec<Piece>,
        response: Response,
    ) -> Result<(), ModelError> {
        let unwritable = |error: serde_json::Error| fault(&self.path, error);
        let last = request.messages.last().map(|message| message.text());
        let line = Line {
            contains: Vec::new(),
            digest: Some(digest(&request.messages, &self.redact).map_err(unwritable)?),
            turn: Some(turn(request)),
            request: Some(Asked {
                model: request.model.clone(),
                messages: request.messages.len(),
                last: excerpt(&last.unwrap_or_default()),
            }),
            events: Some(pieces),
            response: response.into(),
        };
        let line = self.redacted(&line).map_err(unwritable)?;
        self.append(&line)
            .map_err(|error| fault(&self.path, format!("cannot be written: {error}")))
    }

    /// The line without secrets. One that has none is kept exactly as it came. Reserialising
    /// through `Value` would change the formatting of raw JSON in tool inputs, so that form is used
    /// only where a secret has to be replaced.
    fn redacted(&self, line: &Line) -> serde_json::Result<String> {
        let mut json = serde_json::to_value(line)?;
        match redact_strings(&mut json, &self.redact) {
            Found::Nothing => serde_json::to_string(line),
            Found::Secrets => Ok(json.to_string()),
        }
    }

    /// Header and line go out in one write each time, so that the file never ends half way.
    fn append(&self, line: &str) -> std::io::Result<()> {
        let _one_at_a_time = self.writing.lock();
        let mut options = fs::OpenOptions::new();
        let mut file = options.create(true).append(true).open(&self.path)?;
        let mut text = String::with_capacity(line.len() + 64);
        if file.metadata()?.len() == 0 {
            text.push_str(&serde_json::to_string(&Header {
                cassette: FORMAT,
                matching: Matching::Messages,
            })?);
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
        file.write_all(text.as_bytes())?;
        file.flush()
    }
}
