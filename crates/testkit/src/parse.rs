//! Reads a script from JSON, with errors that name the file, the line and the turn.
//!
//! The format is described in the documentation of the crate. Reading is strict: an unknown key is
//! an error, so that a typing mistake does not silently become a turn without faults.
//!
//! Parts are kept as slices of the text (`RawValue`) until they are read. The address of a slice
//! within the text gives its line, and the path to it (for example `turn 3, block 2`) goes into the
//! error. Each kind of object has a form, a struct with exactly the keys it may have.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use codespar_protocol::StopReason;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    AfterLast, Conversation, Matcher, Script, Turn, Validation,
    fault::FaultForm,
    turn::{Block, TurnUsage},
};

/// A script that cannot be read. Shown as `file:line: place: problem`, as far as each of them is
/// known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ScriptError {
    file: Option<PathBuf>,
    line: Option<usize>,
    /// Turn, block or fault, counted from 1; empty for the file as a whole.
    place: String,
    problem: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.problem)
    }
}

impl Script {
    /// Reads a script; the format is in the documentation of this crate.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        Source { text }.script()
    }

    /// Reads a script from a file. The error names the file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| ScriptError {
            file: Some(path.to_owned()),
            line: None,
            place: String::new(),
            problem: format!("cannot read the script: {error}"),
        })?;
        Self::from_json(&text).map_err(|error| ScriptError {
            file: Some(path.to_owned()),
            ..error
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptForm<'a> {
    /// The default conversation; it may be missing where there are named ones.
    #[serde(borrow)]
    turns: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    after_last: AfterLast,
    #[serde(borrow, default)]
    conversations: Vec<&'a RawValue>,
    /// Only `false` turns validation off.
    strict: Option<bool>,
    longest_request: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConversationForm<'a> {
    name: String,
    #[serde(rename = "match", default)]
    matcher: Matcher,
    #[serde(borrow)]
    turns: Vec<&'a RawValue>,
    #[serde(default)]
    after_last: AfterLast,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepeatForm<'a> {
    repeat: usize,
    /// Either this or `turns`; if both are given, this one comes first.
    #[serde(borrow)]
    turn: Option<&'a RawValue>,
    #[serde(borrow, default)]
    turns: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnForm<'a> {
    /// A text, or a list of blocks.
    #[serde(borrow)]
    content: &'a RawValue,
    stop_reason: Option<StopReason>,
    #[serde(default)]
    usage: TurnUsage,
    #[serde(default)]
    latency_ms: u64,
    #[serde(default)]
    delay_ms: u64,
    chunk: Option<usize>,
    #[serde(borrow, default)]
    faults: Vec<&'a RawValue>,
}

/// Read first, to know which form the block has. Kinds that are not known are sent as they stand.
#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

/// Without `input` and `input_text` the input is `{}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolUseForm<'a> {
    #[serde(rename = "type")]
    _kind: String,
    id: Option<String>,
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    input_text: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextForm {
    #[serde(rename = "type")]
    _kind: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThinkingForm {
    #[serde(rename = "type")]
    _kind: String,
    thinking: String,
    #[serde(default)]
    signature: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RedactedThinkingForm {
    #[serde(rename = "type")]
    _kind: String,
    data: String,
}

/// The text being read; parts of it are slices, so that their lines can be found.
#[derive(Clone, Copy)]
struct Source<'a> {
    text: &'a str,
}

impl<'a> Source<'a> {
    /// A list is a script of turns alone, an object can say more.
    fn script(self) -> Result<Script, ScriptError> {
        let whole: &RawValue = serde_json::from_str(self.text).map_err(|error| ScriptError {
            file: None,
            line: Some(error.line()),
            place: String::new(),
            problem: format!("not JSON: {error}"),
        })?;
        if whole.get().starts_with('[') {
            let turns: Vec<&RawValue> = self.read(whole, "script")?;
            return Ok(Script::of(self.turns(&turns, "")?));
        }
        let form: ScriptForm<'a> = self.read(whole, "script")?;
        let default = match form.turns {
            Some(turns) => Some(
                Conversation::new("default", Matcher::default())
                    .turns(self.turns(&turns, "")?)
                    .after_last(form.after_last),
            ),
            None if form.conversations.is_empty() => {
                return Err(self.error(whole, "script", "it has neither turns nor conversations"));
            }
            None => None,
        };
        let named = form
            .conversations
            .iter()
            .enumerate()
            .map(|(index, raw)| self.conversation(raw, index + 1))
            .collect::<Result<_, _>>()?;
        let validation = match form.strict {
            Some(false) => Validation::Off,
            _ => Validation::Strict,
        };
        Ok(Script {
            named,
            default,
            validation,
            longest_request: form.longest_request,
        })
    }

    fn conversation(self, raw: &'a RawValue, number: usize) -> Result<Conversation, ScriptError> {
        let form: ConversationForm<'a> = self.read(raw, &format!("conversation {number}"))?;
        let within = format!("conversation `{}`, ", form.name);
        Ok(Conversation::new(form.name, form.matcher)
            .turns(self.turns(&form.turns, &within)?)
            .after_last(form.after_last))
    }

    /// Turns in order; a repetition becomes its turns. The place of an error in a repetition is the
    /// number of its first turn.
    fn turns(self, raw: &[&'a RawValue], within: &str) -> Result<Vec<Turn>, ScriptError> {
        let mut turns = Vec::new();
        for raw in raw {
            let place = format!("{within}turn {}", turns.len() + 1);
            if is_repetition(raw) {
                let form: RepeatForm<'a> = self.read(raw, &place)?;
                let repeated: Vec<_> = form.turn.into_iter().chain(form.turns).collect();
                if repeated.is_empty() {
                    return Err(self.error(raw, &place, "`repeat` needs `turn` or `turns`"));
                }
                let once: Vec<Turn> = repeated
                    .iter()
                    .map(|raw| self.turn(raw, &place))
                    .collect::<Result<_, _>>()?;
                for _ in 0..form.repeat {
                    turns.extend_from_slice(&once);
                }
            } else {
                turns.push(self.turn(raw, &place)?);
            }
        }
        Ok(turns)
    }

    fn turn(self, raw: &'a RawValue, place: &str) -> Result<Turn, ScriptError> {
        if raw.get().starts_with('"') {
            return Ok(Turn::text(self.read::<String>(raw, place)?));
        }
        let form: TurnForm<'a> = self.read(raw, place)?;
        let mut turn = Turn::new()
            .latency(Duration::from_millis(form.latency_ms))
            .delay(Duration::from_millis(form.delay_ms));
        turn.usage = form.usage;
        turn.stop_reason = form.stop_reason;
        if let Some(characters) = form.chunk {
            turn = turn.chunk(characters);
        }
        for (index, raw) in form.faults.iter().enumerate() {
            let place = format!("{place}, fault {}", index + 1);
            let fault = self
                .read::<FaultForm>(raw, &place)?
                .into_fault()
                .map_err(|problem| self.error(raw, &place, &problem))?;
            turn = turn.fault(fault);
        }
        if form.content.get().starts_with('[') {
            for (index, raw) in self
                .read::<Vec<&'a RawValue>>(form.content, place)?
                .into_iter()
                .enumerate()
            {
                turn = turn.and(self.block(raw, &format!("{place}, block {}", index + 1))?);
            }
            Ok(turn)
        } else {
            Ok(turn.and_text(self.read::<String>(form.content, place)?))
        }
    }

    /// Inputs keep their text, spaces and order of keys included: what is sent is what was written.
    fn block(self, raw: &'a RawValue, place: &str) -> Result<Block, ScriptError> {
        if raw.get().starts_with('"') {
            return Ok(Block::Text(self.read(raw, place)?));
        }
        let Kind { kind } = self.read(raw, place)?;
        Ok(match kind.as_str() {
            "text" => Block::Text(self.read::<TextForm>(raw, place)?.text),
            "thinking" => {
                let form: ThinkingForm = self.read(raw, place)?;
                Block::Thinking {
                    thinking: form.thinking,
                    signature: form.signature,
                }
            }
            "redacted_thinking" => Block::RedactedThinking {
                data: self.read::<RedactedThinkingForm>(raw, place)?.data,
            },
            "tool_use" => {
                let form: ToolUseForm<'a> = self.read(raw, place)?;
                let input = match (form.input, form.input_text) {
                    (Some(input), None) => input.get().to_owned(),
                    (None, Some(text)) => text,
                    (None, None) => "{}".to_owned(),
                    (Some(_), Some(_)) => {
                        let problem = "give `input` or `input_text`, not both";
                        return Err(self.error(raw, place, problem));
                    }
                };
                Block::ToolUse {
                    id: form.id,
                    name: form.name,
                    input,
                }
            }
            _ => Block::Raw(raw.get().to_owned()),
        })
    }

    /// Reads a part into its form. The line in the error is that of the file, not of the slice.
    fn read<T: Deserialize<'a>>(self, raw: &'a RawValue, place: &str) -> Result<T, ScriptError> {
        serde_json::from_str(raw.get()).map_err(|error| {
            let text = error.to_string();
            // The position it names is within the slice; the line below is the file's.
            let problem = text.split(" at line ").next().unwrap_or(&text);
            ScriptError {
                line: Some(self.line_of(raw) + error.line().saturating_sub(1)),
                ..self.error(raw, place, problem)
            }
        })
    }

    fn error(self, raw: &RawValue, place: &str, problem: &str) -> ScriptError {
        ScriptError {
            file: None,
            line: Some(self.line_of(raw)),
            place: place.to_owned(),
            problem: problem.to_owned(),
        }
    }

    /// Works for slices of `text` only.
    fn line_of(self, raw: &RawValue) -> usize {
        let offset = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.text.as_bytes().get(..offset).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }
}

/// Told by its key, so that a mistake in a turn is not reported as one in a repetition.
fn is_repetition(raw: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Probe {
        repeat: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_str::<Probe>(raw.get()).is_ok_and(|probe| probe.repeat.is_some())
}
