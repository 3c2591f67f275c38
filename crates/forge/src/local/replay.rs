//! Rebasing without a work tree: each commit's change is joined onto what came before it.
//!
//! `git rebase` needs a work tree, and `git cherry-pick` too. Here each commit's change is merged
//! onto the tree so far; the new commits are made only when all of them fit. Merge commits are left
//! out, which is accepted only if the result equals that of merging everything at once.

use codespar_protocol::{CommitId, PullRequest};

use super::{
    LocalForge,
    git::{Place, Run},
    merge::Joined,
    message::{merge_line, with_line},
};
use crate::{Author, ForgeError};

/// A commit to be made again. Author, date and message are those of the original. The committer is
/// the forge's identity.
struct Replayed {
    tree: String,
    author: Author,
    date: String,
    message: String,
}

impl LocalForge {
    /// The commits of the head that the base has not, again on top of it. `whole` is what merging
    /// them at once gives. Returns the last new commit, or the base itself if it already has every
    /// change. Only the last commit gets the line by which the merge is found again. Conflicts are
    /// reported for the first commit that does not fit, even where a merge at once would succeed.
    pub(super) async fn replay(
        &self,
        git: &Place,
        pull: &PullRequest,
        base: &CommitId,
        head: &CommitId,
        whole: &str,
    ) -> Result<CommitId, ForgeError> {
        let range = format!("{base}..{head}");
        let all = self.commits(&["--topo-order", "--reverse", &range]).await?;
        let plain = self
            .commits(&["--topo-order", "--reverse", "--no-merges", &range])
            .await?;
        let mut replayed: Vec<Replayed> = Vec::new();
        let mut tree = self.tree_of(base).await?;
        for commit in &plain {
            let next = self.onto(git, commit, &tree).await?;
            let idle = next == tree && !self.is_empty(commit).await?;
            // What the base has already is left out; what was empty from the start stays.
            if !idle {
                replayed.push(self.read(commit, next.clone()).await?);
            }
            tree = next;
        }
        if all.len() > plain.len() && tree != whole {
            return Err(ForgeError::Refused(format!(
                "{} has merges that a rebase would lose; merge it by `merge` or `squash`",
                pull.head
            )));
        }
        let mut at = base.clone();
        let last = replayed.len();
        for (place, mut commit) in (1..).zip(replayed) {
            if place == last {
                commit.message = with_line(&commit.message, &merge_line(pull.number, head));
            }
            at = self.make_again(git, &commit, &at).await?;
        }
        Ok(at)
    }

    async fn commits(&self, args: &[&str]) -> Result<Vec<CommitId>, ForgeError> {
        let args = ["rev-list"].iter().chain(args);
        let list = self.git.text("list the commits", Run::new(args)).await?;
        Ok(list.lines().map(|id| CommitId(id.to_owned())).collect())
    }

    /// The tree with one commit's change. What is joined is the commit and another child of its
    /// parent that has the tree: so their common ground is the parent, whatever the history is.
    async fn onto(&self, git: &Place, commit: &CommitId, tree: &str) -> Result<String, ForgeError> {
        let parent = self.git.commit_of(&format!("{commit}^1")).await?;
        let Some(parent) = parent else {
            return Err(ForgeError::Refused(format!(
                "{} begins a history of its own and cannot be rebased; merge it by `merge` or \
                 `squash`",
                commit.short()
            )));
        };
        let run = Run::new(["commit-tree", tree, "-p", &parent.0, "-m", "onto"])
            .author(&self.who)
            .committer(&self.who);
        let sibling = CommitId(git.text("rebase a commit", run).await?);
        match self.join(git, &sibling, commit).await? {
            Joined::Tree(tree) => Ok(tree),
            Joined::Conflict(files) => Err(ForgeError::Conflict(files)),
            Joined::Unrelated => Err(ForgeError::Conflict(Vec::new())),
        }
    }

    async fn tree_of(&self, commit: &CommitId) -> Result<String, ForgeError> {
        let name = format!("{commit}^{{tree}}");
        let run = Run::new(["rev-parse", "--verify", &name]);
        self.git.text("look a tree up", run).await
    }

    /// A commit that changes nothing against its first parent.
    async fn is_empty(&self, commit: &CommitId) -> Result<bool, ForgeError> {
        let parent = CommitId(format!("{commit}^1"));
        Ok(self.tree_of(commit).await? == self.tree_of(&parent).await?)
    }

    /// The mail map is not applied: the author stays as recorded.
    async fn read(&self, commit: &CommitId, tree: String) -> Result<Replayed, ForgeError> {
        let format = "--format=%an%x00%ae%x00%ad%x00%B";
        let args = [
            "log",
            "-1",
            "--no-show-signature",
            "--no-color",
            "--no-mailmap",
            "--date=raw",
            format,
            &commit.0,
        ];
        let text = self.git.text("read a commit", Run::new(args)).await?;
        let mut fields = text.splitn(4, '\0');
        let mut next = || fields.next().unwrap_or_default().to_owned();
        Ok(Replayed {
            tree,
            author: Author {
                name: next(),
                email: next(),
            },
            date: next(),
            message: next(),
        })
    }

    async fn make_again(
        &self,
        git: &Place,
        commit: &Replayed,
        parent: &CommitId,
    ) -> Result<CommitId, ForgeError> {
        let run = Run::new(["commit-tree", &commit.tree, "-p", &parent.0, "-F", "-"])
            .author(&commit.author)
            .env("GIT_AUTHOR_DATE", &commit.date)
            .committer(&self.who)
            .input(format!("{}\n", commit.message.trim_end()));
        self.commit_tree(git, "rebase a commit", run).await
    }
}
