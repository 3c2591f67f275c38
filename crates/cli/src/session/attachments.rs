//! Files that a prompt names with `@path`, pictures by their bare path, and resources of MCP servers
//! as `@server:uri`, go with the message.

use std::path::Path;

use codespar_agent::NamedBy;
use codespar_protocol::{ContentBlock, Message, NoticeLevel, Role};
use codespar_runtime::mcp::mentioned_resources;
use tokio_util::sync::CancellationToken;

use super::SessionDriver;

/// More are left for the model to read.
const MOST: usize = 10;
/// By name only here; what a file is, is decided when it is read.
const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

impl SessionDriver {
    /// A file that cannot be read is named, and the prompt is sent without it. Read as the model
    /// would read it, and counted as read. Where the user did not name the file, the rules decide.
    pub(super) async fn with_attachments(&mut self, text: String, named_by: NamedBy) -> Message {
        let paths = named(&text, &self.project.dir.cwd);
        let resources = mentioned_resources(&text, &self.project.mcp);
        let mut content: Vec<ContentBlock> = Vec::new();
        if !text.trim().is_empty() {
            content.push(ContentBlock::text(text));
        }
        content.extend(self.view.take_attachments());
        let cancel = CancellationToken::new();
        for path in paths.into_iter().take(MOST) {
            let Some(agent) = &mut self.agent else { break };
            match agent.read_for_user(&path, named_by, &cancel).await {
                Ok(blocks) => content.extend(blocks),
                Err(error) => self.view.notice(
                    NoticeLevel::Warning,
                    format!("{path} was not attached: {error}"),
                ),
            }
        }
        for (reader, uri) in resources {
            let Some(agent) = &mut self.agent else { break };
            let read = agent.read_resource_for_user(&reader, &uri, named_by, &cancel);
            match read.await {
                Ok(blocks) => content.extend(blocks),
                Err(error) => self.view.notice(
                    NoticeLevel::Warning,
                    format!("{uri} was not attached: {error}"),
                ),
            }
        }
        Message {
            role: Role::User,
            content,
        }
    }
}

/// Words as a shell has them: a blank after a backslash or within quotes does not end a word. So
/// terminals write the path of a file that is dropped. A quote that is not closed is a character.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let at = usize::from(rest.starts_with('@'));
        let quote = rest[at..].chars().next().filter(|c| "'\"`".contains(*c));
        let quoted = quote.and_then(|quote| {
            let inner = &rest[at + 1..];
            let end = inner.find(quote)?;
            let line = inner.find('\n').unwrap_or(inner.len());
            (end < line).then_some((&inner[..end], at + end + 2))
        });
        let (word, length) = match quoted {
            Some((inner, length)) => (format!("{}{inner}", &rest[..at]), length),
            None => bare_word(rest),
        };
        words.push(word);
        rest = rest[length..].trim_start();
    }
    words
}

/// Up to the next blank, and its length in the text.
fn bare_word(text: &str) -> (String, usize) {
    let mut word = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if chars.next_if(|(_, next)| *next == ' ').is_some() => word.push(' '),
            c if c.is_whitespace() => return (word, at),
            c => word.push(c),
        }
    }
    (word, text.len())
}

/// Absolute paths, each once. Quotes and escaped blanks of a dropped file are taken off.
fn named(text: &str, cwd: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for word in words(text) {
        let mention = word.strip_prefix('@');
        let bare = mention
            .unwrap_or(&word)
            .trim_matches(['\'', '"', '`'])
            .trim_end_matches([',', '.', ';', ':', ')', '?', '!']);
        let path = cwd.join(bare);
        let is_picture = path
            .extension()
            .and_then(|end| end.to_str())
            .is_some_and(|end| PICTURES.contains(&end.to_lowercase().as_str()));
        if bare.is_empty() || mention.is_none() && !is_picture || !path.is_file() {
            continue;
        }
        let path = path.to_string_lossy().into_owned();
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_and_pictures_are_found_once() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.rs", "shot.PNG", "my shot.png", "it's.png"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let found = named(
            "look at @a.rs, @a.rs and 'shot.PNG' not a.rs @none",
            dir.path(),
        );
        let names: Vec<&str> = found
            .iter()
            .map(|path| path.rsplit('/').next().unwrap())
            .collect();
        assert_eq!(names, ["a.rs", "shot.PNG"]);
        for text in [
            "my\\ shot.png",
            "see 'my shot.png', 'really'",
            "@\"my shot.png\"",
        ] {
            let path = dir.path().join("my shot.png").display().to_string();
            assert_eq!(named(text, dir.path()), [path], "{text}");
        }
        let path = dir.path().join("it's.png").display().to_string();
        assert_eq!(named("don't it's.png", dir.path()), [path]);
    }
}
