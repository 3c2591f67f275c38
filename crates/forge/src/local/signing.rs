//! Making commit objects, signed where the user's git settings ask for that (`commit.gpgsign`).

use codespar_protocol::CommitId;

use super::{
    LocalForge,
    git::{Place, Run},
};
use crate::{ForgeError, Signature};

/// Of what git and the program that signs say.
const MOST_REASON: usize = 300;

impl LocalForge {
    /// Runs a `commit-tree`. A signature that cannot be made is no reason to lose the work: the
    /// commit is made without it, and why is kept for [`LocalForge::signature_of`].
    pub(super) async fn commit_tree(
        &self,
        git: &Place,
        what: &str,
        run: Run,
    ) -> Result<CommitId, ForgeError> {
        let Some(signing) = &self.signing else {
            return Ok(CommitId(git.text(what, run).await?));
        };
        let reason = match git.run(run.clone().signed(signing)).await {
            Ok(ran) if ran.code == Some(0) => return Ok(CommitId(ran.text())),
            Ok(ran) => ran.failure("sign the commit").to_string(),
            Err(error) => error.to_string(),
        };
        let commit = CommitId(git.text(what, run).await?);
        let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.chars().take(MOST_REASON).collect();
        self.unsigned.lock().insert(commit.clone(), line);
        Ok(commit)
    }

    /// By the commit itself: a run that was resumed may not have made it.
    pub(super) async fn signature_of(&self, commit: &CommitId) -> Result<Signature, ForgeError> {
        if self.signing.is_none() {
            return Ok(Signature::NotWanted);
        }
        let run = Run::new(["cat-file", "commit", &commit.0]);
        let object = self.git.run(run).await?.checked("read the commit")?.out;
        let mut head = object.split(|byte| *byte == b'\n');
        let is_signed = head
            .by_ref()
            .take_while(|line| !line.is_empty())
            .any(|line| line.starts_with(b"gpgsig"));
        if is_signed {
            return Ok(Signature::Made);
        }
        let reason = self.unsigned.lock().get(commit).cloned();
        Ok(Signature::Missing(reason.unwrap_or_else(|| {
            "it could not be signed when it was made".to_owned()
        })))
    }
}
