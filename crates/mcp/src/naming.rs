//! Names of tools as providers accept them: `mcp__server__tool`.
//!
//! Servers choose their own names for tools, with any characters and any length; two of them may
//! come to the same name here. Permission rules are written against the result, so it depends on
//! nothing but the names and their order.

use std::collections::HashSet;

/// What every provider takes. In bytes, which are characters here: other ones were replaced.
const MAX: usize = 64;

/// A server's name as it stands in the names of its tools and in rules.
pub fn server_word(name: &str) -> String {
    let mut word = plain(name);
    // Two of them part the server from the tool.
    while word.contains("__") {
        word = word.replace("__", "_");
    }
    word.trim_matches('_').to_owned()
}

/// The name of a tool, different from all in `used`. A name that is taken gets a number at its end,
/// in place of its last characters where it is long.
pub(super) fn tool_name(server: &str, tool: &str, used: &mut HashSet<String>) -> String {
    let whole = format!("mcp__{}__{}", server_word(server), plain(tool));
    let mut name = cut(&whole, "");
    let mut number = 2;
    while !used.insert(name.clone()) {
        name = cut(&whole, &format!("_{number}"));
        number += 1;
    }
    name
}

fn cut(whole: &str, ending: &str) -> String {
    let kept = whole.len().min(MAX - ending.len());
    format!("{}{ending}", &whole[..kept])
}

fn plain(text: &str) -> String {
    let proper = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.chars()
        .map(|c| if proper(c) { c } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_pattern_of_providers_and_stay_different() {
        let mut used = HashSet::new();
        let mut name = |server: &str, tool: &str| tool_name(server, tool, &mut used);
        assert_eq!(name("git hub", "list/issues"), "mcp__git_hub__list_issues");
        assert_eq!(
            name("git hub", "list.issues"),
            "mcp__git_hub__list_issues_2"
        );
        assert_eq!(name("a__b", "c__d"), "mcp__a_b__c__d");
        let long = "x".repeat(80);
        assert_eq!(name("s", &long), format!("mcp__s__{}", "x".repeat(56)));
        assert_eq!(name("s", &long), format!("mcp__s__{}_2", "x".repeat(54)));
    }
}
