//! The files of a commit, read from git without a checkout.
//!
//! The stamp of a file is the hash of its object's name, so a file that two commits share is not
//! read again for the second.

use std::collections::HashMap;

use crate::{
    LocateError,
    git::Git,
    index::{Listed, Origin, Texts},
    kind::FileKind,
    words,
};

/// A commit that is read.
pub(crate) struct CommitTree<'g> {
    git: &'g Git,
    /// From a path to the name of its object.
    objects: HashMap<String, String>,
}

impl<'g> CommitTree<'g> {
    /// The tree, and its files in the order of their paths.
    pub(crate) fn read(git: &'g Git, commit: &str) -> Result<(Self, Vec<Listed>), LocateError> {
        let blobs = git.files(commit)?;
        let mut listed: Vec<Listed> = blobs
            .iter()
            .map(|blob| Listed {
                path: blob.path.clone(),
                stamp: words::hash(blob.object.as_bytes()),
                origin: Origin::Found,
            })
            .collect();
        listed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let objects = blobs.into_iter().map(|blob| (blob.path, blob.object));
        let tree = Self {
            git,
            objects: objects.collect(),
        };
        Ok((tree, listed))
    }
}

impl Texts for CommitTree<'_> {
    fn each(
        &self,
        wanted: &[&Listed],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), LocateError> {
        let object = |listed: &&Listed| self.objects.get(&listed.path).map_or("", String::as_str);
        let objects: Vec<&str> = wanted.iter().map(object).collect();
        self.git
            .texts(&objects, FileKind::Source.readable_bytes(), visit)
    }
}
