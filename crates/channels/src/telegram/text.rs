//! Text of Telegram as the core reads it. Telegram tells apart from the text what of it is code, a
//! quotation or a mention; the core reads marks.
//!
//! Offsets in Telegram's messages count UTF-16 units, not characters or bytes, so all cutting and
//! marking of text goes through here.

use serde::Deserialize;

use super::api::BotAccount;

/// A part of a text and what it is. Places are counted in UTF-16.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Entity {
    #[serde(rename = "type")]
    kind: String,
    offset: usize,
    length: usize,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    user: Option<EntityUser>,
}

#[derive(Debug, Clone, Deserialize)]
struct EntityUser {
    id: i64,
}

impl Entity {
    /// The place behind it.
    fn end(&self) -> usize {
        self.offset.saturating_add(self.length)
    }
}

/// What a part of a text is to us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Mention,
    Code,
    Block,
    Quotation,
    Link,
}

/// A text with marks, and whether it is for us by a mention or a command with our name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MarkedText {
    pub(super) text: String,
    pub(super) mentioned: bool,
}

/// Our own mention becomes `@codespar`, code gets its backticks back, a quotation its angle
/// brackets, and a link shows where it leads. `/fix@our_bot it` is `fix it`, said to us.
pub(super) fn marked(text: &str, entities: &[Entity], account: &BotAccount) -> MarkedText {
    if let Some(command) = command(text, entities, account) {
        return command;
    }
    let units: Vec<u16> = text.encode_utf16().collect();
    let parts: Vec<(&Entity, Part)> = entities
        .iter()
        .filter_map(|entity| Some((entity, part(entity, &units, account)?)))
        .collect();
    let mut out = String::with_capacity(text.len() + 16);
    let mut mentioned = false;
    let (mut at, mut skipped_to) = (0, 0);
    for c in text.chars() {
        close(&mut out, &parts, at);
        for (entity, part) in parts.iter().filter(|(entity, _)| entity.offset == at) {
            open(&mut out, *part);
            if *part == Part::Mention {
                mentioned = true;
                skipped_to = entity.end();
            }
        }
        if at >= skipped_to {
            out.push(c);
        }
        let is_quoted = |(entity, part): &(&Entity, Part)| {
            *part == Part::Quotation && (entity.offset..entity.end()).contains(&at)
        };
        if c == '\n' && parts.iter().any(is_quoted) {
            out.push_str("> ");
        }
        at += c.len_utf16();
    }
    close(&mut out, &parts, at);
    MarkedText {
        text: out,
        mentioned,
    }
}

fn open(out: &mut String, part: Part) {
    let begins_line = out.is_empty() || out.ends_with('\n');
    match part {
        Part::Mention => out.push_str("@codespar"),
        Part::Code => out.push('`'),
        Part::Block | Part::Quotation => {
            if !begins_line {
                out.push('\n');
            }
            out.push_str(if part == Part::Block { "```\n" } else { "> " });
        }
        Part::Link => {}
    }
}

fn close(out: &mut String, parts: &[(&Entity, Part)], at: usize) {
    for (entity, part) in parts {
        if entity.length == 0 || entity.end() != at {
            continue;
        }
        match part {
            Part::Mention => {}
            Part::Code => out.push('`'),
            Part::Block => out.push_str("\n```\n"),
            Part::Quotation => out.push('\n'),
            Part::Link => {
                let url = entity.url.as_deref().unwrap_or_default();
                out.push_str(&format!(" ({url})"));
            }
        }
    }
}

fn part(entity: &Entity, units: &[u16], account: &BotAccount) -> Option<Part> {
    match entity.kind.as_str() {
        "mention" => {
            let units = units.get(entity.offset..entity.end())?;
            let name = String::from_utf16_lossy(units);
            is_ours(name.strip_prefix('@')?, account).then_some(Part::Mention)
        }
        "text_mention" => {
            let user = entity.user.as_ref()?;
            (user.id == account.id).then_some(Part::Mention)
        }
        "code" => Some(Part::Code),
        "pre" => Some(Part::Block),
        "blockquote" | "expandable_blockquote" => Some(Part::Quotation),
        "text_link" => Some(Part::Link),
        _ => None,
    }
}

fn is_ours(name: &str, account: &BotAccount) -> bool {
    name.eq_ignore_ascii_case(&account.username)
}

/// A command at the beginning. One with another bot's name is plain text; one without a name is
/// for us where the chat is.
fn command(text: &str, entities: &[Entity], account: &BotAccount) -> Option<MarkedText> {
    let is_command = |entity: &Entity| entity.kind == "bot_command" && entity.offset == 0;
    entities.iter().find(|entity| is_command(entity))?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let word = word.strip_prefix('/')?;
    let (verb, name) = match word.split_once('@') {
        Some((verb, name)) => (verb, Some(name)),
        None => (word, None),
    };
    if name.is_some_and(|name| !is_ours(name, account)) {
        return None;
    }
    // What a client sends when somebody opens a bot.
    let verb = if verb == "start" { "help" } else { verb };
    Some(MarkedText {
        text: format!("{verb}{rest}"),
        mentioned: name.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str, entities: &Value) -> (String, bool) {
        let account = BotAccount {
            id: 99,
            username: "our_bot".to_owned(),
            can_join_groups: true,
        };
        let entities: Vec<Entity> = serde_json::from_value(entities.clone()).unwrap();
        let marked = marked(text, &entities, &account);
        (marked.text, marked.mentioned)
    }

    fn entity(kind: &str, offset: usize, length: usize) -> Value {
        json!({"type": kind, "offset": offset, "length": length})
    }

    #[test]
    fn our_mention_is_told_from_others_and_from_code() {
        let text = "🙂 @Our_Bot fix @ann";
        let entities = json!([entity("mention", 3, 8), entity("mention", 16, 4)]);
        assert_eq!(
            read(text, &entities),
            ("🙂 @codespar fix @ann".into(), true)
        );
        let by_id = json!([{"type": "text_mention", "offset": 0, "length": 3, "user": {"id": 99}}]);
        assert_eq!(read("Bot fix", &by_id), ("@codespar fix".into(), true));
        let code = json!([entity("code", 0, 15)]);
        assert_eq!(
            read("@codespar merge", &code),
            ("`@codespar merge`".into(), false)
        );
        let block = json!([entity("pre", 2, 9)]);
        assert_eq!(
            read("a @codespar", &block),
            ("a \n```\n@codespar\n```\n".into(), false)
        );
    }

    #[test]
    fn a_quotation_stays_one_on_all_its_lines() {
        let entities = json!([entity("blockquote", 0, 19)]);
        let (text, mentioned) = read("hi\n@codespar merge 1\nno", &entities);
        assert_eq!(text, "> hi\n> @codespar merge \n1\nno");
        assert!(!mentioned);
    }

    #[test]
    fn a_link_shows_where_it_leads() {
        let link = json!([{"type": "text_link", "offset": 4, "length": 4, "url": "https://evil.example/"}]);
        assert_eq!(
            read("see this", &link).0,
            "see this (https://evil.example/)"
        );
    }

    #[test]
    fn commands_are_read_and_those_of_other_bots_are_not() {
        let command = |text: &str| read(text, &json!([entity("bot_command", 0, 4)]));
        assert_eq!(
            command("/fix@our_bot the login"),
            ("fix the login".into(), true)
        );
        assert_eq!(command("/fix the login"), ("fix the login".into(), false));
        assert_eq!(command("/start"), ("help".into(), false));
        assert_eq!(command("/fix@other_bot it").0, "/fix@other_bot it");
    }

    #[test]
    fn places_outside_the_text_do_no_harm() {
        for entities in [
            json!([entity("mention", 90, 8)]),
            json!([entity("mention", 0, 900)]),
            json!([entity("code", 1, 0)]),
        ] {
            assert!(!read("🙂ab", &entities).1);
        }
    }
}
