//! A script: what the model answers, turn by turn, in one or several conversations.
//!
//! A script is a value: it is built or parsed before the server starts and never changes while it
//! runs. A request is answered in three steps, none of which depends on earlier requests:
//!
//! 1. The first named conversation whose matcher holds is chosen, else the default one.
//! 2. The number of assistant messages in the request is the index of the turn.
//! 3. The turn is played, or what `after_last` says if the index is beyond the last.
//!
//! Only faults remember something, namely how often a turn was tried.

use serde::Deserialize;
use serde_json::Value;

use crate::{Turn, asked::Asked};

/// What the model answers.
///
/// The turn played is the number of assistant messages in the request, so that conversations may
/// run side by side, be resumed and be tried again without the server keeping anything.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Script {
    pub(crate) named: Vec<Conversation>,
    /// None: a request that no named conversation matches is refused with 400.
    pub(crate) default: Option<Conversation>,
    pub(crate) validation: Validation,
    /// In bytes of the body. Checked before the body is read, so it also holds without validation.
    pub(crate) longest_request: Option<usize>,
}

/// Whether requests are held to the rules of the real API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validation {
    /// A mistake is answered with 400 or 401 and what is wrong.
    #[default]
    Strict,
    /// Anything that can be read is answered.
    Off,
}

/// What happens when a request asks for a turn after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterLast {
    /// Status 400 that names the turn.
    #[default]
    Error,
    /// The last turn again.
    Repeat,
    /// A short text that ends the turn.
    End,
}

/// Which requests a conversation is for. All that is set must hold. An empty one matches every
/// request. Texts are compared with letter case and without templates.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Matcher {
    first_user_contains: Option<String>,
    system_contains: Option<String>,
    model: Option<String>,
}

impl Matcher {
    /// Requests whose first user message contains this.
    pub fn first_user_contains(text: impl Into<String>) -> Self {
        Self {
            first_user_contains: Some(text.into()),
            ..Self::default()
        }
    }

    /// Requests whose system prompt contains this.
    pub fn system_contains(text: impl Into<String>) -> Self {
        Self {
            system_contains: Some(text.into()),
            ..Self::default()
        }
    }

    /// Requests for exactly this model, as the request spells it.
    pub fn model(name: impl Into<String>) -> Self {
        Self {
            model: Some(name.into()),
            ..Self::default()
        }
    }

    /// Both this and the other. Where both set the same condition, that of the other replaces this
    /// one: there is one text for each.
    pub fn and(self, other: Self) -> Self {
        Self {
            first_user_contains: other.first_user_contains.or(self.first_user_contains),
            system_contains: other.system_contains.or(self.system_contains),
            model: other.model.or(self.model),
        }
    }

    fn matches(&self, asked: &Asked) -> bool {
        let within = |part: &Option<String>, whole: &str| {
            part.as_deref().is_none_or(|part| whole.contains(part))
        };
        within(&self.first_user_contains, &asked.first_user)
            && within(&self.system_contains, &asked.system)
            && self.model.as_deref().is_none_or(|name| name == asked.model)
    }
}

/// The turns of one conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// For errors, the log and the count of attempts; two conversations of one name share that
    /// count.
    pub(crate) name: String,
    pub(crate) matcher: Matcher,
    pub(crate) turns: Vec<Turn>,
    pub(crate) after_last: AfterLast,
}

impl Conversation {
    /// A conversation for the requests that match.
    pub fn new(name: impl Into<String>, matcher: Matcher) -> Self {
        Self {
            name: name.into(),
            matcher,
            ..Self::default()
        }
    }

    pub fn turn(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }

    pub fn turns(mut self, turns: impl IntoIterator<Item = Turn>) -> Self {
        self.turns.extend(turns);
        self
    }

    /// Says what comes after the last turn.
    pub fn after_last(mut self, after_last: AfterLast) -> Self {
        self.after_last = after_last;
        self
    }

    /// The turn to play; `index` counts from 0. The error says why there is none.
    pub(crate) fn play(&self, index: usize) -> Result<Turn, String> {
        if let Some(turn) = self.turns.get(index) {
            return Ok(turn.clone());
        }
        match (self.after_last, self.turns.last()) {
            (AfterLast::Repeat, Some(last)) => Ok(last.clone()),
            (AfterLast::End, _) => Ok(Turn::text("The script is over.")),
            _ => Err(format!(
                "turn {} was asked for, but the script of conversation `{}` has {} (set \
                 `after_last` to `repeat` or `end` to go on)",
                index + 1,
                self.name,
                self.turns.len(),
            )),
        }
    }
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    /// One conversation of these turns, whatever the request says.
    pub fn of(turns: impl IntoIterator<Item = Turn>) -> Self {
        turns.into_iter().fold(Self::new(), Self::turn)
    }

    /// `calls` turns with one tool call each, then a text. The input is made from the number of
    /// the turn, counted from 1.
    pub fn tool_loop(
        calls: usize,
        tool: &str,
        input: impl Fn(usize) -> Value,
        final_text: &str,
    ) -> Self {
        let turns = (1..=calls).map(|turn| Turn::tool(tool, &input(turn)));
        Self::of(turns.chain([Turn::text(final_text)]))
    }

    /// Adds a turn to the default conversation.
    pub fn turn(mut self, turn: Turn) -> Self {
        self.default_conversation().turns.push(turn);
        self
    }

    /// Says what comes after the last turn of the default conversation.
    pub fn after_last(mut self, after_last: AfterLast) -> Self {
        self.default_conversation().after_last = after_last;
        self
    }

    /// Adds a conversation. The first that matches a request answers it, else the default one.
    pub fn conversation(mut self, conversation: Conversation) -> Self {
        self.named.push(conversation);
        self
    }

    /// Says whether requests are held to the rules of the real API; they are by default.
    pub fn validation(mut self, validation: Validation) -> Self {
        self.validation = validation;
        self
    }

    /// Refuses requests with a larger body than this, as a model does whose context window they
    /// do not fit.
    pub fn longest_request(mut self, bytes: usize) -> Self {
        self.longest_request = Some(bytes);
        self
    }

    fn default_conversation(&mut self) -> &mut Conversation {
        self.default
            .get_or_insert_with(|| Conversation::new("default", Matcher::default()))
    }

    /// `None` if nothing matches and there is no default one.
    pub(crate) fn choose(&self, asked: &Asked) -> Option<&Conversation> {
        self.named
            .iter()
            .find(|conversation| conversation.matcher.matches(asked))
            .or(self.default.as_ref())
    }
}
