//! Questions of agents, shown as they come, whatever the driver of the session waits for.
//!
//! Each question waits in a task of its own, so that one that is answered elsewhere disappears at
//! once, whatever stands before it. The surface shows them in order.

use std::sync::Arc;

use codespar_protocol::Answer;
use codespar_runtime::Project;
use codespar_tui::QuestionReply;
use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{parts, person::PendingQuestion, view::SessionView};

/// The turn under way. A question that is answered with an interruption stops it.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<Option<CancellationToken>>>);

impl Turns {
    pub(super) fn begin(&self, cancel: CancellationToken) {
        *self.0.lock() = Some(cancel);
    }

    pub(super) fn end(&self) {
        *self.0.lock() = None;
    }

    fn stop(&self) {
        if let Some(cancel) = &*self.0.lock() {
            cancel.cancel();
        }
    }
}

/// Hands all of them to the surface, which shows them one after the other.
pub(super) fn answer_all(
    mut asked: mpsc::Receiver<PendingQuestion>,
    view: Arc<dyn SessionView>,
    project: Arc<Project>,
    turns: Turns,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Some(pending) = asked.recv().await {
            let (view, project, turns) = (view.clone(), project.clone(), turns.clone());
            tokio::spawn(async move { answer(pending, &*view, &project, &turns).await });
        }
    })
}

/// Rules that are to be kept are written down before the answer is given. If they cannot be, the
/// answer counts for this session.
async fn answer(
    mut pending: PendingQuestion,
    view: &dyn SessionView,
    project: &Project,
    turns: &Turns,
) {
    let from = pending.from.as_ref().map(ToString::to_string);
    let request = pending.request.clone();
    let reply = tokio::select! {
        reply = view.ask(request, from) => reply,
        () = pending.is_settled() => return,
    };
    match reply {
        QuestionReply::Answer(answer) => {
            if let Some(rules) = pending.request.rules_to_keep(&answer) {
                view.say(&parts::keep_rules(project, rules));
            }
            pending.give(answer);
        }
        // The rules hold in this process, and are not written down.
        QuestionReply::ForSession => pending.give(Answer::Always),
        QuestionReply::ForSessionBy(rules) => pending.give(Answer::AlwaysBy { rules }),
        QuestionReply::Interrupted => {
            turns.stop();
            pending.give(Answer::No {
                reason: Some("the user interrupted".to_owned()),
            });
        }
    }
}
