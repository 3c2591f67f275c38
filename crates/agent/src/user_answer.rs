//! Asks the user about a call, and works out what the answer makes of it.
//!
//! The user may change what is asked about: its input, the hunks of its change, or the rules that
//! `always` would add. The call on record stays as the model made it; what ran instead is in the
//! result. A changed input is a new call that the user has approved: the tool inspects it, and a rule
//! that denies it holds, since the user may not have thought of that rule while editing. An answer
//! that cannot be used is asked again, with the reason.

use codespar_policy::{Access, Decision, Rule, RuleKind, RuleSource, SandboxState};
use codespar_protocol::{
    Answer, Confinement, ContentBlock, Event, PermissionRequest, ProposedChange, ProposedHunk,
    ToolResultContent, ToolUse,
};
use codespar_tools::{
    ApprovedText, Intent, Proposal, Tool, ToolOutput, sandbox::Approval, unified_diff,
};
use serde_json::{
    Map, Value,
    value::{RawValue, to_raw_value},
};

use crate::{
    Agent, Transcript,
    permit::{Refusal, RefusedBy, preview},
    stop::Stop,
};

/// How often one call is asked about while the answers cannot be used: a program that answers may
/// give the same one for ever.
const MOST_QUESTIONS: u32 = 5;
/// Longer changes are shown whole, not in hunks.
const MOST_HUNKS: usize = 50;
/// The same in bytes.
const LONGEST_HUNKS: usize = 64 << 10;

/// A call that the rules or the user allow.
pub(crate) struct Granted {
    pub(crate) intent: Intent,
    pub(crate) approval: Approval,
    pub(crate) changes: UserChanges,
}

/// What the user changed about a call.
#[derive(Debug, Default)]
pub(crate) struct UserChanges {
    /// In place of the model's.
    pub(crate) input: Option<Box<RawValue>>,
    /// To be written in place of what the input says.
    pub(crate) text: Option<ApprovedText>,
    /// For the model.
    note: Option<String>,
}

impl UserChanges {
    /// The result with what the model has to know of them.
    pub(crate) fn tell(note: Option<String>, mut output: ToolOutput) -> ToolOutput {
        let Some(note) = note else {
            return output;
        };
        match &mut output.content {
            ToolResultContent::Text(text) => {
                text.push_str("\n\n");
                text.push_str(&note);
            }
            ToolResultContent::Blocks(blocks) => blocks.push(ContentBlock::text(note)),
        }
        output
    }

    /// Another input alone.
    pub(crate) fn with_input(input: Box<RawValue>) -> Self {
        Self {
            input: Some(input),
            ..Self::default()
        }
    }

    /// Adds what the model has to know besides.
    pub(crate) fn add_note(&mut self, text: &str) {
        let note = self.note.get_or_insert_default();
        if !note.is_empty() {
            note.push_str("\n\n");
        }
        note.push_str(text);
    }

    pub(crate) fn take_note(&mut self) -> Option<String> {
        self.note.take()
    }
}

/// Why the rules leave a call to the user.
pub(crate) struct LeftOpen {
    pub(crate) reason: String,
    pub(crate) suggested: Vec<Rule>,
}

/// What an answer comes to.
enum Weighed {
    Granted(Granted),
    Refused(Refusal),
    /// It cannot be used, and why.
    Again(String),
}

/// A call that is being asked about.
struct OpenCall<'a> {
    call: &'a ToolUse,
    tool: &'a dyn Tool,
    intent: &'a Intent,
    proposal: Option<Proposal>,
    open: LeftOpen,
}

impl Agent {
    /// Waits for an answer without a limit of its own; when the run is stopped the question is
    /// withdrawn, except in a hand-over, where the next process waits for it.
    ///
    /// Each further question has a key of its own. They are the same in a process that asks again
    /// after a crash, so it finds every answer that was given.
    pub(crate) async fn ask_user(
        &self,
        call: &ToolUse,
        tool: &dyn Tool,
        intent: &Intent,
        open: LeftOpen,
        stop: &Stop,
    ) -> Result<Granted, Refusal> {
        if let Some(answered) = self
            .answered_by_hooks(call, tool, intent, &open, stop)
            .await
        {
            return answered;
        }
        let context = &self.parts.context;
        let proposal = tool.propose(&call.input, &intent.access, context).await;
        let asked = OpenCall {
            call,
            tool,
            intent,
            proposal,
            open,
        };
        let first_key = Transcript::question_key(self.transcript.last_answer_place(), &call.id);
        let mut complaint: Option<String> = None;
        for number in 1..=MOST_QUESTIONS {
            let key = match number {
                1 => first_key.clone(),
                _ => format!("{first_key}/{number}"),
            };
            let question = self.question(&asked, complaint.as_deref());
            self.emit(Event::PermissionAsked {
                question: Box::new(question.clone()),
            });
            let answer = tokio::select! {
                answer = self.parts.approver.ask(&key, question) => answer,
                () = stop.token().cancelled() => {
                    // Another process asks again, and waits for the same answer.
                    if !self.hand_over.now.is_cancelled() {
                        self.parts.approver.withdraw(&call.id).await;
                    }
                    Answer::No { reason: Some("interrupted".to_owned()) }
                }
            };
            match self.weigh(&asked, answer) {
                Weighed::Granted(granted) => return Ok(granted),
                Weighed::Refused(refusal) => return Err(refusal),
                Weighed::Again(why) => complaint = Some(why),
            }
        }
        let why = complaint.unwrap_or_default();
        Err(Refusal::by_rules(format!(
            "the answer could not be used: {why}"
        )))
    }

    fn question(&self, asked: &OpenCall<'_>, complaint: Option<&str>) -> PermissionRequest {
        let OpenCall {
            call, tool, intent, ..
        } = asked;
        let LeftOpen { reason, suggested } = &asked.open;
        let runs_command = |access: &Access| matches!(access, Access::Command(_));
        let is_command = intent.access.iter().any(runs_command);
        let confinement = is_command.then(|| match self.scope(intent).sandbox_state {
            SandboxState::Sandboxed => Confinement::Sandboxed,
            SandboxState::Unavailable => Confinement::Unavailable,
            SandboxState::SwitchedOff => Confinement::SwitchedOff,
        });
        PermissionRequest {
            tool_use_id: call.id.clone(),
            tool: tool.name().to_owned(),
            summary: intent.summary.clone(),
            input: serde_json::from_str(call.input.get()).unwrap_or_default(),
            preview: preview(&call.input),
            change: self.shown(asked),
            confinement,
            reason: match complaint {
                Some(complaint) => format!("{complaint}; {reason}"),
                None => reason.clone(),
            },
            suggested_rules: suggested.iter().map(ToString::to_string).collect(),
        }
    }

    /// The hunks as people see them. They go on record, so without secrets.
    fn shown(&self, asked: &OpenCall<'_>) -> Option<ProposedChange> {
        let proposal = asked.proposal.as_ref()?;
        let redact = |text: &str| self.parts.redactor.redact(text).into_owned();
        let hunks: Vec<ProposedHunk> = proposal
            .hunks()
            .into_iter()
            .map(|hunk| ProposedHunk {
                first_line: hunk.first_line,
                old: redact(hunk.old),
                new: redact(hunk.new),
            })
            .collect();
        let bytes: usize = hunks
            .iter()
            .map(|hunk| hunk.old.len() + hunk.new.len())
            .sum();
        (hunks.len() <= MOST_HUNKS && bytes <= LONGEST_HUNKS).then(|| ProposedChange {
            id: proposal.id(),
            path: asked.intent.summary.clone(),
            hunks,
        })
    }

    fn weigh(&self, asked: &OpenCall<'_>, answer: Answer) -> Weighed {
        let reason = &asked.open.reason;
        match answer {
            Answer::Once => as_asked(asked),
            Answer::Always => {
                self.allow_from_now_on(asked.open.suggested.iter().cloned());
                as_asked(asked)
            }
            Answer::AlwaysBy { rules } => match self.read_rules(&rules) {
                Ok(rules) => {
                    self.allow_from_now_on(rules.into_iter());
                    as_asked(asked)
                }
                Err(why) => Weighed::Again(why),
            },
            Answer::OnceWith { input } => self.with_input(asked, &input),
            Answer::OnceWithout { change, refused } => without(asked, &change, &refused),
            Answer::No { reason: None } => Weighed::Refused(Refusal {
                reason: format!("the user declined ({reason})"),
                by: RefusedBy::Person,
            }),
            Answer::No { reason: Some(note) } => {
                Weighed::Refused(Refusal::by_rules(format!("{reason}; {note}")))
            }
            // The store lets no such answer through.
            Answer::Text { .. } | Answer::Form { .. } => {
                Weighed::Refused(Refusal::by_rules(reason.clone()))
            }
        }
    }

    fn allow_from_now_on(&self, added: impl Iterator<Item = Rule>) {
        let source = RuleSource::named("the answer `always` in this session");
        let mut rules = self.parts.rules.write();
        for rule in added {
            rules.add(RuleKind::Allow, rule, &source);
        }
    }

    /// The error says which rule is wrong, and how.
    fn read_rules(&self, texts: &[String]) -> Result<Vec<Rule>, String> {
        let names = self.parts.tools.names();
        let ours: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let rules = texts.iter().map(|text| {
            let rule = Rule::parse(text).map_err(|error| error.to_string())?;
            match rule.names_known_tool(&ours) {
                true => Ok(rule),
                false => Err(format!("`{rule}` names no tool that is here")),
            }
        });
        rules.collect()
    }

    /// A rule that denies the changed call holds: an edit does not lead around it.
    fn with_input(&self, asked: &OpenCall<'_>, input: &Value) -> Weighed {
        let before: Value = serde_json::from_str(asked.call.input.get()).unwrap_or_default();
        if *input == before {
            return as_asked(asked);
        }
        let unusable =
            |error: String| Weighed::Again(format!("the change cannot be used: {error}"));
        let raw = match to_raw_value(input) {
            Ok(raw) if input.is_object() => raw,
            Ok(_) => return unusable("the input must be a JSON object".to_owned()),
            Err(error) => return unusable(error.to_string()),
        };
        let intent = match asked.tool.inspect(&raw, &self.parts.context) {
            Ok(intent) => intent,
            Err(error) => return unusable(error.to_string()),
        };
        if let Decision::Deny { reason } = self.decide(&asked.call.name, asked.tool, &intent) {
            return Weighed::Refused(Refusal::by_rules(format!(
                "the user changed the call to `{}`, and that is not allowed: {reason}",
                intent.summary
            )));
        }
        Weighed::Granted(Granted {
            intent,
            approval: Approval::Person,
            changes: UserChanges {
                input: Some(raw),
                text: None,
                note: Some(changed_note(&before, input)),
            },
        })
    }
}

fn as_asked(asked: &OpenCall<'_>) -> Weighed {
    Weighed::Granted(Granted {
        intent: asked.intent.clone(),
        approval: Approval::Person,
        changes: UserChanges::default(),
    })
}

/// The hunks that were shown are those of the proposal, or the answer was given to another text.
fn without(asked: &OpenCall<'_>, change: &str, refused: &[usize]) -> Weighed {
    let proposal = asked.proposal.as_ref();
    let Some(proposal) = proposal.filter(|proposal| proposal.id() == change) else {
        let why = "the file has changed since its hunks were shown";
        return Weighed::Again(why.to_owned());
    };
    let hunks = proposal.hunks();
    let numbers = (1..=hunks.len()).filter(|number| refused.contains(number));
    let numbers: Vec<usize> = numbers.collect();
    if numbers.is_empty() {
        return as_asked(asked);
    }
    if numbers.len() == hunks.len() {
        return Weighed::Refused(Refusal {
            reason: "the user refused every hunk".to_owned(),
            by: RefusedBy::Person,
        });
    }
    let mut note = format!(
        "The user refused {} of the {} hunks of this change; the file has only the others. Refused:",
        numbers.len(),
        hunks.len()
    );
    for number in &numbers {
        let hunk = hunks[number - 1];
        let diff = unified_diff("", hunk.old, hunk.new);
        note.push_str(&format!("\nhunk {number}, line {}:", hunk.first_line));
        // After the names of the files and the place.
        for line in diff.lines().skip(3) {
            note.push('\n');
            note.push_str(line);
        }
    }
    Weighed::Granted(Granted {
        intent: asked.intent.clone(),
        approval: Approval::Person,
        changes: UserChanges {
            input: None,
            text: Some(proposal.without(refused)),
            note: Some(note),
        },
    })
}

/// Which fields are others now. The model knows the rest.
fn changed_note(before: &Value, after: &Value) -> String {
    let none = Map::new();
    let before = before.as_object().unwrap_or(&none);
    let after = after.as_object().unwrap_or(&none);
    let changed = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(value))
        .map(|(name, value)| (name.clone(), value.clone()));
    let changed: Map<String, Value> = changed.collect();
    let mut note = "The user changed this call before allowing it.".to_owned();
    if !changed.is_empty() {
        note.push_str(&format!(" It was made with {}.", Value::Object(changed)));
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        note.push_str(&format!(" It was made without `{name}`."));
    }
    note
}
