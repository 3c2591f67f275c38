//! A model that answers from a cassette.
//!
//! The file is read once, when it is opened; a broken line is found then and not in the middle of a
//! run. Nothing is sent anywhere, and no time passes between events.

use std::{
    collections::HashMap,
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{StreamExt, stream, stream::BoxStream};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    Redaction,
    digest::{digest, turn},
    fault,
    tape::{FORMAT, Header, Line, Matching},
};
use crate::{Model, ModelError, ModelEvent, Request};

/// Answers as the file says; a request that is not in it is an error.
pub struct CassettePlayer {
    path: PathBuf,
    matching: Matching,
    redact: Redaction,
    /// Those that only requests with certain texts get, in the order of the file.
    chosen: Vec<Line>,
    lines: HashMap<Key, Vec<Line>>,
    /// How often each conversation was asked for. A conversation that was recorded several times
    /// plays its answers in order, the last one again and again.
    played: Mutex<HashMap<Key, usize>>,
}

/// Which variant is used follows from the header, so a player has keys of one kind only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Digest(String),
    Turn(usize),
}

impl fmt::Debug for CassettePlayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassettePlayer")
            .field("path", &self.path)
            .field("matching", &self.matching)
            .finish_non_exhaustive()
    }
}

impl CassettePlayer {
    /// Reads the whole file; an error names the line.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, ModelError> {
        let path = path.into();
        let text = fs::read_to_string(&path)
            .map_err(|error| fault(&path, format!("cannot be read: {error}")))?;
        let (matching, chosen, lines) = read(&path, &text)?;
        Ok(Self {
            path,
            matching,
            chosen,
            redact: Arc::new(str::to_owned),
            lines,
            played: Mutex::default(),
        })
    }

    /// Compares messages with their secrets taken out, as the recorder wrote them.
    #[must_use]
    pub fn with_redaction(mut self, redact: Redaction) -> Self {
        self.redact = redact;
        self
    }

    /// Secrets are taken out of the messages before the digest is computed, as they were when it
    /// was recorded. In turn mode the content of the request does not matter.
    fn answer(&self, request: Request) -> Result<Vec<ModelEvent>, ModelError> {
        let turn = turn(&request);
        if let Some(line) = self.chosen_for(&request, turn) {
            return Ok(line.clone().into_events(request.model));
        }
        let key = match self.matching {
            Matching::Turn => Key::Turn(turn),
            Matching::Messages => Key::Digest(
                digest(&request.messages, &self.redact)
                    .map_err(|error| fault(&self.path, error))?,
            ),
        };
        let Some(lines) = self.lines.get(&key) else {
            return Err(self.missing(turn));
        };
        let mut played = self.played.lock();
        let times = played.entry(key).or_default();
        let at = (*times).min(lines.len() - 1);
        *times += 1;
        Ok(lines[at].clone().into_events(request.model))
    }

    /// The first line whose texts are all in the request.
    fn chosen_for(&self, request: &Request, turn: usize) -> Option<&Line> {
        if self.chosen.is_empty() {
            return None;
        }
        let system = request.system.to_lowercase();
        let last = request.messages.last().map(|message| message.text());
        let last = last.unwrap_or_default().to_lowercase();
        self.chosen.iter().find(|line| {
            let has = |text: &String| system.contains(text) || last.contains(text);
            line.turn.is_none_or(|wanted| wanted == turn) && line.contains.iter().all(has)
        })
    }

    /// Names the turn, since the digest would tell the user nothing.
    fn missing(&self, turn: usize) -> ModelError {
        let message = match self.matching {
            Matching::Messages => format!(
                "no answer for turn {turn} of this conversation; its messages differ from the \
                 recorded ones (record it anew, or match by turn)"
            ),
            Matching::Turn => format!("no answer for turn {turn}; add a line for it"),
        };
        fault(&self.path, message)
    }
}

impl Model for CassettePlayer {
    /// The answer is chosen when the stream is made, not when it is first polled. A token that is
    /// cancelled later ends it before the next event.
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let events = match self.answer(request) {
            Ok(events) => events.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        stream::unfold(events.into_iter(), move |mut events| {
            let cancelled = cancel.is_cancelled();
            async move {
                let next = events.next()?;
                if cancelled {
                    return Some((Err(ModelError::Cancelled), Vec::new().into_iter()));
                }
                Some((next, events))
            }
        })
        .boxed()
    }

    fn provider(&self) -> &'static str {
        "cassette"
    }

    /// What was counted is on the tape.
    fn may_charge(&self) -> bool {
        false
    }
}

/// What a file holds: how it is matched, the lines with texts, and the others by key.
type Tape = (Matching, Vec<Line>, HashMap<Key, Vec<Line>>);

/// Blank lines are skipped but counted, so that an error names the line of the file.
fn read(path: &Path, text: &str) -> Result<Tape, ModelError> {
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let mut rest = numbered.filter(|(_, line)| !line.trim().is_empty());
    let (at, first) = rest.next().ok_or_else(|| fault(path, "is empty"))?;
    let header: Header = parse(path, at, first)?;
    if header.cassette != FORMAT {
        let version = header.cassette;
        return Err(fault(
            path,
            format!("line {at}: format {version} is not known (this version reads {FORMAT})"),
        ));
    }
    let mut chosen: Vec<Line> = Vec::new();
    let mut lines: HashMap<Key, Vec<Line>> = HashMap::new();
    for (nth, (at, text)) in rest.enumerate() {
        let mut line: Line = parse(path, at, text)?;
        if !line.contains.is_empty() {
            line.contains
                .iter_mut()
                .for_each(|one| *one = one.to_lowercase());
            chosen.push(line);
            continue;
        }
        let key = match header.matching {
            Matching::Turn => Key::Turn(line.turn.unwrap_or(nth + 1)),
            Matching::Messages => Key::Digest(line.digest.clone().ok_or_else(|| {
                let advice = "missing field `digest` (a cassette written by hand needs \
                              \"match\":\"turn\" in its first line)";
                fault(path, format!("line {at}: {advice}"))
            })?),
        };
        lines.entry(key).or_default().push(line);
    }
    Ok((header.matching, chosen, lines))
}

fn parse<T: serde::de::DeserializeOwned>(
    path: &Path,
    at: usize,
    line: &str,
) -> Result<T, ModelError> {
    serde_json::from_str(line).map_err(|error| fault(path, format!("line {at}: {error}")))
}
