//! Files that a prompt names with `@path`, and pictures by their bare path, go with the message.

use std::path::Path;

use codespar_agent::NamedBy;
use codespar_protocol::{ContentBlock, Message, NoticeLevel, Role};
use tokio_util::sync::CancellationToken;

use super::SessionDriver;

/// More are left for the model to read.
const MOST: usize = 10;
const PICTURES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

impl SessionDriver {
    /// A file that cannot be read is named, and the prompt is sent without it.
    pub(super) async fn with_attachments(&mut self, text: String, named_by: NamedBy) -> Message {
        let paths = named(&text, &self.project.dir.cwd);
        let mut content = vec![ContentBlock::text(text)];
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
        Message {
            role: Role::User,
            content,
        }
    }
}

/// Absolute paths, each once. Quotes and escaped blanks of a dropped file are taken off.
fn named(text: &str, cwd: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let mention = word.strip_prefix('@');
        let bare = mention
            .unwrap_or(word)
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
        for name in ["a.rs", "shot.PNG"] {
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
    }
}
