//! A directory as object store: of this host, or one that all hosts have mounted.

use std::{
    io::{self, SeekFrom},
    ops::Range,
    path::{Component, Path, PathBuf},
};

use async_trait::async_trait;
use tokio::{
    fs,
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
};

use super::ObjectStore;
use crate::StoreError;

pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn error(&self, path: &Path, error: &io::Error) -> StoreError {
        StoreError::Objects {
            place: self.describe(),
            message: format!("{}: {error}", path.display()),
        }
    }

    /// Names come from records; one that leads out of the directory is refused.
    fn path(&self, key: &str) -> Result<PathBuf, StoreError> {
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let key = Path::new(key);
        match key.components().all(is_plain) && key.components().next().is_some() {
            true => Ok(self.root.join(key)),
            false => Err(StoreError::Objects {
                place: self.describe(),
                message: format!("`{}` is not the name of an object", key.display()),
            }),
        }
    }

    /// Under another name first, so that nobody finds half of it.
    async fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let dir = path.parent().unwrap_or(&self.root);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .await?;
        let draft = path.with_extension(format!("{}.part", std::process::id()));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)
            .await?;
        file.write_all(bytes).await?;
        file.sync_all().await?;
        fs::rename(&draft, path).await
    }
}

#[async_trait]
impl ObjectStore for Directory {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        let path = self.path(key)?;
        let written = self.write(&path, &bytes).await;
        written.map_err(|error| self.error(&path, &error))
    }

    async fn get(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let path = self.path(key)?;
        let read = async {
            let mut file = fs::File::open(&path).await?;
            file.seek(SeekFrom::Start(range.start)).await?;
            let length = range.end.saturating_sub(range.start);
            let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            file.read_exact(&mut bytes).await?;
            Ok(bytes)
        };
        read.await
            .map_err(|error: io::Error| self.error(&path, &error))
    }

    async fn remove_below(&self, prefix: &str) -> Result<(), StoreError> {
        let path = self.path(prefix)?;
        match fs::remove_dir_all(&path).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.error(&path, &error)),
            _ => Ok(()),
        }
    }

    fn describe(&self) -> String {
        format!("file://{}", self.root.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check_object_store, open_object_store};

    #[tokio::test]
    async fn objects_are_kept_read_by_range_and_removed_with_their_prefix() {
        let dir = tempfile::tempdir().unwrap();
        let objects = Directory::new(dir.path().join("a b"));
        objects
            .put("outputs/t1/0", b"hello".to_vec())
            .await
            .unwrap();
        objects
            .put("outputs/t2/0", b"other".to_vec())
            .await
            .unwrap();
        objects
            .put("outputs/t1/0", b"howdy".to_vec())
            .await
            .unwrap();
        assert_eq!(objects.get("outputs/t1/0", 1..4).await.unwrap(), b"owd");
        let beyond = objects.get("outputs/t1/0", 1..9).await.unwrap_err();
        assert!(beyond.to_string().contains("outputs/t1/0"), "{beyond}");
        for _ in 0..2 {
            objects.remove_below("outputs/t1").await.unwrap();
        }
        assert!(objects.get("outputs/t1/0", 0..1).await.is_err());
        assert_eq!(objects.get("outputs/t2/0", 0..5).await.unwrap(), b"other");
        let left = std::fs::read_dir(dir.path().join("a b/outputs/t2")).unwrap();
        assert_eq!(left.count(), 1, "no draft stays");
    }

    #[tokio::test]
    async fn a_name_that_leads_out_of_the_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let objects = Directory::new(dir.path().join("objects"));
        for key in ["", "../x", "/etc/x", "outputs/../../x"] {
            let refused = objects.put(key, Vec::new()).await.unwrap_err();
            let said = refused.to_string();
            assert!(said.contains("is not the name of an object"), "{said}");
        }
        assert!(!dir.path().join("x").exists());
    }

    #[tokio::test]
    async fn a_directory_is_checked_by_writing_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("file://{}/new", dir.path().display());
        let objects = open_object_store(&url, &[]).unwrap();
        check_object_store(&*objects).await.unwrap();
        assert_eq!(objects.describe(), url);
        std::fs::write(dir.path().join("file"), "").unwrap();
        let url = format!("file://{}/file", dir.path().display());
        let objects = open_object_store(&url, &[]).unwrap();
        let refused = check_object_store(&*objects).await.unwrap_err();
        assert!(refused.to_string().contains(&url), "{refused}");
    }
}
