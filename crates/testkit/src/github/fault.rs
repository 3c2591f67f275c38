//! Things that go wrong on purpose.
//!
//! The two cuts are what retries must tell apart: after one of them nothing has happened, after the
//! other the commit, the pull request or the merge is there, and a client that simply repeats makes
//! a second one. It cannot know which it was without looking.

use std::time::Duration;

/// What goes wrong with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// An error of the server; nothing happens.
    Status(u16),
    /// Too many requests in a short time.
    SecondaryLimit {
        /// The header `retry-after`, in seconds; left out when absent.
        retry_after: Option<u64>,
    },
    /// The hour's requests are used up.
    PrimaryLimit {
        /// When they come back.
        lifted_in: Duration,
    },
    /// The connection is cut; nothing happens.
    CutBefore,
    /// It happens, and then the connection is cut.
    CutAfter,
    /// It happens, and then the server says 502.
    BadGatewayAfter,
    /// Somebody in between answers with a page, as success; nothing happens.
    SignInPage,
}

/// A fault that waits for its request. It is used up by the first request that fits.
/// `FakeGitHub::faults_left` shows whether it was met.
#[derive(Debug, Clone)]
pub struct GitHubFault {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) kind: FaultKind,
}

impl GitHubFault {
    /// For the next request with this method whose path ends so. The path is compared without its
    /// query.
    pub fn new(method: &str, path_end: &str, kind: FaultKind) -> Self {
        Self {
            method: method.to_owned(),
            path: path_end.to_owned(),
            kind,
        }
    }

    /// The server answers with this status.
    pub fn status(method: &str, path_end: &str, status: u16) -> Self {
        Self::new(method, path_end, FaultKind::Status(status))
    }

    /// The connection is cut after it has happened.
    pub fn cut_after(method: &str, path_end: &str) -> Self {
        Self::new(method, path_end, FaultKind::CutAfter)
    }

    /// The connection is cut before it happens.
    pub fn cut_before(method: &str, path_end: &str) -> Self {
        Self::new(method, path_end, FaultKind::CutBefore)
    }

    pub(super) fn fits(&self, method: &str, path: &str) -> bool {
        self.method == method && path.ends_with(&self.path)
    }
}
