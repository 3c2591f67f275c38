//! Joining two commits without a work tree, and merging a pull request with it.
//!
//! ```text
//! merged on record with this head            return the recorded merge commit
//! merge line of this head in the base        record it, return it (the process ended in between)
//! head already in the base                   record the base's commit as the merge
//! otherwise                                  merge, move the base, record
//! ```
//!
//! The base may move while a merge is made; then it is made again on the new base, a few times. The
//! head may not: the order names it. Conflicts are found before anything is written to the
//! repository.

use std::{collections::HashMap, sync::Arc};

use codespar_git::MergedTree;
use codespar_protocol::{CommitId, MergeStrategy, PullRequest, PullRequestState};
use codespar_store::PullChange;

use super::{
    LocalForge, failed,
    git::{Apart, Place, Run},
    message::{MERGE_LINE, merge_line, with_line},
};
use crate::{ForgeError, MergeOrder, Mergeability};

/// How far back the base is looked through for a merge that was not recorded. Of commits with such
/// a line, along first parents.
const LOOK_BACK: &str = "--max-count=1000";

/// How often a base that moves under a merge is followed. Each attempt is a whole merge. The last
/// one reports the move as an error.
const ATTEMPTS: usize = 5;

/// Merges by the line that each has in its message. If a line occurs twice, the newest commit has
/// it.
pub(super) type Landed = HashMap<String, CommitId>;

/// What joining two commits gives. `Tree` is the id of the merged tree, which is written where
/// `git` points to.
pub(super) enum Joined {
    Tree(String),
    /// The files that both sides changed in the same places.
    Conflict(Vec<String>),
    /// They have nothing in common.
    Unrelated,
}

impl LocalForge {
    /// Needs no work tree and no index.
    pub(super) async fn join(
        &self,
        git: &Place,
        ours: &CommitId,
        theirs: &CommitId,
    ) -> Result<Joined, ForgeError> {
        let args = MergedTree::arguments(&ours.0, &theirs.0);
        let ran = git.run(Run::new(args)).await?;
        match MergedTree::read(ran.code, &ran.out) {
            Some(merged) if ran.code == Some(0) => Ok(Joined::Tree(merged.tree)),
            Some(merged) => Ok(Joined::Conflict(merged.conflicts)),
            _ if ran.message.contains("unrelated histories") => Ok(Joined::Unrelated),
            _ => Err(ran.failure("merge the branches")),
        }
    }

    /// Whether `other` contains the commit in its history. A commit contains itself.
    pub(super) async fn is_within(
        &self,
        commit: &CommitId,
        other: &CommitId,
    ) -> Result<bool, ForgeError> {
        let run = Run::new(["merge-base", "--is-ancestor", &commit.0, &other.0]);
        let ran = self.git.run(run).await?;
        match ran.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(ran.failure("compare the branches")),
        }
    }

    /// The answer for two commits stays the same, so it is kept. Blocked if the pull request is not
    /// open or a branch is gone. Drafts and checks are not considered here.
    pub(super) async fn can_merge(&self, pull: &PullRequest) -> Result<Mergeability, ForgeError> {
        let blocked = |reason: String| Ok(Mergeability::Blocked(reason));
        if pull.state != PullRequestState::Open {
            return blocked(format!("#{} is {}", pull.number, pull.state));
        }
        if self.branch_head(&pull.head).await?.is_none() {
            return blocked(format!("its branch {} is gone", pull.head));
        }
        let Some(base) = self.branch_head(&pull.base).await? else {
            return blocked(format!("its base {} is gone", pull.base));
        };
        let pair = (pull.head_commit.clone(), base);
        if let Some((asked, known)) = self.merges.lock().get(&pull.number)
            && *asked == pair
        {
            return Ok(known.clone());
        }
        // The merged tree is of no use to anybody: it stays out of the repository.
        let apart = Apart::open(&self.git, self.repository.location()).await?;
        let answer = match self.join(&apart.git, &pair.1, &pair.0).await? {
            Joined::Tree(_) => Mergeability::Clean,
            Joined::Conflict(files) => Mergeability::Conflict(files),
            Joined::Unrelated => Mergeability::Blocked(unrelated(pull)),
        };
        let mut merges = self.merges.lock();
        merges.insert(pull.number, (pair, answer.clone()));
        Ok(answer)
    }

    /// The base moves in the step before the record is written. If writing the record fails, the
    /// merge stands and the error is returned; a further call finds the merge by its line.
    pub(super) async fn merge_pull(
        &self,
        number: u64,
        order: &MergeOrder,
    ) -> Result<CommitId, ForgeError> {
        let pull = self.fresh_pull(number).await?;
        if pull.state == PullRequestState::Merged {
            let head = &pull.head_commit;
            return match &pull.merge_commit {
                Some(commit) if *head == order.expected_head => Ok(commit.clone()),
                _ => Err(head_moved(&pull, head, order)),
            };
        }
        if let Some(commit) = self.merged_before(&pull, &order.expected_head).await? {
            return self.note_merged(&pull, &order.expected_head, commit).await;
        }
        self.check_order(&pull, order).await?;
        for _ in 1..ATTEMPTS {
            match self.merge_once(&pull, order).await {
                // Only the head is pinned: a base that moved is merged into where it is now.
                Err(ForgeError::Moved { branch, .. }) if branch == pull.base => {}
                outcome => {
                    return self
                        .note_merged(&pull, &order.expected_head, outcome?)
                        .await;
                }
            }
        }
        let commit = self.merge_once(&pull, order).await?;
        self.note_merged(&pull, &order.expected_head, commit).await
    }

    /// Closed pull requests and drafts are refused with what to do about it.
    async fn check_order(&self, pull: &PullRequest, order: &MergeOrder) -> Result<(), ForgeError> {
        let number = pull.number;
        let refuse = |reason: String| Err(ForgeError::Refused(reason));
        if pull.state == PullRequestState::Closed {
            return refuse(format!("#{number} is closed; open it again to merge it"));
        }
        if pull.draft {
            return refuse(format!(
                "#{number} is a draft; mark it as ready to merge it"
            ));
        }
        let head = self.known_head(&pull.head).await?;
        if head != order.expected_head {
            return Err(head_moved(pull, &head, order));
        }
        Ok(())
    }

    /// The merge that a crash kept from being recorded.
    pub(super) async fn merged_before(
        &self,
        pull: &PullRequest,
        head: &CommitId,
    ) -> Result<Option<CommitId>, ForgeError> {
        let Some(base) = self.branch_head(&pull.base).await? else {
            return Ok(None);
        };
        let merges = self.merges_in(&base).await?;
        Ok(merges.get(&merge_line(pull.number, head)).cloned())
    }

    /// The newest merges of ours in a base, by their lines. It is read once for each base. The
    /// newest 1,000 along first parents, which is where merges into this base are. The result is
    /// kept for one base, the last one asked for.
    async fn merges_in(&self, base: &CommitId) -> Result<Arc<Landed>, ForgeError> {
        if let Some((known, merges)) = &*self.landed.lock()
            && known == base
        {
            return Ok(merges.clone());
        }
        let grep = format!("--grep={MERGE_LINE}");
        let args = [
            "log",
            "--first-parent",
            "--fixed-strings",
            "--no-show-signature",
            "--no-color",
            LOOK_BACK,
            &grep,
            "--format=%H%x00%B%x00",
            &base.0,
        ];
        let ran = self.git.run(Run::new(args)).await?;
        let text = String::from_utf8_lossy(&ran.checked("read the history")?.out).into_owned();
        let fields: Vec<&str> = text.split('\0').collect();
        let mut merges = HashMap::new();
        for commit in fields.chunks_exact(2) {
            let [id, message] = commit else { continue };
            for line in message.lines().filter(|line| line.starts_with(MERGE_LINE)) {
                let id = CommitId(id.trim().to_owned());
                merges.entry(line.trim_end().to_owned()).or_insert(id);
            }
        }
        let merges = Arc::new(merges);
        *self.landed.lock() = Some((base.clone(), merges.clone()));
        Ok(merges)
    }

    /// Merges onto the base as it is now, or returns [`ForgeError::Moved`] for the base if that has
    /// changed by the time it is to move. All strategies begin with joining the two commits: a
    /// conflict is found before any commit is made.
    ///
    /// The new commits are checked for missing objects before the branch leads to them.
    async fn merge_once(
        &self,
        pull: &PullRequest,
        order: &MergeOrder,
    ) -> Result<CommitId, ForgeError> {
        let base = self.known_head(&pull.base).await?;
        let head = &order.expected_head;
        if self.is_within(head, &base).await? {
            return Ok(base);
        }
        let apart = Apart::open(&self.git, self.repository.location()).await?;
        let git = &apart.git;
        let tree = match self.join(git, &base, head).await? {
            Joined::Tree(tree) => tree,
            Joined::Conflict(files) => return Err(ForgeError::Conflict(files)),
            Joined::Unrelated => return Err(ForgeError::Refused(unrelated(pull))),
        };
        let merged = match order.strategy {
            MergeStrategy::Merge => {
                let message = self.merge_message(pull, order);
                self.joining(git, &tree, &[&base, head], &message).await?
            }
            MergeStrategy::Squash => {
                let message = self.squash_message(pull, order);
                self.joining(git, &tree, &[&base], &message).await?
            }
            MergeStrategy::Rebase => self.replay(git, pull, &base, head, &tree).await?,
        };
        let kept = apart.keep().await?;
        self.check_whole(&merged, &[&base, head]).await?;
        self.land(&pull.base, &base, &merged).await?;
        drop(kept);
        Ok(merged)
    }

    /// The forge's identity is author and committer of the new commit.
    async fn joining(
        &self,
        git: &Place,
        tree: &str,
        parents: &[&CommitId],
        message: &str,
    ) -> Result<CommitId, ForgeError> {
        let mut args = vec!["commit-tree", tree, "-F", "-"];
        for parent in parents {
            args.extend(["-p", &parent.0]);
        }
        let run = Run::new(args)
            .author(&self.who)
            .committer(&self.who)
            .input(message);
        self.commit_tree(git, "make the merge commit", run).await
    }

    fn merge_message(&self, pull: &PullRequest, order: &MergeOrder) -> String {
        let first = match &order.title {
            Some(title) => title.clone(),
            None => format!("Merge pull request #{} from {}", pull.number, pull.head),
        };
        let message = format!("{first}\n\n{}", pull.title);
        with_line(&message, &merge_line(pull.number, &order.expected_head))
    }

    fn squash_message(&self, pull: &PullRequest, order: &MergeOrder) -> String {
        let first = match &order.title {
            Some(title) => title.clone(),
            None => format!("{} (#{})", pull.title, pull.number),
        };
        with_line(&first, &merge_line(pull.number, &order.expected_head))
    }

    /// The head is kept by a reference first, since its branch is usually deleted next and the diff
    /// of a merged pull request is still computed from it.
    pub(super) async fn note_merged(
        &self,
        pull: &PullRequest,
        head: &CommitId,
        commit: CommitId,
    ) -> Result<CommitId, ForgeError> {
        let change = PullChange {
            state: Some(PullRequestState::Merged),
            head_commit: Some(head.clone()),
            merge_commit: Some(commit.clone()),
            ..PullChange::default()
        };
        self.keep_head(pull.number, head).await?;
        let noted = self.store.change_pull(&self.key, pull.number, change).await;
        noted.map_err(failed)?;
        Ok(commit)
    }
}

fn unrelated(pull: &PullRequest) -> String {
    format!("{} and {} have no commit in common", pull.head, pull.base)
}

fn head_moved(pull: &PullRequest, found: &CommitId, order: &MergeOrder) -> ForgeError {
    ForgeError::Moved {
        branch: pull.head.clone(),
        found: found.clone(),
        expected: order.expected_head.clone(),
    }
}
