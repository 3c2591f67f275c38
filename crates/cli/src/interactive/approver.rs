//! Permission questions at the prompt.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use codespar_agent::Approver;
use codespar_protocol::{Answer, Question};
use codespar_tools::sandbox::Sandbox;

use super::{input::Input, screen::Screen};
use crate::{settings::remember_rules, style};

/// The person at the terminal.
pub(super) struct Person {
    pub(super) input: Arc<Input>,
    pub(super) screen: Arc<Screen>,
    /// Where «always» is kept.
    pub(super) rules_file: PathBuf,
    /// Told of the file, so that it knows our change from a command's.
    pub(super) sandbox: Arc<Sandbox>,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: Question) -> Answer {
        self.screen.question(&question);
        loop {
            let Some(line) = self.input.line().await else {
                return Answer::No {
                    reason: Some("the terminal was closed".to_owned()),
                };
            };
            match line.trim() {
                "y" | "yes" => return Answer::Once,
                "a" | "always" if !question.suggested_rules.is_empty() => {
                    match remember_rules(&self.rules_file, &question.suggested_rules) {
                        Ok(text) => {
                            self.sandbox
                                .vouch_for(self.rules_file.clone(), text.into_bytes());
                            self.screen.say(&style::faint(format!(
                                "kept in {}",
                                self.rules_file.display()
                            )));
                        }
                        Err(error) => self.screen.say(&style::warning(format!(
                            "allowed for this session only: {error}"
                        ))),
                    }
                    return Answer::Always;
                }
                "n" | "no" | "" => return Answer::No { reason: None },
                other if other.starts_with("n ") || other.starts_with("no ") => {
                    let words = other.split_once(' ').map_or("", |(_, words)| words);
                    let reason = format!("the person says: {}", words.trim());
                    return Answer::No {
                        reason: Some(reason),
                    };
                }
                _ => self
                    .screen
                    .say("y, a or n; `n because …` tells the model why"),
            }
        }
    }
}
