//! A GitHub of one repository, over real HTTP and a real git repository.
//!
//! ```no_run
//! # async fn show() -> std::io::Result<()> {
//! use codespar_testkit::github::{FakeGitHub, GitHubFault, GitHubOptions};
//!
//! // A bare repository that the test has made with the git command.
//! let github = FakeGitHub::start("shop.git", GitHubOptions::default()).await?;
//! github.inject(GitHubFault::cut_after("POST", "/pulls"));
//! // Run something against github.base_url with the token `alice-token`, then look:
//! for request in github.requests() {
//!     println!("{} {} {}", request.method, request.path, request.status);
//! }
//! # Ok(()) }
//! ```
//!
//! It answers as GitHub does: status codes, headers, pages with `Link`, `ETag` and 304, limits,
//! validation errors, `mergeable` that is not known at first. What tests set up (checks, levels,
//! rules, faults) is set through [`FakeGitHub`]. Cloning and fetching go to `clone_url` with a
//! token as the password.
//!
//! Objects, branches, merges and diffs are real: they are made with the git command in the bare
//! repository, so what the program under test pushes and what the API tells of it always agree.
//! Everything else (pull requests, reviews, checks) is kept in memory and ends with the fake.
//!
//! ```text
//! GET    /user, /search/code
//! GET    /repos/O/N                     with what the token may do
//! GET    …/git/ref/heads/B, …/git/commits/S, …/git/trees/S[?recursive=1], …/git/blobs/S
//! POST   …/git/blobs, …/git/trees, …/git/commits, …/git/refs
//! PATCH  …/git/refs/heads/B             DELETE …/git/refs/heads/B
//! GET    …/commits, …/commits/S/check-runs, …/commits/S/status, …/collaborators/U/permission
//! GET    …/pulls, …/pulls/N, …/pulls/N/files, …/pulls/N/reviews, …/pulls/N/comments
//! POST   …/pulls, …/pulls/N/reviews     PATCH …/pulls/N     PUT …/pulls/N/merge
//! GET    …/issues/N, …/issues/N/comments, …/issues/comments[/ID], …/pulls/N/reviews/ID/comments
//! POST   …/issues/N/comments, …/issues/N/reactions, …/issues/comments/ID/reactions
//! PATCH  …/issues/comments/ID           POST …/check-runs (an app), …/statuses/S
//! GET    /app, /app/hook/deliveries, …/installation                signed by the app's key
//! POST   /app/installations/77/access_tokens, /app/hook/deliveries/ID/attempts
//! POST   /graphql                       ready for review, back to draft, viewer
//!        /O/N.git/…                     git over HTTP, for cloning and pushing; other repositories too
//! ```
//!
//! Anything else is 404. There is no delay and no chance: the same requests get the same answers,
//! apart from times and the ids of commits.

mod answer;
mod apps;
mod checks;
mod commits;
mod conversation;
mod data;
mod events;
mod fault;
mod git;
mod graphql;
mod merge;
mod pulls;
mod record;
mod reviews;
mod room;
mod route;
mod serve;
mod shapes;
mod smart_http;
mod state;

use std::{io, net::Ipv4Addr, path::Path, sync::Arc, time::Duration};

use tokio::{net::TcpListener, sync::oneshot};

pub use apps::{APP_ID, APP_KEY_PKCS1, APP_KEY_PKCS8, app_claims};
pub use conversation::GitHubComment;
pub use events::{HookEvent, hook_signature, user_id};
pub use fault::{FaultKind, GitHubFault};
pub use record::RecordedRequest;
pub use state::{BranchRule, Level, MergeMethods, TokenKind, User};

use git::Git;
use room::{OtherRepository, Room};
use state::State;

/// What the fake is at its start.
#[derive(Debug, Clone)]
pub struct GitHubOptions {
    /// Whose repository.
    pub owner: String,
    pub name: String,
    /// What changes are for.
    pub default_branch: String,
    /// Where the API is: empty as on api.github.com, `/api/v3` as on Enterprise. GraphQL follows
    /// it: `/graphql`, or `/api/graphql`.
    pub api_path: String,
    /// People and their tokens. A token that belongs to nobody here is refused with 401.
    pub users: Vec<User>,
}

impl Default for GitHubOptions {
    /// `acme/shop` with `alice` (admin), `bob` (write) and `carol` (read); the token of each is
    /// the name with `-token`.
    fn default() -> Self {
        Self {
            owner: "acme".to_owned(),
            name: "shop".to_owned(),
            default_branch: "main".to_owned(),
            api_path: String::new(),
            users: vec![
                User::person("alice", Level::Admin),
                User::person("bob", Level::Write),
                User::person("carol", Level::Read),
            ],
        }
    }
}

/// Who may clone a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody, without a token.
    Public,
    /// Whoever has a token.
    Private,
}

/// A running fake; dropping it stops it.
pub struct FakeGitHub {
    /// The address of the API, without a slash at its end.
    pub base_url: String,
    /// Where git clones from, without a token.
    pub clone_url: String,
    room: Arc<Room>,
    stop: Option<oneshot::Sender<()>>,
}

impl FakeGitHub {
    /// Serves a bare repository on the current Tokio runtime. The repository is used in place.
    /// Fails if the directory is not a git repository.
    pub async fn start(repo_dir: impl AsRef<Path>, options: GitHubOptions) -> io::Result<Self> {
        let git = Git::new(repo_dir.as_ref())?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let host = format!("http://{}", listener.local_addr()?);
        let base_url = format!("{host}{}", options.api_path);
        let clone_url = format!("{host}/{}/{}.git", options.owner, options.name);
        let room = Arc::new(Room::new(git, options, host));
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(serve::accept(listener, Arc::clone(&room), stopped));
        Ok(Self {
            base_url,
            clone_url,
            room,
            stop: Some(stop),
        })
    }

    /// Serves another bare repository, for cloning alone.
    pub fn add_repository(
        &self,
        name: &str,
        repo_dir: impl AsRef<Path>,
        visibility: Visibility,
    ) -> io::Result<()> {
        let other = OtherRepository {
            name: name.to_owned(),
            git: Git::new(repo_dir.as_ref())?,
            visibility,
        };
        self.room.others.lock().push(other);
        Ok(())
    }

    /// The clone address with a token in it.
    pub fn clone_url_with(&self, token: &str) -> String {
        self.clone_url
            .replacen("http://", &format!("http://x-access-token:{token}@"), 1)
    }

    /// Under the lock that requests are answered under: a change falls between two of them.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.room.state.lock())
    }

    /// The requests so far, in order. Those that met a fault are among them; one that was cut
    /// before it happened has status 0.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.room.record.lock().clone()
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.room.record.lock().clear();
    }

    /// Something goes wrong with the next request that fits. Each fault happens once. Of several
    /// that fit, the one that was added first.
    pub fn inject(&self, fault: GitHubFault) {
        self.room.faults.lock().push(fault);
    }

    /// How many faults have not happened yet.
    pub fn faults_left(&self) -> usize {
        self.room.faults.lock().len()
    }

    /// What someone may do. A name that is not known becomes a new user with a token of its own.
    pub fn set_level(&self, login: &str, level: Level) {
        self.change(|state| state.set_level(login, level));
    }

    /// Adds a check run to a commit, or replaces the one of this name. `conclusion` is `None` while
    /// it runs. The commit need not exist yet.
    pub fn set_check_run(&self, commit: &str, name: &str, conclusion: Option<&str>) {
        self.change(|state| state.set_check_run(commit, name, conclusion));
    }

    /// What a check run printed.
    pub fn set_check_output(&self, commit: &str, name: &str, text: &str) {
        self.change(|state| state.set_check_output(commit, name, text));
    }

    /// Adds a status to a commit: `success`, `failure`, `error` or `pending`.
    pub fn set_status(&self, commit: &str, context: &str, status: &str) {
        self.change(|state| state.set_status(commit, context, status));
    }

    /// A rule for merging into a branch. One rule for each branch; a new one replaces it.
    pub fn set_rule(&self, branch: &str, rule: BranchRule) {
        self.change(|state| state.rules.insert(branch.to_owned(), rule));
    }

    /// The ways of merging that the repository allows.
    pub fn set_merge_methods(&self, methods: MergeMethods) {
        self.change(|state| state.merge_methods = methods);
    }

    /// Trees with more entries are cut off.
    pub fn set_tree_limit(&self, entries: usize) {
        self.change(|state| state.tree_limit = entries);
    }

    /// Diffs with more bytes are not given in one piece.
    pub fn set_diff_limit(&self, bytes: usize) {
        self.change(|state| state.diff_limit = bytes);
    }

    /// How often `mergeable` is not known before it is: 1 by default, counted anew for each pair of
    /// head and base. The answer to opening or changing a pull request counts as well.
    pub fn set_mergeable_delay(&self, times: u32) {
        self.change(|state| state.mergeable_delay = times);
    }

    /// The repository had this name before; requests to it are sent on.
    pub fn set_former_name(&self, name: &str) {
        self.change(|state| state.former_name = Some(name.to_owned()));
    }

    /// The plan has no drafts.
    pub fn refuse_drafts(&self) {
        self.change(|state| state.drafts_refused = true);
    }

    /// Every answer is JSON, also where a diff or the bytes of a file are asked for.
    pub fn answer_json_only(&self) {
        self.change(|state| state.json_only = true);
    }

    /// No token may read checks or statuses: 403 as for a fine-grained one, 404 as for a classic
    /// one.
    pub fn refuse_checks(&self, status: u16) {
        self.change(|state| state.checks_refused = Some(status));
    }

    /// So many requests are left until the limit is lifted. Afterwards the usual 5000 an hour are
    /// back.
    pub fn limit_requests(&self, left: u64, lifted_in: Duration) {
        self.change(|state| state.limit.set(left, lifted_in));
    }

    /// Someone opens a pull request, in no time; `None` if a branch is missing. Without the checks
    /// and the record of a request.
    pub fn open_pull(&self, login: &str, head: &str, base: &str) -> Option<u64> {
        let head_sha = self.room.git.branch(head)?;
        let base_sha = self.room.git.branch(base)?;
        Some(self.change(|state| {
            let pull = state.new_pull(login, (head, head_sha), (base, base_sha));
            let number = pull.number;
            state.pulls.push(pull);
            number
        }))
    }

    /// Someone writes below a pull request.
    pub fn comment(&self, number: u64, login: &str, body: &str) {
        self.say(number, login, body);
    }

    /// Someone sets a pull request aside.
    pub fn close(&self, number: u64) {
        self.change(|state| state.close(number));
    }

    /// How many pull requests there are.
    pub fn pull_count(&self) -> usize {
        self.change(|state| state.pulls.len())
    }

    /// How many reviews a pull request has.
    pub fn review_count(&self, number: u64) -> usize {
        self.change(|state| {
            state
                .reviews
                .iter()
                .filter(|review| review.pull == number)
                .count()
        })
    }
}

impl Drop for FakeGitHub {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}
