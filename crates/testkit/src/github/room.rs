//! What all connections share, and the way of a request through it.
//!
//! A request takes the fault that waits for it, is answered (or not, as the fault has it), and is
//! put on record with the answer that was made, also if the client does not get it.

use parking_lot::Mutex;
use serde_json::Value;

use super::{
    GitHubOptions, Visibility,
    answer::Answer,
    fault::{FaultKind, GitHubFault},
    git::Git,
    record::RecordedRequest,
    route::{self, Asked},
    state::State,
};
use crate::http::Request;

/// A repository that can be cloned, and nothing else.
pub(super) struct OtherRepository {
    /// `owner/name`.
    pub(super) name: String,
    pub(super) git: Git,
    pub(super) visibility: Visibility,
}

pub(super) struct Room {
    pub(super) git: Git,
    pub(super) others: Mutex<Vec<OtherRepository>>,
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) default_branch: String,
    pub(super) api_path: String,
    /// `http://127.0.0.1:port`.
    pub(super) host: String,
    pub(super) state: Mutex<State>,
    pub(super) faults: Mutex<Vec<GitHubFault>>,
    pub(super) record: Mutex<Vec<RecordedRequest>>,
}

impl Room {
    pub(super) fn new(git: Git, options: GitHubOptions, host: String) -> Self {
        Self {
            git,
            others: Mutex::default(),
            owner: options.owner,
            name: options.name,
            default_branch: options.default_branch,
            api_path: options.api_path,
            host,
            state: Mutex::new(State::new(options.users)),
            faults: Mutex::default(),
            record: Mutex::default(),
        }
    }

    /// `None` cuts the connection.
    pub(super) fn receive(&self, request: &Request) -> Option<Answer> {
        let asked = Asked::read(request, &self.host);
        let fault = self.take_fault(&asked);
        let answer = match &fault {
            Some(FaultKind::SignInPage) => Answer::bytes(
                200,
                "text/html; charset=utf-8",
                b"<h1>Sign in</h1>".to_vec(),
            ),
            Some(FaultKind::Status(status)) => Answer::error(*status, "Server Error"),
            Some(FaultKind::SecondaryLimit { retry_after }) => secondary_limit(*retry_after),
            Some(FaultKind::PrimaryLimit { lifted_in }) => {
                self.state.lock().limit.set(0, *lifted_in);
                route::answer(self, &asked)
            }
            Some(FaultKind::CutBefore) => Answer::empty(0),
            Some(FaultKind::CutAfter | FaultKind::BadGatewayAfter) | None => {
                route::answer(self, &asked)
            }
        };
        self.remember(&asked, &answer);
        match fault {
            Some(FaultKind::CutBefore | FaultKind::CutAfter) => None,
            Some(FaultKind::BadGatewayAfter) => Some(Answer::bytes(
                502,
                "text/html",
                b"<h1>Bad Gateway</h1>".to_vec(),
            )),
            _ => Some(answer),
        }
    }

    /// The oldest that fits, which is used up.
    fn take_fault(&self, asked: &Asked) -> Option<FaultKind> {
        let mut faults = self.faults.lock();
        let fits = faults
            .iter()
            .position(|fault| fault.fits(&asked.method, &asked.path));
        fits.map(|index| faults.remove(index).kind)
    }

    fn remember(&self, asked: &Asked, answer: &Answer) {
        self.record.lock().push(RecordedRequest {
            method: asked.method.clone(),
            path: asked.path.clone(),
            query: asked.query.clone(),
            headers: asked.headers.0.clone(),
            body: asked.json.clone(),
            status: answer.status,
            answer: serde_json::from_slice(&answer.body).unwrap_or(Value::Null),
        });
    }

    /// An address of the API.
    pub(super) fn api(&self, path: &str) -> String {
        format!(
            "{}{}/repos/{}/{}{path}",
            self.host, self.api_path, self.owner, self.name
        )
    }

    /// A page for people.
    pub(super) fn page(&self, path: &str) -> String {
        format!("{}/{}/{}{path}", self.host, self.owner, self.name)
    }
}

fn secondary_limit(retry_after: Option<u64>) -> Answer {
    let answer = Answer::error(
        403,
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    );
    match retry_after {
        Some(seconds) => answer.header("Retry-After", seconds.to_string()),
        None => answer,
    }
}
