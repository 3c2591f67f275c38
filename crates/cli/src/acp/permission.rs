//! A permission question as a request to the client, and the option that was chosen as an answer.
//!
//! The answer goes the way of every answer: the call is decided on again, and a deny rule holds
//! whatever the client says.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionResponse,
};
use codespar_protocol::{Answer, Confinement, PermissionRequest};
use codespar_tui::QuestionReply;

use crate::printer;

const ONCE: &str = "once";
const SESSION: &str = "session";
const ALWAYS: &str = "always";
const NO: &str = "no";

/// The narrow answers first. Rules are named, so that the user sees what would be allowed.
pub(super) fn options(asked: &PermissionRequest) -> Vec<PermissionOption> {
    let once = match asked.confinement {
        Some(Confinement::Unavailable | Confinement::SwitchedOff) => "Allow, without a sandbox",
        _ => "Allow",
    };
    let mut options = vec![PermissionOption::new(
        ONCE,
        once,
        PermissionOptionKind::AllowOnce,
    )];
    if !asked.suggested_rules.is_empty() {
        let rules = printer::plain(&asked.suggested_rules.join(", ")).into_owned();
        let kind = PermissionOptionKind::AllowAlways;
        let session = format!("Allow in this session: {rules}");
        options.push(PermissionOption::new(SESSION, session, kind));
        let always = format!("Always allow in this project: {rules}");
        options.push(PermissionOption::new(ALWAYS, always, kind));
    }
    let kind = PermissionOptionKind::RejectOnce;
    options.push(PermissionOption::new(NO, "Reject", kind));
    options
}

/// An option that was not offered is a no.
pub(super) fn reply(
    asked: &PermissionRequest,
    response: &RequestPermissionResponse,
) -> QuestionReply {
    let RequestPermissionOutcome::Selected(selected) = &response.outcome else {
        return QuestionReply::Interrupted;
    };
    let has_rules = !asked.suggested_rules.is_empty();
    match &*selected.option_id.0 {
        ONCE => QuestionReply::Answer(Answer::Once),
        SESSION if has_rules => QuestionReply::ForSession,
        ALWAYS if has_rules => QuestionReply::Answer(Answer::Always),
        NO => QuestionReply::Answer(Answer::No { reason: None }),
        _ => QuestionReply::Answer(Answer::No {
            reason: Some("the editor chose an option that was not offered".to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::SelectedPermissionOutcome;
    use codespar_protocol::ToolUseId;
    use serde_json::Value;

    use super::*;

    fn asked(rules: &[&str]) -> PermissionRequest {
        PermissionRequest {
            tool_use_id: ToolUseId("t".into()),
            tool: "Bash".into(),
            summary: "ls".into(),
            input: Value::Null,
            preview: None,
            change: None,
            confinement: None,
            reason: "r".into(),
            suggested_rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
        }
    }

    #[test]
    fn an_option_that_was_not_offered_allows_nothing() {
        let chosen = |asked: &PermissionRequest, id: &str| {
            let outcome = SelectedPermissionOutcome::new(id.to_owned());
            let outcome = RequestPermissionOutcome::Selected(outcome);
            reply(asked, &RequestPermissionResponse::new(outcome))
        };
        let with = asked(&["Bash(ls)"]);
        assert_eq!(options(&with).len(), 4);
        assert_eq!(chosen(&with, "session"), QuestionReply::ForSession);
        let without = asked(&[]);
        assert_eq!(options(&without).len(), 2);
        for id in ["session", "always", "allow_always", ""] {
            let reply = chosen(&without, id);
            assert!(
                matches!(reply, QuestionReply::Answer(Answer::No { .. })),
                "{id}: {reply:?}"
            );
        }
    }
}
