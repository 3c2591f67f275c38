//! What the model asked to see before it answers: files, lines of files, places of a text.
//!
//! Everything comes from the tree of the base commit, with the change that is being repaired if
//! there is one, never from a directory of this machine, and without secrets. A text is looked for
//! in what is left of a file without its secrets, so that nobody learns by asking whether a secret
//! has it.

use std::fmt::Write as _;

use codespar_change::answer::ContextRequest;
use codespar_locate::{files_with, head, regions};
use codespar_protocol::{ChangeSet, RepoPath};
use codespar_pulls::Forge;

use super::{
    Base, Reading, blocking,
    read::{Shown, ShownAs},
};
use crate::{
    Failure,
    run::{Conversation, Run},
};

/// Requests of one answer that are met.
const MOST_REQUESTS: usize = 8;
/// The part of the budget that may be shown later, however much was shown at first. As a divisor: a
/// quarter of the budget.
const RESERVE: usize = 4;
/// With less than this left, nothing is shown.
const LEAST: usize = 256;
/// Files that are looked into for a text.
const MOST_FILES: usize = 40;
/// Places that are listed in one file,
const MOST_IN_FILE: usize = 8;
/// and in all.
const MOST_PLACES: usize = 60;
/// A longer line is cut.
const LINE_BYTES: usize = 240;
/// Names that are suggested, or listed of a directory.
const MOST_NAMES: usize = 40;

impl Run {
    /// The answer to requests. What is shown counts as shown from then on. Never fails because of a
    /// request: what cannot be shown is answered with the reason, which the model can act on. Only
    /// an outage of the forge or of git is a failure.
    pub(crate) async fn show_more(
        &self,
        base: &Base,
        reading: &Reading,
        conversation: &mut Conversation,
        requests: &[ContextRequest],
    ) -> Result<String, Failure> {
        let budget = self.order.limits.context_bytes;
        let all = budget.saturating_sub(reading.bytes()).max(budget / RESERVE);
        let mut out = String::new();
        for request in requests.iter().take(MOST_REQUESTS) {
            let left = all.saturating_sub(conversation.more_bytes);
            if left < LEAST {
                out.push_str("No more can be shown: the context is full.\n");
                break;
            }
            let text = match request {
                ContextRequest::Show { path, lines } => {
                    self.show_file(base, conversation, path, *lines, left)
                        .await?
                }
                ContextRequest::Search { text } => {
                    self.search(base, &conversation.changes, text, left).await?
                }
            };
            conversation.more_bytes += text.len();
            out.push_str(&text);
        }
        if requests.len() > MOST_REQUESTS {
            let _ = writeln!(out, "Only the first {MOST_REQUESTS} requests were met.");
        }
        Ok(out)
    }

    /// Hidden files are not shown on request, whatever is in them: settings and tokens are usually
    /// there.
    async fn show_file(
        &self,
        base: &Base,
        conversation: &mut Conversation,
        path: &str,
        lines: Option<(usize, usize)>,
        left: usize,
    ) -> Result<String, Failure> {
        let refused = |reason: &str| Ok(format!("`{path}` is not shown: {reason}.\n"));
        let path = match RepoPath::new(path) {
            Ok(path) => path.to_string(),
            Err(bad) => return refused(&format!("it {}", bad.reason)),
        };
        if path.split('/').any(|part| part.starts_with('.')) {
            return refused("hidden files are not shown");
        }
        let text = match self.text_now(base, &conversation.changes, &path).await? {
            Ok(text) => text,
            Err(reason) => {
                let near = self.names_near(base, &path).await?;
                return refused(&format!("{reason}{near}"));
            }
        };
        let clean = self.redacted(&text);
        let count = clean.lines().count();
        let (excerpt, place) = match lines {
            Some((from, _)) if from > count => {
                return refused(&format!("it has {count} lines"));
            }
            Some((from, to)) => {
                let to = to.min(count);
                let some = clean
                    .split_inclusive('\n')
                    .skip(from - 1)
                    .take(to + 1 - from);
                let mut excerpt = head(&some.collect::<String>(), left);
                excerpt.partial |= from > 1 || to < count;
                (excerpt, format!(" lines=\"{from}-{to} of {count}\""))
            }
            None => {
                let excerpt = regions(&path, &clean, &self.order.instruction, left);
                (excerpt, String::new())
            }
        };
        let part = if excerpt.partial {
            " shown=\"in part\""
        } else {
            ""
        };
        let end = if excerpt.text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let answer = format!(
            "<file path=\"{path}\"{place}{part}>\n{}{end}</file>\n",
            excerpt.text
        );
        conversation.shown.push(Shown {
            path,
            text: excerpt.text,
            is_partial: excerpt.partial,
            is_redacted: clean != text,
            shown_as: ShownAs::Source,
        });
        Ok(answer)
    }

    /// The text of a file with a change, or why it cannot be shown.
    async fn text_now(
        &self,
        base: &Base,
        changes: &ChangeSet,
        path: &str,
    ) -> Result<Result<String, String>, Failure> {
        for change in &changes.0 {
            if let Some((at, content, _)) = change.after()
                && at.as_str() == path
            {
                let text = String::from_utf8(content.0.clone()).ok();
                return Ok(text.ok_or_else(|| "it is not text".to_owned()));
            }
            if change.gone().is_some_and(|gone| gone.as_str() == path) {
                return Ok(Err("your change removes it".to_owned()));
            }
        }
        self.file_text(base, path).await
    }

    /// What may have been meant by a path that is not a file: what is in the directory, or files of
    /// that name elsewhere.
    async fn names_near(&self, base: &Base, path: &str) -> Result<String, Failure> {
        let entries = self.link.forge.tree(&base.commit).await?;
        let paths = entries.iter().map(|entry| entry.path.as_str());
        let is_open = |path: &&str| !path.split('/').any(|part| part.starts_with('.'));
        let paths: Vec<&str> = paths.filter(is_open).collect();
        let below = format!("{path}/");
        let inside: Vec<&str> = paths
            .iter()
            .filter(|known| known.starts_with(&below))
            .take(MOST_NAMES)
            .copied()
            .collect();
        if !inside.is_empty() {
            return Ok(format!("; it is a directory with {}", inside.join(", ")));
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let alike: Vec<&str> = paths
            .into_iter()
            .filter(|known| *known != path && known.rsplit('/').next() == Some(name))
            .take(MOST_IN_FILE)
            .collect();
        Ok(match alike.is_empty() {
            true => String::new(),
            false => format!("; of that name there is {}", alike.join(", ")),
        })
    }

    /// The places of a text in the files of the commit. A file whose places do not fit is counted
    /// and not listed. Of more than `MOST_IN_FILE` places in one file the first are listed.
    async fn search(
        &self,
        base: &Base,
        changes: &ChangeSet,
        text: &str,
        left: usize,
    ) -> Result<String, Failure> {
        let (wanted, commit) = (text.to_owned(), base.commit.0.clone());
        let found = match self.link.clone.clone() {
            Some(clone) => {
                blocking(move || {
                    files_with(&clone, &commit, &wanted)
                        .map_err(|error| Failure::Broken(error.to_string()))
                })
                .await?
            }
            // The search of a forge may lag behind or be down; then there is nothing to show.
            None => {
                let found = self.link.forge.search(&[wanted], MOST_FILES).await;
                found.unwrap_or_default()
            }
        };
        let mut lines: Vec<String> = Vec::new();
        let mut more = found.len().saturating_sub(MOST_FILES);
        let mut bytes = 0;
        for path in found.iter().take(MOST_FILES) {
            let is_hidden = path.split('/').any(|part| part.starts_with('.'));
            let Ok(content) = self.text_now(base, changes, path).await? else {
                continue;
            };
            if is_hidden {
                continue;
            }
            let places = places(path, &self.redacted(&content), text);
            let size: usize = places.iter().map(|line| line.len() + 1).sum();
            if lines.len() + places.len() > MOST_PLACES || bytes + size > left {
                more += 1;
                continue;
            }
            bytes += size;
            lines.extend(places);
        }
        let mut out = format!("<search text=\"{text}\">\n");
        if lines.is_empty() {
            out.push_str("nothing was found\n");
        }
        for line in lines {
            let _ = writeln!(out, "{line}");
        }
        if more > 0 {
            let _ = writeln!(out, "and {more} more files");
        }
        out.push_str("</search>\n");
        Ok(out)
    }
}

/// `path:line: text` for each line that has the text, in any case of letters.
fn places(path: &str, content: &str, text: &str) -> Vec<String> {
    let wanted = text.to_lowercase();
    let having = content
        .lines()
        .enumerate()
        .filter(|(_, line)| line.to_lowercase().contains(&wanted));
    having
        .take(MOST_IN_FILE)
        .map(|(number, line)| {
            let line = line.trim_end();
            let cut = &line[..line.floor_char_boundary(LINE_BYTES)];
            let end = if cut.len() < line.len() { "…" } else { "" };
            format!("{path}:{}: {cut}{end}", number + 1)
        })
        .collect()
}
