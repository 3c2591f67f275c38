//! The person at the terminal, whom the dev agent may ask one question.

use std::io::{BufRead, IsTerminal};

use async_trait::async_trait;
use codespar_dev::HumanInput;

use super::Progress;
use crate::{printer, style};

/// Whoever sits at this terminal.
pub(crate) struct AtTerminal(Progress);

impl AtTerminal {
    /// `None` where nobody can answer: in a pipe, or in a script.
    pub(crate) fn find(progress: &Progress) -> Option<Self> {
        let both = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        both.then(|| Self(progress.clone()))
    }
}

#[async_trait]
impl HumanInput for AtTerminal {
    async fn answer(&self, question: &str) -> Option<String> {
        self.0.line(&format!("❓ {}", question));
        self.0.rest();
        let prompt = style::faint("your answer, or nothing to stop");
        // Nobody reading is nobody answering.
        printer::out(format_args!("{prompt} › ")).ok()?;
        let read = || {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).ok()?;
            Some(line)
        };
        let line = tokio::task::spawn_blocking(read).await.ok()??;
        let line = line.trim().to_owned();
        (!line.is_empty()).then_some(line)
    }
}
