//! Completion: commands after `/`, files and agents after `@`.

use std::sync::Arc;

use codespar_terminal::{Line, Span, theme::Theme, width};

/// Suggestions that are shown at once.
const SHOWN: usize = 6;
/// Suggestions that are kept.
const KEPT: usize = 50;

/// Something that can be completed, with what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// What is put into the text, without the `/` or `@`.
    pub text: String,
    pub help: String,
}

/// Where suggestions come from. Called while the user types: it must answer at once.
pub trait CompletionSource: Send + Sync {
    /// Slash commands, without the slash.
    fn commands(&self) -> Vec<Suggestion>;
    /// Paths of the project, relative to where it is.
    fn paths(&self) -> Arc<[String]>;
    fn agents(&self) -> Vec<Suggestion>;
}

/// Suggestions for the word at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Bytes before the cursor that a suggestion replaces.
    pub(crate) replaces: usize,
    suggestions: Vec<Suggestion>,
    selected: usize,
}

impl Completion {
    /// `None` if there is nothing to suggest. Computed at each change of the text; after `@` over
    /// all paths of the project. Nothing is offered once the only suggestion is what is typed.
    pub(crate) fn of(before_cursor: &str, source: &dyn CompletionSource) -> Option<Self> {
        let (replaces, suggestions) = if let Some(typed) = command_prefix(before_cursor) {
            let commands = source.commands().into_iter();
            let found = ranked(typed, commands.map(|one| (one.text.clone(), one)));
            (typed.len(), found)
        } else {
            let typed = mention_prefix(before_cursor)?;
            let agents = source.agents().into_iter();
            let mut all: Vec<(String, Suggestion)> =
                agents.map(|one| (one.text.clone(), one)).collect();
            let paths = source.paths();
            all.extend(paths.iter().map(|path| {
                let one = Suggestion {
                    text: path.clone(),
                    help: String::new(),
                };
                (path.clone(), one)
            }));
            (typed.len(), ranked(typed, all.into_iter()))
        };
        let is_complete = suggestions.len() == 1
            && before_cursor.ends_with(&suggestions[0].text)
            && suggestions[0].text.len() == replaces;
        (!suggestions.is_empty() && !is_complete).then_some(Self {
            replaces,
            suggestions,
            selected: 0,
        })
    }

    pub(crate) fn up(&mut self) {
        let count = self.suggestions.len();
        self.selected = (self.selected + count - 1) % count;
    }

    pub(crate) fn down(&mut self) {
        self.selected = (self.selected + 1) % self.suggestions.len();
    }

    /// What is put into the text. A blank follows, but not after a directory. After a directory the
    /// completion goes on with what is in it.
    pub(crate) fn chosen(&self) -> String {
        let text = &self.suggestions[self.selected].text;
        match text.ends_with('/') {
            true => text.clone(),
            false => format!("{text} "),
        }
    }

    pub(crate) fn lines(&self, columns: u16, theme: Theme) -> Vec<Line<'static>> {
        let columns = usize::from(columns).saturating_sub(4);
        let first = self.selected.saturating_sub(SHOWN - 1);
        let shown = self.suggestions.iter().enumerate().skip(first).take(SHOWN);
        let widest = shown.clone().map(|(_, one)| width::of(&one.text)).max();
        let widest = widest.unwrap_or(0).min(columns);
        let lines = shown.map(|(number, one)| {
            let style = match number == self.selected {
                true => theme.accent(),
                false => theme.faint(),
            };
            let text = width::shortened(&one.text, widest);
            let pad = " ".repeat(widest - width::of(&text));
            let help = width::shortened(&one.help, columns.saturating_sub(widest));
            Line::from(vec![
                Span::styled(format!("  {text}"), style),
                Span::styled(format!("{pad}  {help}"), theme.faint()),
            ])
        });
        lines.collect()
    }
}

/// A text that is only a command so far: `/mo`.
fn command_prefix(before_cursor: &str) -> Option<&str> {
    let typed = before_cursor.strip_prefix('/')?;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':');
    typed.chars().all(is_word).then_some(typed)
}

/// A word that begins with `@`, as it stands before the cursor.
fn mention_prefix(before_cursor: &str) -> Option<&str> {
    let start = before_cursor.rfind(char::is_whitespace).map_or(0, |at| {
        at + before_cursor[at..].chars().next().map_or(1, char::len_utf8)
    });
    before_cursor[start..].strip_prefix('@')
}

/// The best first; of equal ones the shorter, then by name.
fn ranked(typed: &str, all: impl Iterator<Item = (String, Suggestion)>) -> Vec<Suggestion> {
    let wanted = typed.to_lowercase();
    let mut found: Vec<(i64, Suggestion)> = all
        .filter_map(|(text, one)| Some((score(&wanted, &text)?, one)))
        .collect();
    found.sort_by(|(a, one), (b, other)| {
        let by_score = b.cmp(a);
        by_score
            .then(one.text.len().cmp(&other.text.len()))
            .then(one.text.cmp(&other.text))
    });
    found.truncate(KEPT);
    found.into_iter().map(|(_, one)| one).collect()
}

/// How well the typed characters fit, in order; `None` if they do not. Characters next to each
/// other, at the beginning of a word and in the file name count more. A whole match in the file
/// name usually counts more than a scattered one. Longer paths count less.
fn score(wanted: &str, text: &str) -> Option<i64> {
    let lower = text.to_lowercase();
    let name_at = lower
        .trim_end_matches('/')
        .rfind('/')
        .map_or(0, |at| at + 1);
    if let Some(at) = lower[name_at..].find(wanted) {
        let at_start = if at == 0 { 1_000 } else { 500 };
        return Some(at_start - lower.len() as i64);
    }
    let mut score = 0;
    let mut last = None;
    let mut chars = lower.char_indices();
    for c in wanted.chars() {
        let (at, _) = chars.by_ref().find(|(_, other)| *other == c)?;
        let before = lower[..at].chars().next_back();
        score += match (last, before) {
            (Some(last), _) if at == last + c.len_utf8() => 8,
            (_, None | Some('/' | '_' | '-' | '.')) => 6,
            _ => 1,
        };
        last = Some(at);
    }
    Some(score - lower.len() as i64 / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl CompletionSource for Fixed {
        fn commands(&self) -> Vec<Suggestion> {
            ["help", "model", "mode", "memory"]
                .map(|text| Suggestion {
                    text: text.into(),
                    help: format!("about {text}"),
                })
                .into()
        }

        fn paths(&self) -> Arc<[String]> {
            ["src/", "src/main.rs", "src/model/mod.rs", "docs/models.md"]
                .map(str::to_owned)
                .into()
        }

        fn agents(&self) -> Vec<Suggestion> {
            Vec::new()
        }
    }

    fn texts(before_cursor: &str) -> Vec<String> {
        let found = Completion::of(before_cursor, &Fixed);
        let found = found.map(|found| found.suggestions).unwrap_or_default();
        found.into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn commands_are_suggested_at_the_beginning_only() {
        assert_eq!(texts("/mod"), ["mode", "model"]);
        assert_eq!(texts("say /mod"), [""; 0]);
        assert_eq!(texts("/etc/hosts"), [""; 0]);
        assert_eq!(texts("/help"), [""; 0]);
    }

    #[test]
    fn paths_are_found_by_their_name_first() {
        assert_eq!(texts("look at @main"), ["src/main.rs"]);
        assert_eq!(texts("@model")[0], "docs/models.md");
        assert_eq!(texts("@smr")[0], "src/main.rs");
        assert_eq!(texts("mail me@x"), [""; 0]);
    }

    #[test]
    fn a_directory_is_not_followed_by_a_blank() {
        let completion = Completion::of("@src", &Fixed).unwrap();
        assert_eq!(completion.replaces, 3);
        assert_eq!(completion.chosen(), "src/");
    }
}
