//! Who is asked when the rules leave a call to a person.

use async_trait::async_trait;
use codespar_protocol::{Answer, Question};

/// Someone who can say yes or no. On `Answer::Always` the one who answers also keeps the rules
/// for later sessions; the running agent adds them to its own.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks and waits.
    async fn ask(&self, question: Question) -> Answer;
}

/// Headless: there is nobody to ask, so the answer is no, and says how to allow it.
pub struct NobodyThere;

#[async_trait]
impl Approver for NobodyThere {
    async fn ask(&self, question: Question) -> Answer {
        let advice = match question.suggested_rules.as_slice() {
            [] => "nobody is there to answer in a headless run".to_owned(),
            rules => format!(
                "nobody is there to answer in a headless run; `--allowedTools \"{}\"` would allow it",
                rules.join(",")
            ),
        };
        Answer::No {
            reason: Some(advice),
        }
    }
}
