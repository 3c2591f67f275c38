//! What an agent may do instead of a call that it was denied: the result of the denial says it, so
//! that the next attempt is not a guess.
//!
//! Only what the rules really allow here is named. They are asked about a sample of each kind.

use codespar_policy::{Access, Decision, Lifetime, Mode, free_commands};
use codespar_tools::{Intent, Tool};

use crate::Agent;

/// Stands for every command that only reads.
const READING: &str = "ls";
/// Stands for every command that nothing is known about.
const ANY: &str = "make";

impl Agent {
    /// A sentence for the model, or nothing where nothing of the kind is free.
    pub(crate) fn free_instead(&self, tool: &dyn Tool, intent: &Intent) -> Option<String> {
        // Everything is free there but what a rule denies.
        if self.parts.mode.get() == Mode::BypassPermissions {
            return None;
        }
        let allows = |access: Access| {
            let sample = Intent {
                summary: String::new(),
                access: vec![access],
            };
            let decision = self.decide(tool.name(), tool, &sample);
            matches!(decision, Decision::Allow { .. })
        };
        let wants = |test: fn(&Access) -> bool| intent.access.iter().any(test);
        if wants(|access| matches!(access, Access::Command(_))) {
            let is_throw_away = self.parts.scope.lifetime == Lifetime::ThrowAway;
            if is_throw_away && allows(Access::Command(ANY.to_owned())) {
                return Some(
                    "Free here: every command that keeps to this tree, within the sandbox; leave \
                     out what reaches beyond it."
                        .to_owned(),
                );
            }
            return allows(Access::Command(READING.to_owned()))
                .then(|| format!("Free here: {}.", free_commands()));
        }
        let temporary = self.parts.context.temp_dir();
        let may_write = allows(Access::Write(temporary.join("sample")));
        (wants(|access| matches!(access, Access::Write(_))) && may_write).then(|| {
            format!(
                "Free here: reading and searching the workspace, and writing in {}.",
                temporary.display()
            )
        })
    }
}
