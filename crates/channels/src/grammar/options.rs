//! `in owner/repo`, `on <branch>`, `with <model>`.
//!
//! They are read at the beginning of a text, after its verb and at its end. In the middle of a
//! sentence they are part of it. A branch and a model count only if they exist, since "on startup"
//! and "with care" are good English. A repository counts unless the words are a path of the
//! current one: an unknown repository is then refused by the surface, while ignoring the words
//! would do the work in the wrong place.

use super::{NotACommand, Verb, malformed};

/// What a surface knows, to tell options from prose.
pub trait Names {
    fn is_branch(&self, name: &str) -> bool;
    fn is_model(&self, name: &str) -> bool;
    /// Whether the current repository has this path.
    fn is_path(&self, path: &str) -> bool;
}

/// Empty fields take the defaults of the surface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// `owner/repo`.
    pub repository: Option<String>,
    pub branch: Option<String>,
    pub model: Option<String>,
}

/// Which options a verb takes.
#[derive(Clone, Copy)]
pub(super) struct Allowed {
    repository: bool,
    branch: bool,
    model: bool,
}

impl Allowed {
    /// Listed by verb, so that none is accepted and then ignored.
    pub(super) fn of(verb: Verb) -> Self {
        let (repository, branch, model) = match verb {
            Verb::Fix
            | Verb::Implement
            | Verb::Refactor
            | Verb::Add
            | Verb::Instruct
            | Verb::Plan => (true, true, true),
            Verb::Review | Verb::Resolve | Verb::Watch => (true, false, true),
            Verb::Ask => (false, false, true),
            Verb::Merge | Verb::Prs => (true, false, false),
            _ => (false, false, false),
        };
        Self {
            repository,
            branch,
            model,
        }
    }
}

impl RequestOptions {
    /// Takes the options at both ends of a free text.
    pub(super) fn strip<'a>(&mut self, text: &'a str, names: &dyn Names) -> &'a str {
        let (mut text, found) = leading(text, names);
        self.add(found);
        while let Some((before, word, value)) = last_two(text) {
            // A value at the end may be followed by the end of the sentence.
            let value = value.trim_end_matches(['.', ',', ';', '!', ':']);
            if !self.set(word, value, names) {
                break;
            }
            text = before;
        }
        text
    }

    /// Takes `in …` and `with …` from the words of a command that has no free text.
    pub(super) fn take_from<'a>(&mut self, words: Vec<&'a str>) -> Vec<&'a str> {
        let mut left = Vec::with_capacity(words.len());
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let lower = word.to_lowercase();
            let slot = match lower.as_str() {
                "in" if words.peek().is_some_and(|value| is_repository(value)) => {
                    &mut self.repository
                }
                "with" => &mut self.model,
                _ => {
                    left.push(word);
                    continue;
                }
            };
            match words.next() {
                Some(value) => *slot = Some(value.to_owned()),
                None => left.push(word),
            }
        }
        left
    }

    /// What was given first stays.
    fn add(&mut self, other: Self) {
        self.repository = self.repository.take().or(other.repository);
        self.branch = self.branch.take().or(other.branch);
        self.model = self.model.take().or(other.model);
    }

    /// False if the two words are no option, or one that is there already.
    fn set(&mut self, word: &str, value: &str, names: &dyn Names) -> bool {
        let (slot, is_value) = match word.to_lowercase().as_str() {
            "in" => (
                &mut self.repository,
                is_repository(value) && !names.is_path(value),
            ),
            "on" => (&mut self.branch, names.is_branch(value)),
            "with" => (&mut self.model, names.is_model(value)),
            _ => return false,
        };
        if !is_value || slot.is_some() {
            return false;
        }
        *slot = Some(value.to_owned());
        true
    }

    /// Refuses options that the verb does not take: they would be ignored.
    pub(super) fn check(&self, verb: Verb, allowed: Allowed) -> Result<(), NotACommand> {
        let refused = [
            (&self.repository, allowed.repository, "repository"),
            (&self.branch, allowed.branch, "branch"),
            (&self.model, allowed.model, "model"),
        ];
        for (value, is_allowed, what) in refused {
            if let (Some(value), false) = (value, is_allowed) {
                let message = format!("`{verb}` takes no {what} (`{value}`)");
                return Err(malformed(verb, message));
            }
        }
        Ok(())
    }
}

/// Options at the beginning, and the text after them.
pub(super) fn leading<'a>(text: &'a str, names: &dyn Names) -> (&'a str, RequestOptions) {
    let mut options = RequestOptions::default();
    let mut text = text.trim();
    while let Some((word, value, after)) = first_two(text) {
        let value = value.trim_end_matches([',', ':']);
        if !options.set(word, value, names) {
            break;
        }
        text = after;
    }
    (text, options)
}

fn first_two(text: &str) -> Option<(&str, &str, &str)> {
    let (word, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (value, after) = rest.split_at(end);
    (!value.is_empty()).then(|| (word, value, after.trim()))
}

fn last_two(text: &str) -> Option<(&str, &str, &str)> {
    let (rest, value) = text.trim_end().rsplit_once(char::is_whitespace)?;
    let rest = rest.trim_end();
    let (before, word) = rest.rsplit_once(char::is_whitespace).unwrap_or(("", rest));
    (!word.is_empty()).then(|| (before.trim_end(), word, value))
}

/// `owner/repo` in the characters that forges allow.
pub(super) fn is_repository(text: &str) -> bool {
    let is_name = |part: &str| {
        let is_known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && part.chars().all(is_known) && part.chars().any(|c| c != '.')
    };
    text.split_once('/')
        .is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}
