//! Tool calls as their pieces come in.

use std::collections::HashSet;

use codespar_protocol::{ContentBlock, RawObject, ToolUse, ToolUseId};

use super::chunk::CallPiece;
use crate::wire::raw_input;

/// In the order in which they began.
#[derive(Default)]
pub(super) struct Calls(Vec<BuildingCall>);

#[derive(Default)]
struct BuildingCall {
    index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Arguments are concatenated without being parsed.
    pub(super) fn add(&mut self, piece: CallPiece) {
        let function = piece.function.unwrap_or_default();
        let id = piece.id.unwrap_or_default();
        let call = self.of(piece.index, &id, function.name.is_some());
        if call.id.is_empty() {
            call.id = id;
        }
        // Names come whole; some servers repeat them with every piece.
        if call.name.is_empty() {
            call.name = function.name.unwrap_or_default();
        }
        call.arguments
            .push_str(&function.arguments.unwrap_or_default());
    }

    /// The call that a piece belongs to. Servers differ: most number their calls, some number
    /// all of them 0 or none at all, and then another id, or a name without one, begins another
    /// call.
    fn of(&mut self, index: Option<u32>, id: &str, named: bool) -> &mut BuildingCall {
        let known = match index {
            Some(_) => self.0.iter().rposition(|call| call.index == index),
            None => self.0.len().checked_sub(1),
        };
        let same = |call: &BuildingCall| {
            if id.is_empty() {
                index.is_some() || !named
            } else {
                call.id.is_empty() || call.id == id
            }
        };
        let at = match known {
            Some(at) if same(&self.0[at]) => at,
            _ => {
                self.0.push(BuildingCall {
                    index,
                    ..BuildingCall::default()
                });
                self.0.len() - 1
            }
        };
        &mut self.0[at]
    }

    /// The calls as content. A call without an id gets one that no other call of the conversation
    /// has. So does one whose id an earlier call has: some servers number the calls of every answer
    /// anew, and what belongs to which call must stay clear in the record.
    pub(super) fn finish(self, answer: &str, known: &HashSet<&str>) -> Vec<ContentBlock> {
        let calls = self.0.into_iter().enumerate();
        let block = |(at, call): (usize, BuildingCall)| {
            let is_free = !call.id.is_empty() && !known.contains(call.id.as_str());
            let id = match is_free {
                true => call.id,
                false => fresh_id(answer, at, known),
            };
            ContentBlock::ToolUse(ToolUse {
                id: ToolUseId(id),
                name: call.name,
                input: raw_input(&call.arguments),
                extra: RawObject::default(),
            })
        };
        calls.map(block).collect()
    }
}

/// By the answer's own id; where servers repeat that as well, with a number.
fn fresh_id(answer: &str, at: usize, known: &HashSet<&str>) -> String {
    let first = format!("call_{answer}_{at}");
    let more = (2_u64..).map(|number| format!("call_{answer}_{at}_{number}"));
    let mut all = std::iter::once(first).chain(more);
    all.find(|id| !known.contains(id.as_str()))
        .unwrap_or_default()
}
