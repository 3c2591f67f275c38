//! What fills the context of an agent, for showing it.

use crate::Agent;

/// A rule of thumb, where nobody has counted.
const BYTES_PER_TOKEN: u64 = 4;

/// What the context of an agent is made of, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextUsage {
    /// As the provider counted the last call, or a guess before the first.
    pub total: u64,
    /// A guess from its size.
    pub system: u64,
    /// A guess from the size of their descriptions.
    pub tools: u64,
    /// How many messages the conversation has.
    pub messages: usize,
    /// How many tokens fit.
    pub window: u64,
    /// Older turns are summarised from here on.
    pub compact_at: u64,
}

impl Agent {
    /// What the context is made of.
    pub fn context_usage(&self) -> ContextUsage {
        let tools: usize = self
            .specs
            .iter()
            .map(|spec| spec.name.len() + spec.description.len() + spec.input_schema.get().len())
            .sum();
        ContextUsage {
            total: self.context_tokens,
            system: self.system.len() as u64 / BYTES_PER_TOKEN,
            tools: tools as u64 / BYTES_PER_TOKEN,
            messages: self.transcript.messages().len(),
            window: self.parts.choice.context_window,
            compact_at: self.parts.choice.compact_at,
        }
    }
}
