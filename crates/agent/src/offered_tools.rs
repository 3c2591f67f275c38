//! Changes of the tools that an agent offers, between two calls of the model.

use std::sync::Arc;

use codespar_tools::{Registry, Tool};

use crate::{Agent, agent::specs};

/// How the names of tools of MCP servers begin.
const SERVER_TOOLS: &str = "mcp__";

impl Agent {
    /// Offers tools that were not there when it was made, from the next call of the model on.
    pub fn add_tools(&mut self, tools: &Registry) {
        let known = self.parts.tools.names();
        let is_new = |tool: &&Arc<dyn Tool>| !known.contains(&tool.name());
        let new: Vec<Arc<dyn Tool>> = tools.iter().filter(is_new).cloned().collect();
        if new.is_empty() {
            return;
        }
        for tool in new {
            self.parts.tools.add(tool);
        }
        self.specs = specs(&self.parts.tools);
    }

    /// Puts these in the place of the tools of MCP servers, from the next call of the model on.
    /// Nothing changes where they are the same: what the provider cached begins with the tools.
    pub fn set_server_tools(&mut self, tools: &Registry) {
        let describe = |tool: &Arc<dyn Tool>| {
            let schema = tool.input_schema().get().to_owned();
            (
                tool.name().to_owned(),
                tool.description().to_owned(),
                schema,
            )
        };
        let is_served = |tool: &&Arc<dyn Tool>| tool.name().starts_with(SERVER_TOOLS);
        let had = self.parts.tools.iter().filter(is_served).map(describe);
        if had.eq(tools.iter().map(describe)) {
            return;
        }
        let all = format!("{SERVER_TOOLS}*");
        self.parts.tools = self.parts.tools.filtered(None, &[all]);
        for tool in tools.iter() {
            self.parts.tools.add(tool.clone());
        }
        self.specs = specs(&self.parts.tools);
    }

    /// Takes tools away, from the next call of the model on.
    pub fn remove_tools(&mut self, names: &[String]) {
        self.parts.tools = self.parts.tools.filtered(None, names);
        self.specs = specs(&self.parts.tools);
    }
}
