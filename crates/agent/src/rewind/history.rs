//! What happened in a session, and what going back would undo of it.

use std::{
    collections::{BTreeSet, HashSet},
    ops::RangeInclusive,
    path::PathBuf,
};

use codespar_protocol::{Entry, EntryBody, conversation};
use codespar_tools::{ChangeCause, ChangeRecord, RestoreStep};
use jiff::Timestamp;
use serde::Serialize;

use super::{RewindError, RewindRequest, RewindScope, uncovered};
use crate::transcript::is_prompt;

/// Characters of a prompt that tell turns apart.
const PROMPT_CHARS: usize = 200;

/// A message that the user typed, and what was changed until the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnPoint {
    /// From 1.
    pub number: usize,
    /// The first line of what the user typed.
    pub prompt: String,
    pub at: Timestamp,
    /// Files that tools changed, in order of name.
    pub files: Vec<PathBuf>,
}

/// Everything that is on record of a session.
pub(super) struct History {
    pub(super) entries: Vec<Entry>,
    pub(super) records: Vec<ChangeRecord>,
}

/// What one rewind does.
pub(super) struct Plan {
    pub(super) steps: Vec<RestoreStep>,
    pub(super) cause: ChangeCause,
    /// Where the conversation goes on from; `None` if it stays.
    pub(super) to: Option<u64>,
    /// The place of the rewind that is undone; 0 for one that a crash kept off the record.
    pub(super) undoes: Option<u64>,
    /// What the user had typed in the turn that is taken out.
    pub(super) prompt: Option<String>,
    /// Commands in these entries may have changed files: from the first place to before the second.
    commands: Option<(u64, u64)>,
}

/// A rewind on record.
struct Rewind {
    seq: u64,
    to: u64,
    undoes: Option<u64>,
}

impl History {
    pub(super) fn turns(&self) -> Vec<TurnPoint> {
        let live = conversation(&self.entries);
        let prompts = live.into_iter().filter(|entry| is_prompt(entry));
        let mut turns = Vec::new();
        for entry in prompts {
            let own = self.records_of(entry.seq);
            let files: BTreeSet<&PathBuf> = own.map(|record| &record.path).collect();
            let text = text_of(entry);
            let line = text.lines().find(|line| !line.trim().is_empty());
            turns.push(TurnPoint {
                number: turns.len() + 1,
                prompt: line
                    .unwrap_or("")
                    .trim()
                    .chars()
                    .take(PROMPT_CHARS)
                    .collect(),
                at: entry.at,
                files: files.into_iter().cloned().collect(),
            });
        }
        turns
    }

    pub(super) fn plan(&self, request: RewindRequest) -> Result<Plan, RewindError> {
        match request {
            RewindRequest::Before { turn, scope } => self.before(turn, scope),
            RewindRequest::OneTurn { turn } => self.one_turn(turn),
            RewindRequest::Undo => self.undo(),
        }
    }

    /// Files go back in the order of time, through all that was done since, also in turns that are
    /// no longer part of the conversation.
    fn before(&self, turn: usize, scope: RewindScope) -> Result<Plan, RewindError> {
        let (prompt, before) = self.turn(turn)?;
        let mut plan = self.empty_plan();
        if scope != RewindScope::Conversation {
            let is_since = |record: &&ChangeRecord| self.place_of(record) >= prompt.seq;
            plan.steps = RestoreStep::all(self.records.iter().filter(is_since));
            plan.commands = Some((prompt.seq, u64::MAX));
        }
        if scope != RewindScope::Code {
            plan.to = Some(before);
            plan.prompt = Some(text_of(prompt));
        }
        Ok(plan)
    }

    fn one_turn(&self, turn: usize) -> Result<Plan, RewindError> {
        let (prompt, _) = self.turn(turn)?;
        let mut later = self.entries.iter().filter(|entry| entry.seq > prompt.seq);
        let next = later.find(|entry| is_prompt(entry));
        let mut plan = self.empty_plan();
        plan.steps = RestoreStep::all(self.records_of(prompt.seq));
        plan.commands = Some((prompt.seq, next.map_or(u64::MAX, |entry| entry.seq)));
        Ok(plan)
    }

    /// A rewind that restored files and was killed before its entry was written is the newest there
    /// is. If it was made again, it belongs to the entry that was written then.
    fn undo(&self) -> Result<Plan, RewindError> {
        let place = self.last_place();
        let mut plan = Plan {
            cause: ChangeCause::Undo { place },
            ..self.empty_plan()
        };
        let newest = self.rewinds().next_back().map_or(0, |rewind| rewind.seq);
        plan.steps = RestoreStep::all(self.records_of_rewinds(newest..=place));
        if !plan.steps.is_empty() {
            plan.undoes = Some(0);
            return Ok(plan);
        }
        let undone: HashSet<u64> = self.rewinds().filter_map(|rewind| rewind.undoes).collect();
        let is_open = |rewind: &Rewind| rewind.undoes.is_none() && !undone.contains(&rewind.seq);
        let last = self.rewinds().rev().find(is_open);
        let Rewind { seq, to, .. } = last.ok_or(RewindError::NothingToUndo)?;
        let mut earlier = self.rewinds().rev().skip_while(|rewind| rewind.seq >= seq);
        let from = earlier.next().map_or(0, |rewind| rewind.seq);
        plan.steps = RestoreStep::all(self.records_of_rewinds(from..=seq - 1));
        plan.undoes = Some(seq);
        plan.to = (to != seq - 1).then_some(seq - 1);
        Ok(plan)
    }

    /// How many messages a plan takes out of the conversation, and how many it brings back.
    pub(super) fn messages_changed(&self, plan: &Plan) -> (usize, usize) {
        let Some(to) = plan.to else {
            return (0, 0);
        };
        let messages = |entries: &[Entry]| -> HashSet<u64> {
            let live = conversation(entries).into_iter();
            let said = live.filter(|entry| {
                matches!(
                    entry.body,
                    EntryBody::User { .. } | EntryBody::Assistant { .. }
                )
            });
            said.map(|entry| entry.seq).collect()
        };
        let end = self.entries.partition_point(|entry| entry.seq <= to);
        let (now, then) = (messages(&self.entries), messages(&self.entries[..end]));
        (now.difference(&then).count(), then.difference(&now).count())
    }

    pub(super) fn uncovered(&self, plan: &Plan) -> Vec<String> {
        match plan.commands {
            Some((from, until)) => uncovered::commands(&self.entries, from..until),
            None => Vec::new(),
        }
    }

    fn empty_plan(&self) -> Plan {
        Plan {
            steps: Vec::new(),
            cause: ChangeCause::Rewind {
                place: self.last_place(),
            },
            to: None,
            undoes: None,
            prompt: None,
            commands: None,
        }
    }

    fn last_place(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.seq)
    }

    /// The prompt of a turn, and the place before it in the conversation.
    fn turn(&self, number: usize) -> Result<(&Entry, u64), RewindError> {
        let live = conversation(&self.entries);
        let mut prompts = (0..live.len()).filter(|at| is_prompt(live[*at]));
        let found = number.checked_sub(1).and_then(|index| prompts.nth(index));
        match found {
            Some(at) => Ok((
                live[at],
                at.checked_sub(1).map_or(0, |before| live[before].seq),
            )),
            None => Err(RewindError::NoSuchTurn {
                turn: number,
                turns: live.iter().filter(|entry| is_prompt(entry)).count(),
            }),
        }
    }

    /// What was changed in the turn that the entry at this place began.
    fn records_of(&self, prompt: u64) -> impl Iterator<Item = &ChangeRecord> {
        self.records
            .iter()
            .filter(move |record| match record.cause {
                ChangeCause::Turn { .. } | ChangeCause::Subagent => self.place_of(record) == prompt,
                ChangeCause::Rewind { .. } | ChangeCause::Undo { .. } => false,
            })
    }

    /// What rewinds changed after one of these places.
    fn records_of_rewinds(
        &self,
        places: RangeInclusive<u64>,
    ) -> impl Iterator<Item = &ChangeRecord> {
        self.records.iter().filter(
            move |record| matches!(record.cause, ChangeCause::Rewind { place } if places.contains(&place)),
        )
    }

    /// Where in the transcript a change belongs. A subagent does not know the conversation, so its
    /// changes belong to the prompt before them in time.
    fn place_of(&self, record: &ChangeRecord) -> u64 {
        match record.cause {
            ChangeCause::Turn { prompt } => prompt,
            ChangeCause::Rewind { place } | ChangeCause::Undo { place } => place,
            ChangeCause::Subagent => {
                let mut prompts = self.entries.iter().rev().filter(|entry| is_prompt(entry));
                let before = prompts.find(|entry| entry.at <= record.at);
                before.map_or(0, |entry| entry.seq)
            }
        }
    }

    fn rewinds(&self) -> impl DoubleEndedIterator<Item = Rewind> + '_ {
        self.entries.iter().filter_map(|entry| match entry.body {
            EntryBody::Rewound { to, undoes } => Some(Rewind {
                seq: entry.seq,
                to,
                undoes,
            }),
            _ => None,
        })
    }
}

fn text_of(entry: &Entry) -> String {
    match &entry.body {
        EntryBody::User { message, .. } => message.text(),
        _ => String::new(),
    }
}
