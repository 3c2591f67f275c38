//! Prompts of a server, which the user calls as `/mcp__server__prompt`.
//!
//! Words after the name are the arguments, in the order in which the server lists them; quotes keep
//! words together, and the last argument takes what is left. The messages that the server answers
//! become a message of the user: they are what the user asked for, and grant nothing.

use std::{collections::HashSet, sync::Arc};

use codespar_protocol::ContentBlock;
use futures::future::BoxFuture;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, JsonObject, Prompt, PromptMessage,
    Role, ServerResult,
};
use tokio_util::sync::CancellationToken;

use crate::{
    naming::tool_name,
    outcome::{Shown, attached, shown},
    server::McpServer,
    tool::shortened,
};

/// Characters of a description, which is one line of a list.
const DESCRIPTION: usize = 200;

/// As its server describes it, with limits on the lengths.
pub struct McpPrompt {
    /// `mcp__server__prompt`.
    pub name: String,
    /// In one line.
    pub description: String,
    server: Arc<McpServer>,
    prompt: Prompt,
}

impl McpPrompt {
    pub(super) fn of(server: &Arc<McpServer>, used: &mut HashSet<String>) -> Vec<Self> {
        let prompts = server.offer(|offer| offer.prompts.clone());
        let prompts = prompts.into_iter();
        prompts
            .map(|prompt| {
                let description = prompt.description.as_deref().unwrap_or_default();
                let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
                Self {
                    name: tool_name(&server.config().name, &prompt.name, used),
                    description: shortened(&description, DESCRIPTION),
                    server: server.clone(),
                    prompt,
                }
            })
            .collect()
    }

    /// What it takes, for people: `TOPIC [DEPTH]`.
    pub fn usage(&self) -> String {
        let arguments = self.prompt.arguments.iter().flatten();
        let words = arguments.map(|argument| match argument.required {
            Some(true) => argument.name.to_uppercase(),
            _ => format!("[{}]", argument.name.to_uppercase()),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Asks the server for its messages. `typed` is what follows the name.
    pub fn get<'a>(
        &'a self,
        typed: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<ContentBlock>, String>> {
        Box::pin(async move {
            let arguments = self.arguments(typed)?;
            let mut params = GetPromptRequestParams::new(&self.prompt.name);
            if !arguments.is_empty() {
                params = params.with_arguments(arguments);
            }
            let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
            let messages = match self.server.request(request, cancel, None).await? {
                ServerResult::GetPromptResult(result) => result.messages,
                _ => return Err(self.server.answered_otherwise()),
            };
            let blocks = attached(messages.into_iter().map(message));
            match blocks.is_empty() {
                true => Err(self.server.named("answered with an empty prompt")),
                false => Ok(blocks),
            }
        })
    }

    fn arguments(&self, typed: &str) -> Result<JsonObject, String> {
        let named: Vec<_> = self.prompt.arguments.iter().flatten().collect();
        let mut given = parted(typed, named.len()).into_iter();
        let mut arguments = JsonObject::new();
        for argument in &named {
            match given.next() {
                Some(value) => {
                    arguments.insert(argument.name.clone(), value.into());
                }
                None if argument.required == Some(true) => {
                    let usage = format!("/{} {}", self.name, self.usage());
                    return Err(format!("`{}` is missing: {usage}", argument.name));
                }
                None => {}
            }
        }
        match given.next() {
            Some(_) => Err(format!("/{} takes no arguments", self.name)),
            None => Ok(arguments),
        }
    }
}

/// What the model is to take as said before by itself is named.
fn message(message: PromptMessage) -> Shown {
    match (message.role, shown(message.content)) {
        (Role::Assistant, Shown::Text(text)) => Shown::Text(format!("[assistant]\n{text}")),
        (_, shown) => shown,
    }
}

/// At most `most` words, the last of which is the rest; one word too many where there should be
/// none.
fn parted(text: &str, most: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if words.len() + 1 == most {
            words.push(rest.trim_matches(['"', '\'']).to_owned());
            break;
        }
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let quoted = quote.and_then(|quote| rest[1..].split_once(quote));
        let (word, after) = match quoted {
            Some(parts) => parts,
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_arguments_and_the_last_takes_the_rest() {
        assert_eq!(parted("", 2), [""; 0]);
        assert_eq!(parted("a", 2), ["a"]);
        assert_eq!(parted("a b c", 2), ["a", "b c"]);
        assert_eq!(parted("'a b' c", 2), ["a b", "c"]);
        assert_eq!(parted("it's here now", 3), ["it's", "here", "now"]);
        assert_eq!(parted("x", 0), ["x"]);
    }
}
