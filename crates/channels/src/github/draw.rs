//! Messages as comments in GitHub's markdown.

use ring::digest::{SHA256, digest};

use crate::{Outbound, OutboundKind};

/// Invisible, and enough to make a link or a reference into plain text.
const JOINER: char = '\u{2060}';

/// The line by which a comment is known to be ours, and this one: a crash may have left it posted
/// without our knowing. A digest, since a key may have anything in it.
pub(super) fn mark(key: &str) -> String {
    let digest = digest(&SHA256, key.as_bytes());
    let digits = digest.as_ref()[..16].iter();
    let digits: String = digits.map(|byte| format!("{byte:02x}")).collect();
    format!("<!-- codespar:{digits} -->")
}

/// The body of a comment. GitHub has no buttons: questions have numbers, and other choices are what
/// can be written.
pub(super) fn body(key: &str, message: &Outbound) -> String {
    let mut text = format!("{}\n", mark(key));
    if let Some(mention) = &message.mention {
        text.push_str(&format!("@{} ", login(&mention.name)));
    }
    text.push_str(&plain(&message.text));
    match message.kind {
        OutboundKind::Question if !message.choices.is_empty() => {
            text.push_str("\n\nAnswer with a number:\n");
            for choice in &message.choices {
                text.push_str(&format!("\n{}. {}", choice.value, plain(&choice.label)));
            }
        }
        _ if !message.choices.is_empty() => {
            let said = message.choices.iter();
            let said = said.map(|choice| format!("`@codespar {}`", choice.value.replace('`', "")));
            let said: Vec<String> = said.collect();
            text.push_str(&format!("\n\nYou can write: {}", said.join(" · ")));
        }
        _ => {}
    }
    text
}

/// Only what a login can have.
fn login(name: &str) -> String {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '[' | ']');
    name.chars().filter(is_part).collect()
}

/// Text of a model or of others: no HTML, no link that shows another text than its target, no
/// reference to issues of other repositories (which would show there). Mentions and pictures are
/// broken by the core already.
fn plain(text: &str) -> String {
    let mut result = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    for c in text.chars() {
        let is_link = before == ']' && matches!(c, '(' | '[' | ':');
        let is_foreign =
            c == '#' && (before.is_alphanumeric() || matches!(before, '-' | '_' | '.'));
        if is_link || is_foreign {
            result.push(JOINER);
        }
        match c {
            '<' => result.push_str("&lt;"),
            c => result.push(c),
        }
        before = c;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Addressee, ReplyChoice};

    fn message(kind: OutboundKind, text: &str) -> Outbound {
        Outbound {
            kind,
            mention: Some(Addressee {
                id: "7".to_owned(),
                name: "alice".to_owned(),
            }),
            text: text.to_owned(),
            choices: vec![ReplyChoice {
                label: "Yes".to_owned(),
                value: "1".to_owned(),
            }],
        }
    }

    #[test]
    fn a_comment_has_its_mark_and_mentions_whoever_asked() {
        let drawn = body("task/1/result", &message(OutboundKind::Question, "Really?"));
        assert!(drawn.starts_with("<!-- codespar:"), "{drawn}");
        assert!(drawn.contains("\n@alice Really?"), "{drawn}");
        assert!(drawn.ends_with("\n1. Yes"), "{drawn}");
        assert_ne!(mark("a"), mark("b"));
        assert!(!mark("--> x").contains("--> x"));
    }

    #[test]
    fn text_of_others_makes_no_links_pictures_or_references() {
        let text = "[safe](https://evil.example/?q=1) <img src=x> [a][b]\n[b]: https://evil.example \
                    other/repo#5 <!-- hidden -->";
        let drawn = body("k", &message(OutboundKind::Text, text));
        let (_, below) = drawn.split_once("-->\n").unwrap();
        for form in ["](", "][", "]:", "<img", "repo#5", "<!--"] {
            assert!(!below.contains(form), "{form}: {below}");
        }
        let own = body("k", &message(OutboundKind::Text, "PR #1 is ready"));
        assert!(own.contains("PR #1 is ready"), "{own}");
    }
}
