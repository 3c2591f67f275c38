//! What is in the repository: branches, trees, files, and who may do what.
//!
//! Trees and blobs are read through the git data API, by object id. That is exact: no symlink is
//! followed, modes are known, and content comes byte for byte. The id of a commit never changes
//! meaning, so its tree can be kept without ever being checked again.

use std::{collections::VecDeque, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use codespar_protocol::{CommitId, FileMode, Permission, RepoPath};
use parking_lot::Mutex;
use ring::digest;

use super::{
    GitHubForge,
    api::{Answer, Call},
    failure::Failure,
    wire,
};
use crate::{FileAt, ForgeError, TreeEntry};

/// Trees are large and never change; those of the last commits are kept for reading files.
const TREES_KEPT: usize = 2;
/// GitHub refuses longer queries.
const MAX_QUERY_CHARS: usize = 256;
const RAW: &str = "application/vnd.github.raw+json";
const NEEDS: &str = "Contents: read";

/// Whole trees by commit, latest last. The oldest listing goes first, whether or not it was used
/// since.
#[derive(Default)]
pub(super) struct Trees(Mutex<VecDeque<(String, Arc<Vec<wire::Entry>>)>>);

impl Trees {
    fn get(&self, commit: &CommitId) -> Option<Arc<Vec<wire::Entry>>> {
        let trees = self.0.lock();
        let found = trees.iter().find(|(of, _)| *of == commit.0);
        found.map(|(_, tree)| Arc::clone(tree))
    }

    fn put(&self, commit: &CommitId, tree: Arc<Vec<wire::Entry>>) {
        let mut trees = self.0.lock();
        if trees.len() >= TREES_KEPT {
            trees.pop_front();
        }
        trees.push_back((commit.0.clone(), tree));
    }
}

impl GitHubForge {
    /// An app's token has no user; GraphQL still knows its name.
    pub(super) async fn ask_who_we_are(&self) -> Result<String, ForgeError> {
        let call = Call::get(self.url(&["user"])?, "the token's user", "Metadata: read");
        match self.api.send(&call).await {
            Ok(answer) => Ok(answer.read::<wire::User>(&call)?.login),
            Err(Failure::Said(said)) if said.status == 403 => self.viewer().await,
            Err(failure) => Err(failure.explain(&call)),
        }
    }

    /// GitHub answers 404 for a missing branch and for a missing repository. A second request tells
    /// them apart, so that a wrong repository name is an error and not an absent branch.
    pub(super) async fn find_head(&self, branch: &str) -> Result<Option<CommitId>, ForgeError> {
        let parts: Vec<&str> = ["git", "ref", "heads"]
            .into_iter()
            .chain(branch.split('/'))
            .collect();
        let what = format!("branch {branch} of {}", self.full_name());
        let call = Call::get(self.repo_url(&parts)?, what, NEEDS);
        match self.api.send(&call).await {
            Ok(answer) => Ok(Some(CommitId(answer.read::<wire::Ref>(&call)?.object.sha))),
            // A repository that is empty has no branches, and says so in its own way.
            Err(Failure::Said(said)) if said.is(409, "empty") => Ok(None),
            Err(Failure::Said(said)) if said.status == 404 => {
                // It could be the repository that is not there.
                self.repo().await?;
                Ok(None)
            }
            Err(failure) => Err(failure.explain(&call)),
        }
    }

    /// Files only, sorted by path. Submodules and entries with an unknown mode are left out.
    pub(super) async fn read_tree(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, ForgeError> {
        let tree = self.whole_tree(commit).await?;
        let mut files: Vec<TreeEntry> = tree
            .iter()
            .filter_map(|entry| {
                Some(TreeEntry {
                    path: entry.path.clone(),
                    mode: FileMode::from_git(&entry.mode)?,
                    size: entry.size,
                })
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// All entries. What is too large for one answer is walked folder by folder, each of them whole
    /// where it fits. A listing without recursion that is truncated too means a single folder with
    /// too many entries; that is refused. Nothing is kept from a walk that failed.
    async fn whole_tree(&self, commit: &CommitId) -> Result<Arc<Vec<wire::Entry>>, ForgeError> {
        if let Some(tree) = self.trees.get(commit) {
            return Ok(tree);
        }
        let mut all = Vec::new();
        let mut folders = vec![(String::new(), commit.0.clone())];
        while let Some((folder, sha)) = folders.pop() {
            let mut tree = self.one_tree(&sha, commit, Depth::All).await?;
            let too_large = tree.truncated;
            if too_large {
                tree = self.one_tree(&sha, commit, Depth::One).await?;
                if tree.truncated {
                    return Err(ForgeError::Refused(format!(
                        "the folder `{folder}` has more files than GitHub's API lists; use a checkout"
                    )));
                }
            }
            for mut entry in tree.tree {
                if !folder.is_empty() {
                    entry.path = format!("{folder}/{}", entry.path);
                }
                match entry.kind.as_str() {
                    "tree" if too_large => folders.push((entry.path, entry.sha)),
                    "blob" => all.push(entry),
                    _ => {}
                }
            }
        }
        let all = Arc::new(all);
        self.trees.put(commit, Arc::clone(&all));
        Ok(all)
    }

    async fn one_tree(
        &self,
        sha: &str,
        commit: &CommitId,
        depth: Depth,
    ) -> Result<wire::Tree, ForgeError> {
        let what = format!("commit {} of {}", commit.short(), self.full_name());
        let mut call = Call::get(self.repo_url(&["git", "trees", sha])?, what, NEEDS);
        if depth == Depth::All {
            call = call.query(&[("recursive", "1")]);
        }
        self.api.read(&call).await
    }

    /// Through the tree, not the contents: those follow links and know no modes.
    pub(super) async fn read_file(
        &self,
        commit: &CommitId,
        path: &RepoPath,
    ) -> Result<Option<FileAt>, ForgeError> {
        let entry = match self.trees.get(commit) {
            Some(tree) => tree
                .iter()
                .find(|entry| entry.path == path.as_str())
                .cloned(),
            None => self.walk_to(commit, path).await?,
        };
        let found = entry.and_then(|entry| Some((FileMode::from_git(&entry.mode)?, entry.sha)));
        let Some((mode, sha)) = found else {
            return Ok(None);
        };
        let what = format!("file {path} of {}", self.full_name());
        let call = Call::get(self.repo_url(&["git", "blobs", &sha])?, what, NEEDS).accepting(RAW);
        let answer = self.api.ask(&call).await?;
        let content = blob_of(&answer, &call)?;
        if !has_id(&content, &sha) {
            return Err(call.error(
                "GitHub's answer is not the file that was asked for: its content has another id",
            ));
        }
        Ok(Some(FileAt { content, mode }))
    }

    /// Folder by folder. One request for each folder on the way: cheaper than a whole tree when
    /// only one file is needed. `None` when a part is missing or is not a folder.
    async fn walk_to(
        &self,
        commit: &CommitId,
        path: &RepoPath,
    ) -> Result<Option<wire::Entry>, ForgeError> {
        let mut sha = commit.0.clone();
        let mut parts = path.as_str().split('/').peekable();
        while let Some(part) = parts.next() {
            let tree = self.one_tree(&sha, commit, Depth::One).await?;
            let entry = tree.tree.into_iter().find(|entry| entry.path == part);
            match entry {
                Some(entry) if parts.peek().is_none() => return Ok(Some(entry)),
                Some(entry) if entry.kind == "tree" => sha = entry.sha,
                _ => break,
            }
        }
        Ok(None)
    }

    /// In GitHub's order. GitHub searches the default branch only, so the result may not fit
    /// another commit.
    pub(super) async fn search_code(
        &self,
        words: &[String],
        limit: usize,
    ) -> Result<Vec<String>, ForgeError> {
        let Some(query) = query_of(words, &self.full_name()) else {
            return Ok(Vec::new());
        };
        let per_page = limit.clamp(1, 100).to_string();
        let what = format!("code search in {}", self.full_name());
        let call = Call::get(self.url(&["search", "code"])?, what, NEEDS)
            .query(&[("q", &query), ("per_page", &per_page)]);
        let items = |found: wire::Found| found.items;
        let mut paths: Vec<String> = Vec::new();
        for file in self.api.pages(&call, limit, items).await? {
            if !paths.contains(&file.path) {
                paths.push(file.path);
            }
        }
        Ok(paths)
    }

    /// A user whom GitHub does not find, and a level that is not known, give [`Permission::None`].
    pub(super) async fn permission_of(&self, user: &str) -> Result<Permission, ForgeError> {
        let what = format!("the permission of {user} in {}", self.full_name());
        let url = self.repo_url(&["collaborators", user, "permission"])?;
        let level = self
            .api
            .find::<wire::Level>(&Call::get(
                url,
                what,
                "Metadata: read, and the right to push",
            ))
            .await?;
        Ok(
            match level.as_ref().map(|level| level.permission.as_str()) {
                Some("admin") => Permission::Admin,
                Some("write" | "maintain") => Permission::Write,
                Some("read" | "triage") if self.is_collaborator(user).await? => Permission::Read,
                _ => Permission::None,
            },
        )
    }

    /// Everybody may read a public repository, and GitHub says so of strangers, too. Only those who
    /// were let in count.
    async fn is_collaborator(&self, user: &str) -> Result<bool, ForgeError> {
        let what = format!("whether {user} is a collaborator of {}", self.full_name());
        let url = self.repo_url(&["collaborators", user])?;
        let call = Call::get(url, what, "Metadata: read");
        match self.api.send(&call).await {
            Ok(_) => Ok(true),
            Err(Failure::Said(said)) if said.status == 404 => Ok(false),
            Err(failure) => Err(failure.explain(&call)),
        }
    }
}

/// The bytes of a file. Servers and proxies that know no other form send JSON around them.
fn blob_of(answer: &Answer, call: &Call) -> Result<Vec<u8>, ForgeError> {
    if !answer.is_json() {
        return Ok(answer.body.to_vec());
    }
    let blob: wire::Blob = answer.read(call)?;
    match blob.encoding.as_str() {
        "utf-8" => Ok(blob.content.into_bytes()),
        "base64" => {
            let text: String = blob.content.split_ascii_whitespace().collect();
            BASE64_STANDARD
                .decode(text)
                .map_err(|error| call.error(format!("the content of the file: {error}")))
        }
        other => Err(call.error(format!("the content of the file is in `{other}`"))),
    }
}

/// Whether git knows this content by this id. It is what makes sure that a page, a wrapper or half
/// a file is never taken for the file, whatever the answer says of itself.
fn has_id(content: &[u8], id: &str) -> bool {
    let algorithm = match id.len() {
        64 => &digest::SHA256,
        _ => &digest::SHA1_FOR_LEGACY_USE_ONLY,
    };
    let mut hash = digest::Context::new(algorithm);
    hash.update(format!("blob {}\0", content.len()).as_bytes());
    hash.update(content);
    let hex: String = hash
        .finish()
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    hex == id
}

/// How far down a tree is listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    One,
    All,
}

/// `a b c repo:owner/name`; words that would be qualifiers are not, and what is too much is left
/// out. `None` without a word to look for.
fn query_of(words: &[String], repo: &str) -> Option<String> {
    let place = format!("repo:{repo}");
    let mut query = String::new();
    for word in words {
        let plain = word.replace(['"', ':', '\\', '(', ')'], " ");
        for word in plain
            .split_whitespace()
            .filter(|word| !matches!(*word, "AND" | "OR" | "NOT"))
        {
            let word = word.trim_start_matches('-');
            let length = query.chars().count() + word.chars().count() + place.chars().count() + 2;
            if !word.is_empty() && length <= MAX_QUERY_CHARS {
                query.push_str(word);
                query.push(' ');
            }
        }
    }
    (!query.is_empty()).then(|| query + &place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_turn_into_qualifiers_and_the_query_fits() {
        let query = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            query_of(&words, "acme/shop")
        };
        assert_eq!(
            query(&["auth", "timeout"]).as_deref(),
            Some("auth timeout repo:acme/shop")
        );
        assert_eq!(
            query(&["repo:other/one", "\"x\"", "-y", "OR"]).as_deref(),
            Some("repo other/one x y repo:acme/shop")
        );
        assert_eq!(query(&["", "NOT"]), None);
        let long = query(&["word"; 200]).unwrap();
        assert!(long.len() <= MAX_QUERY_CHARS && long.ends_with(" repo:acme/shop"));
    }
}
