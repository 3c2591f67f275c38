//! Questions of agents as messages, and replies that answer them.
//!
//! A question is open in its thread until somebody with the role to change code answers it, here or
//! at another surface. A number is always read as a choice. Other text without a mention counts as
//! the answer of the person whose work it is, or if it is a reply to the very message.
//!
//! An answer is given once, in one transaction with the state of the question, so of two people who
//! answer at the same time one is told that it is settled. What a person over a network may not
//! decide, a rule for later sessions or a command without a sandbox, is not offered as a choice and
//! is refused when it is typed.

use codespar_protocol::{AccessRole, Answer, Question, QuestionRequest, QuestionStatus, TaskId};
use codespar_store::{
    ChannelMessage, MessageChange, MessageState, NewOutbound, QuestionFilter, StoreError, ThreadRef,
};

use super::{
    ChannelCore,
    decide::ForUs,
    reply::{Audited, Verdict, addressee},
};
use crate::{Outbound, OutboundKind, ReplyChoice, TERMINAL, Verb, message::KeptMessage};

/// Agents start agents; a question belongs to the work at the top.
const MOST_DEEP: usize = 8;

/// Of the message that shows the question. It is edited when the question is settled, wherever that
/// was.
fn question_key(question: &Question) -> String {
    format!("question/{}", question.id)
}

fn is_question_key(key: &str) -> bool {
    key.starts_with("question/")
}

/// An open question, and the message whose work asks it.
struct Waiting {
    question: Question,
    work: ChannelMessage,
}

impl ChannelCore {
    /// The open questions of a task and of the agents below it.
    pub(crate) async fn open_questions(&self, task: &TaskId) -> Result<Vec<Question>, StoreError> {
        let mut found = Vec::new();
        for question in self.store().questions(QuestionFilter::Open).await? {
            if let Some(asks) = question.task_id.clone()
                && self.with_those_above(asks).await?.contains(task)
            {
                found.push(question);
            }
        }
        Ok(found)
    }

    /// A task and those that it is a part of: a question of an agent is one of the run above it.
    pub(crate) async fn with_those_above(&self, task: TaskId) -> Result<Vec<TaskId>, StoreError> {
        let mut above = vec![task];
        while let Some(last) = above.last().filter(|_| above.len() < MOST_DEEP) {
            match self.store().task(last).await?.parent_task_id {
                Some(parent) => above.push(parent),
                None => break,
            }
        }
        Ok(above)
    }

    pub(crate) fn question_message(
        &self,
        work: &ChannelMessage,
        kept: &KeptMessage,
        question: &Question,
    ) -> NewOutbound {
        let outbound = Outbound {
            kind: OutboundKind::Question,
            mention: Some(addressee(kept)),
            text: question_text(&question.request),
            choices: choices(&question.request),
        };
        self.outbound(question_key(question), &work.at, outbound)
    }

    /// The same message with what was answered, and by whom: the buttons are gone.
    pub(crate) fn settled_question(&self, at: &ThreadRef, question: &Question) -> NewOutbound {
        let how = match (question.status, &question.answered_by) {
            (QuestionStatus::Answered, Some(by)) => {
                format!("answered by {by}: {}", answer_text(question))
            }
            _ => "not needed any more".to_owned(),
        };
        let outbound = Outbound {
            kind: OutboundKind::Settled,
            mention: None,
            text: format!("{}\n✔ {how}", question_text(&question.request)),
            choices: Vec::new(),
        };
        self.outbound(question_key(question), at, outbound)
    }

    /// Takes a message as the answer to a question that waits in its thread, if it is one. It is
    /// settled then.
    pub(crate) async fn answered(
        &self,
        message: &ChannelMessage,
        kept: &KeptMessage,
        for_us: &ForUs,
    ) -> Result<bool, StoreError> {
        let text = match for_us {
            ForUs::Yes(text) | ForUs::Maybe(text) => text.trim(),
            ForUs::No => return Ok(false),
        };
        let waiting = self.waiting(&message.at).await?;
        let replied = self.replied_to(message, kept).await?;
        let is_it = |one: &&Waiting| replied == Some(question_key(&one.question));
        let direct = waiting.iter().find(is_it);
        // An answer to a question that is settled is none to the next one.
        let is_to_question = replied.as_deref().is_some_and(is_question_key);
        if direct.is_none() && is_to_question {
            return Ok(false);
        }
        let Some(one) = direct.or(waiting.first()) else {
            return Ok(false);
        };
        let is_meant = match for_us {
            _ if direct.is_some() => true,
            ForUs::Maybe(_) => one.work.speaker == message.speaker,
            // `@codespar status` is a command also while a question waits.
            _ => Verb::find(text.split_whitespace().next().unwrap_or_default()).is_none(),
        };
        let meaning = match is_meant {
            true => Meaning::Answer,
            false => Meaning::Unclear,
        };
        let Some(answer) = read_answer(&one.question.request, text, meaning) else {
            return Ok(false);
        };
        self.take_answer(message, kept, one, answer).await?;
        Ok(true)
    }

    /// The key of our message that a message replies to.
    async fn replied_to(
        &self,
        message: &ChannelMessage,
        kept: &KeptMessage,
    ) -> Result<Option<String>, StoreError> {
        let Some(id) = &kept.reply_to else {
            return Ok(None);
        };
        let at = &message.at;
        let place = (at.channel.as_str(), at.conversation.as_str());
        let row = self.our_message(place, id).await?;
        Ok(row.map(|row| row.key))
    }

    /// Questions that wait in a thread, the oldest work first.
    async fn waiting(&self, at: &ThreadRef) -> Result<Vec<Waiting>, StoreError> {
        let mut waiting = Vec::new();
        for work in self.store().open_messages(&at.channel).await? {
            if work.at != *at || work.state != MessageState::Working {
                continue;
            }
            let Some(task) = &work.task_id else { continue };
            for question in self.open_questions(task).await? {
                let work = work.clone();
                waiting.push(Waiting { question, work });
            }
        }
        Ok(waiting)
    }

    async fn take_answer(
        &self,
        message: &ChannelMessage,
        kept: &KeptMessage,
        waiting: &Waiting,
        answer: Answer,
    ) -> Result<(), StoreError> {
        let binding = kept.bound(self.store().thread_binding(&message.at).await?);
        let (role, _) = self.role_of(message, kept, &binding).await?;
        if role.is_none() {
            return self.refuse_stranger(message, kept, &kept.text).await;
        }
        let is_allowed = role.is_some_and(|role| role.allows(AccessRole::Write));
        let id = &waiting.question.id;
        let by = &kept.speaker.name;
        // As over the API: whoever speaks over a network does not decide about the sandbox.
        let is_unconfined =
            message.at.channel != TERMINAL && waiting.question.request.lets_run_unconfined(&answer);
        let (verdict, outbound) = if is_allowed && is_unconfined {
            let text = format!(
                "the command would run without a sandbox; answer at a terminal of the server: \
                 codespar task answer {id}"
            );
            (
                Verdict::Refused,
                self.answer(message, kept, text, Vec::new()),
            )
        } else if is_allowed {
            match self.store().answer_question(id, &answer, by).await {
                Ok(question) => {
                    self.reach("answered");
                    let settled = self.settled_question(&message.at, &question);
                    (Verdict::Done, settled)
                }
                Err(
                    error @ (StoreError::QuestionNotOpen { .. } | StoreError::WrongAnswer { .. }),
                ) => {
                    let reply = self.answer(message, kept, error.to_string(), Vec::new());
                    (Verdict::Failed, reply)
                }
                Err(error) => return Err(error),
            }
        } else {
            let text = format!("an answer needs the role {}", AccessRole::Write);
            let reply = self.answer(message, kept, text, Vec::new());
            (Verdict::Refused, reply)
        };
        let audited = Audited {
            role,
            action: "answer",
            verdict,
            detail: &kept.text,
            task: waiting.work.task_id.as_ref(),
        };
        let change = MessageChange {
            outbound: vec![outbound],
            audit: vec![self.entry(message, &audited)],
            ..MessageChange::default()
        };
        self.settle(message, change).await
    }
}

fn question_text(request: &QuestionRequest) -> String {
    match request {
        QuestionRequest::Permission(asked) => {
            let mut text = format!("May I run this? {}: {}", asked.tool, asked.summary);
            if let Some(preview) = &asked.preview {
                text.push_str(&format!("\n{preview}"));
            }
            text.push_str(&format!("\n({})", asked.reason));
            text
        }
        QuestionRequest::Clarification(asked) => asked.text.clone(),
        QuestionRequest::Elicitation(asked) => format!("{}: {}", asked.server, asked.message),
    }
}

/// Rules for later sessions are not given in a chat: `always` is for the terminal.
fn choices(request: &QuestionRequest) -> Vec<ReplyChoice> {
    let numbered = |labels: Vec<String>| {
        let choices = labels
            .into_iter()
            .enumerate()
            .map(|(index, label)| ReplyChoice {
                label,
                value: (index + 1).to_string(),
            });
        choices.collect()
    };
    match request {
        QuestionRequest::Permission(_) => numbered(vec!["Yes, once".to_owned(), "No".to_owned()]),
        QuestionRequest::Clarification(asked) => numbered(numbered_options(&asked.text)),
        QuestionRequest::Elicitation(_) => Vec::new(),
    }
}

/// The lines of a question that are numbered from 1: `1. in login.ts`, `2) in session.ts`.
pub fn numbered_options(text: &str) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.trim().trim_start_matches(['*', '-']).trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = line.split_at(digits);
        let is_next = number.parse() == Ok(options.len() + 1);
        if let (true, Some(option)) = (is_next, rest.strip_prefix(['.', ')'])) {
            options.push(option.trim().to_owned());
        }
    }
    match options.len() {
        // One is no choice.
        1 => Vec::new(),
        _ => options,
    }
}

/// Whether a text is meant as an answer. Only a number, or a plain yes or no, counts otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Answer,
    Unclear,
}

fn read_answer(request: &QuestionRequest, text: &str, meaning: Meaning) -> Option<Answer> {
    let number: Option<usize> = text.trim_end_matches(['.', ')']).parse().ok();
    let chosen = |options: usize| number.filter(|number| (1..=options).contains(number));
    match request {
        QuestionRequest::Permission(_) => match (chosen(2), text.to_lowercase().as_str()) {
            (Some(1), _) | (_, "y" | "yes") => Some(Answer::Once),
            (Some(_), _) | (_, "n" | "no") => Some(Answer::No { reason: None }),
            _ => None,
        },
        QuestionRequest::Clarification(asked) => {
            let options = numbered_options(&asked.text);
            let text = match chosen(options.len()) {
                Some(number) => options.into_iter().nth(number - 1)?,
                None if meaning == Meaning::Answer && !text.is_empty() => text.to_owned(),
                None => return None,
            };
            Some(Answer::Text { text })
        }
        QuestionRequest::Elicitation(_) if meaning == Meaning::Unclear => None,
        QuestionRequest::Elicitation(_) => request.parse_answer(text).ok(),
    }
}

fn answer_text(question: &Question) -> String {
    match &question.answer {
        Some(Answer::Once | Answer::OnceWith { .. } | Answer::OnceWithout { .. }) => {
            "yes, once".to_owned()
        }
        Some(Answer::Always | Answer::AlwaysBy { .. }) => "yes, always".to_owned(),
        Some(Answer::No { .. }) | None => "no".to_owned(),
        Some(Answer::Text { text }) => text.clone(),
        Some(Answer::Form { .. }) => "the values that were asked for".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use codespar_protocol::ClarificationRequest;

    use super::*;

    fn clarification(text: &str) -> QuestionRequest {
        QuestionRequest::Clarification(ClarificationRequest {
            text: text.to_owned(),
        })
    }

    #[test]
    fn a_number_stands_for_the_option_of_that_number() {
        let asked = clarification("Which one?\n1. in login.ts\n2) in session.ts\nplease");
        let labels: Vec<String> = choices(&asked).into_iter().map(|one| one.label).collect();
        assert_eq!(labels, ["in login.ts", "in session.ts"]);
        let text = |text: &str| {
            Some(Answer::Text {
                text: text.to_owned(),
            })
        };
        assert_eq!(
            read_answer(&asked, "2", Meaning::Unclear),
            text("in session.ts")
        );
        assert_eq!(
            read_answer(&asked, "2.", Meaning::Unclear),
            text("in session.ts")
        );
        assert_eq!(read_answer(&asked, "3", Meaning::Unclear), None);
        assert_eq!(read_answer(&asked, "3", Meaning::Answer), text("3"));
        assert_eq!(read_answer(&asked, "both", Meaning::Answer), text("both"));
        assert_eq!(
            read_answer(&asked, "thanks for asking", Meaning::Unclear),
            None
        );
    }

    #[test]
    fn a_question_without_numbered_lines_has_no_choices() {
        for text in ["Which file?", "1. only this?", "2. a\n3. b"] {
            assert!(choices(&clarification(text)).is_empty(), "{text}");
        }
    }
}
