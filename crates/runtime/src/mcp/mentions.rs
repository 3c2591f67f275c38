//! `@server:uri` in what a user writes: a resource of an MCP server.

use codespar_mcp::McpServers;

/// More of them are left for the model to read.
const MOST: usize = 10;

/// The tool that reads each, and its uri. A word counts only if a connected server of that name has
/// resources: `@user:` in a sentence is a word like any other.
pub fn mentioned_resources(text: &str, servers: &McpServers) -> Vec<(String, String)> {
    mentions(text, |server| servers.resource_reader(server))
}

fn mentions(text: &str, reader: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for word in text.split_whitespace() {
        let word = word.trim_start_matches(['(', '"', '\'', '`']);
        let Some((server, uri)) = word.strip_prefix('@').and_then(|word| word.split_once(':'))
        else {
            continue;
        };
        let uri = uri.trim_end_matches([',', '.', ';', ':', ')', '?', '!', '"', '\'', '`']);
        let Some(tool) = Some(uri)
            .filter(|uri| !uri.is_empty())
            .and_then(|_| reader(server))
        else {
            continue;
        };
        let mention = (tool, uri.to_owned());
        if !found.contains(&mention) {
            found.push(mention);
        }
    }
    found.truncate(MOST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_of_known_servers_are_found_once() {
        let reader = |server: &str| (server == "kit").then(|| "read".to_owned());
        let found = mentions(
            "see @kit:note:///today, (@kit:note:///today) @other:x @kit: and a@kit:b",
            reader,
        );
        assert_eq!(found, [("read".to_owned(), "note:///today".to_owned())]);
    }
}
