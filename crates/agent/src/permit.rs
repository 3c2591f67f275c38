//! Whether a call is made: what the rules say, and what the user says where they leave it open.
//!
//! The order of the checks matters. A call of an unknown tool, or one that was cut off, is answered
//! without asking anybody. Then the tool says what it would access (`inspect`), without doing it;
//! hooks have their say (`hooks`); the rules decide on that; the user is asked if they say so; and the files to be written are
//! claimed where several agents share them. What the user's answer makes of a call is worked out in
//! `user_answer`. The tool is later given the very access that was
//! decided on, so a path cannot change its meaning in between.
//!
//! A refusal is a result for the model, with its reason. One by the rules or the user is also kept
//! in the tally of the run and in the tree of agents, for the report at the end.

use std::sync::Arc;

use codespar_policy::{Access, AccessRequest, Decision, Scope, decide};
use codespar_protocol::{EntryBody, Event, PermissionDenial, ToolUse};
use codespar_tools::{Effect, Intent, Tool, ToolOutput, sandbox::Approval};
use serde_json::value::RawValue;

use crate::{
    Agent,
    dispatch::not_run,
    nested,
    stop::Stop,
    tally::Tally,
    user_answer::{Granted, LeftOpen, UserChanges},
};

/// A call that may be made.
pub(crate) struct Permitted {
    pub(crate) call: ToolUse,
    pub(crate) tool: Arc<dyn Tool>,
    /// What the decision was made on.
    pub(crate) access: Vec<Access>,
    /// By rules alone a command needs a sandbox; the user's own yes can do without.
    pub(crate) approval: Approval,
    /// The call in one line, for people.
    pub(crate) summary: String,
    /// The call is recorded as the model made it, and run with these.
    pub(crate) changes: UserChanges,
}

/// A call that may not be made.
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) by: RefusedBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedBy {
    /// The rules, or that there was nobody to ask.
    Rules,
    /// The user, who has seen the call.
    Person,
    /// A hook, which says itself what to do instead.
    Hook,
}

impl Refusal {
    pub(crate) fn by_hook(reason: String) -> Self {
        Self {
            reason,
            by: RefusedBy::Hook,
        }
    }

    pub(crate) fn by_rules(reason: String) -> Self {
        Self {
            reason,
            by: RefusedBy::Rules,
        }
    }
}

impl Permitted {
    /// What listeners are told when the call begins.
    pub(crate) fn event(&self) -> Event {
        Event::ToolStarted {
            tool_use_id: self.call.id.clone(),
            tool: self.tool.name().to_owned(),
            summary: self.summary.clone(),
            input: serde_json::from_str(self.input().get()).unwrap_or_default(),
        }
    }

    /// What the tool is given.
    pub(crate) fn input(&self) -> &RawValue {
        self.changes.input.as_ref().unwrap_or(&self.call.input)
    }

    /// What is on record before the call begins: from then on its outcome is unknown until it
    /// has a result.
    pub(crate) fn marker(&self) -> EntryBody {
        let tool_use_id = self.call.id.clone();
        EntryBody::ToolStarted { tool_use_id }
    }
}

impl Agent {
    /// The first of these calls, taken from them, if it is to run alone and the rules allow it:
    /// nobody has to be asked before it starts. Its start is then recorded in one transaction with
    /// the answer that holds it, instead of in a second one. `None` leaves the calls as they are,
    /// and `permit` decides on all of them in the usual way.
    pub(crate) fn first_by_rules(
        &self,
        calls: &mut Vec<ToolUse>,
        stop: &Stop,
    ) -> Option<Permitted> {
        let call = calls.first()?;
        let tool = self.parts.tools.get(&call.name)?;
        let is_over = stop.token().is_cancelled() || self.hand_over.is_asked();
        // The holder of a file is asked in the store, which is another transaction.
        if is_over || tool.effect() != Effect::Changes || self.parts.gate.is_some() {
            return None;
        }
        // They take their time, and the answer is to be on record before it.
        if self.has_hooks_before_calls() {
            return None;
        }
        if is_cut_off(call) {
            return None;
        }
        let intent = tool.inspect(&call.input, &self.parts.context).ok()?;
        let Decision::Allow { .. } = self.decide(&call.name, &*tool, &intent) else {
            return None;
        };
        Some(Permitted {
            call: calls.remove(0),
            tool,
            access: intent.access,
            approval: Approval::Rules,
            summary: intent.summary,
            changes: UserChanges::default(),
        })
    }

    /// Decides whether a call is made; if not, what is answered instead. `tool` is `None` for a
    /// name that is not on offer, also if such a tool exists elsewhere: what an agent may not have,
    /// it cannot call.
    pub(crate) async fn permit(
        &self,
        call: ToolUse,
        tool: Option<Arc<dyn Tool>>,
        tally: &mut Tally,
        stop: &Stop,
    ) -> Result<Permitted, (ToolUse, ToolOutput)> {
        if stop.token().is_cancelled() {
            return Err((call, not_run(stop)));
        }
        let Some(tool) = tool else {
            let known = self.parts.tools.names().join(", ");
            let message = format!("there is no tool `{}` here; there are: {known}", call.name);
            return Err((call, ToolOutput::error(message)));
        };
        if is_cut_off(&call) {
            return Err((
                call,
                ToolOutput::error(
                    "not run: the call was cut off at the limit on the answer's length. Make it \
                 shorter, for example by writing a long file in several edits.",
                ),
            ));
        }
        let intent = match tool.inspect(&call.input, &self.parts.context) {
            Ok(intent) => intent,
            Err(error) => return Err((call, error.into())),
        };
        match self.allowed(&call, &*tool, intent, stop).await {
            Ok(Granted {
                intent,
                approval,
                changes,
            }) => {
                if let Err(holder) = self.claim_writes(&intent).await {
                    return Err((call, ToolOutput::error(holder)));
                }
                Ok(Permitted {
                    call,
                    tool,
                    access: intent.access,
                    approval,
                    summary: intent.summary,
                    changes,
                })
            }
            Err((intent, Refusal { reason, by })) => {
                let denial = PermissionDenial {
                    tool_name: tool.name().to_owned(),
                    tool_use_id: call.id.clone(),
                    tool_input: serde_json::from_str(call.input.get()).unwrap_or_default(),
                    reason: reason.clone(),
                };
                tally.denials.push(denial.clone());
                if let Some(tree) = &self.parts.limits.tree {
                    tree.tree().deny(denial.clone());
                }
                self.emit(Event::PermissionDenied(denial));
                let mut message = format!("permission denied: {reason}");
                if by == RefusedBy::Rules
                    && let Some(instead) = self.free_instead(&*tool, &intent)
                {
                    message.push('\n');
                    message.push_str(&instead);
                }
                Err((call, ToolOutput::error(message)))
            }
        }
    }

    /// Where several agents work on the same files, each file has one writer. Paths claimed before
    /// one that is refused stay claimed. The error is the message for the model.
    async fn claim_writes(&self, intent: &Intent) -> Result<(), String> {
        let Some(gate) = &self.parts.gate else {
            return Ok(());
        };
        for access in &intent.access {
            if let Access::Write(path) = access {
                gate.claim(path).await?;
            }
        }
        Ok(())
    }

    /// By hooks and rules, or by the user where they leave it open.
    async fn allowed(
        &self,
        call: &ToolUse,
        tool: &dyn Tool,
        intent: Intent,
        stop: &Stop,
    ) -> Result<Granted, (Intent, Refusal)> {
        let hooked = self.before_call(call, tool, intent, stop).await?;
        let by_rules = self.decide(&call.name, tool, &hooked.intent);
        let open = match hooked.decision(by_rules, self.parts.mode.get()) {
            Decision::Allow { .. } => {
                let granted = Granted {
                    intent: hooked.intent.clone(),
                    approval: Approval::Rules,
                    changes: UserChanges::default(),
                };
                return Ok(hooked.finish(granted));
            }
            Decision::Deny { reason } => return Err((hooked.intent, Refusal::by_rules(reason))),
            Decision::Ask { reason, suggested } => LeftOpen { reason, suggested },
        };
        let asked = self.ask_user(&hooked.call, tool, &hooked.intent, open, stop);
        match asked.await {
            Ok(granted) => Ok(hooked.finish(granted)),
            Err(refusal) => Err((hooked.intent, refusal)),
        }
    }

    /// What the rules say about a call. Where the model called the tool by another name, a rule
    /// that denies that name holds too.
    pub(crate) fn decide(&self, called_as: &str, tool: &dyn Tool, intent: &Intent) -> Decision {
        let scope = self.scope(intent);
        let by_name = |name: &str| {
            let request = AccessRequest {
                tool: name,
                read_only: tool.effect() != Effect::Changes,
                access: &intent.access,
            };
            decide(
                &request,
                &self.parts.rules.read(),
                self.parts.mode.get(),
                &scope,
            )
        };
        if called_as != tool.name()
            && let denied @ Decision::Deny { .. } = by_name(called_as)
        {
            return denied;
        }
        by_name(tool.name())
    }

    /// Where the agent stands now. Whether a sandbox works is found out only when a command is
    /// about to need it. Also whether git would find a repository other than the project's from
    /// here, since that one's configuration is not trusted.
    pub(crate) fn scope(&self, intent: &Intent) -> Scope {
        let mut scope = Scope {
            cwd: self.parts.context.cwd(),
            ..self.parts.scope.clone()
        };
        if intent
            .access
            .iter()
            .any(|access| matches!(access, Access::Command(_)))
        {
            scope.sandbox_state = self.parts.context.sandbox().sandbox_state();
            scope.repository = nested::repository(&scope.cwd, &scope.workspace);
        }
        scope
    }
}

/// The answer ended within this call: what there is of it is kept as a JSON string. Such a call
/// must not be run: it may be a valid command with its end missing.
fn is_cut_off(call: &ToolUse) -> bool {
    !call.input.get().starts_with('{')
}

/// How many lines of each side of a change a question shows.
const PREVIEW_LINES: usize = 12;

/// The change that a call would make, as far as its input tells: enough for the user to judge. By
/// the names of fields that tools which edit files use (`content`, `old_string`, `new_string`, `edits`, `new_source`).
/// `None` for inputs without them.
pub(crate) fn preview(input: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Change {
        content: Option<String>,
        new_source: Option<String>,
        old_string: Option<String>,
        new_string: Option<String>,
        #[serde(default)]
        edits: Vec<Change>,
    }
    let mut change: Change = serde_json::from_str(input.get()).ok()?;
    let edits = std::mem::take(&mut change.edits);
    let mut lines = Vec::new();
    let sides = std::iter::once(change).chain(edits).flat_map(|change| {
        let new = change.new_string.or(change.content).or(change.new_source);
        [('-', change.old_string), ('+', new)]
    });
    for (mark, text) in sides {
        let Some(text) = text else { continue };
        lines.extend(
            text.lines()
                .take(PREVIEW_LINES)
                .map(|line| format!("{mark} {line}")),
        );
        let left = text.lines().count().saturating_sub(PREVIEW_LINES);
        if left > 0 {
            lines.push(format!("{mark} … {left} more lines"));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
