//! What a person is asked before a tool runs, and what they may answer.

use serde::{Deserialize, Serialize};

use crate::ToolUseId;

/// A tool call that the rules want a person to decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The call.
    pub tool_use_id: ToolUseId,
    /// The tool's name.
    pub tool: String,
    /// What it would do, in one line: the command, the path, the address.
    pub summary: String,
    /// What would be written, shortened; for tools that write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Why it is asked.
    pub reason: String,
    /// The rules that «always» would save; empty when no rule can cover the call.
    pub suggested_rules: Vec<String>,
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// This time.
    Once,
    /// This time, and from now on by the suggested rules.
    Always,
    /// No; the model is told why, if a reason is given.
    No {
        /// In the person's words.
        reason: Option<String>,
    },
}
