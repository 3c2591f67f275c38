//! Objects: what is too large for the database, where all hosts can read it.
//!
//! ```text
//! file:///srv/codespar   a directory that all hosts have       directory
//! s3://bucket/prefix     Amazon S3, and what speaks as it does  cloud, with the feature `object-store`
//! gs://bucket/prefix     Google Cloud Storage                   the same
//! az://container/prefix  Azure Blob Storage                     the same
//! ```

#[cfg(feature = "object-store")]
mod cloud;
mod directory;

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use url::Url;

use crate::StoreError;

/// Schemes of the providers.
const CLOUD: &[&str] = &["s3", "gs", "az"];

/// Keeps objects under names with `/` between their parts. An object is never changed.
#[async_trait]
pub trait ObjectStore: Send + Sync {
    /// When it returns, the object is there whole. One of that name is replaced.
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError>;

    /// The bytes of a range that ends within the object.
    async fn get(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, StoreError>;

    /// Removes all objects whose name begins with these whole parts. None is no error.
    async fn remove_below(&self, prefix: &str) -> Result<(), StoreError>;

    /// Which it is, for people.
    fn describe(&self) -> String;
}

/// The object store of a URL. Nothing is asked of it yet. What a provider needs to let us in comes
/// with the variables that its own tools use (`AWS_ACCESS_KEY_ID` and so on).
pub fn open_object_store(
    url: &str,
    variables: &[(String, String)],
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let bad = |message: String| StoreError::Objects {
        place: "the URL of CODESPAR_OBJECT_STORE".to_owned(),
        message: format!(
            "{message}; write file:///DIRECTORY, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or \
             az://CONTAINER/PREFIX"
        ),
    };
    // Not quoted: somebody may have put a key into it.
    let url = Url::parse(url).map_err(|_| bad("it cannot be read".to_owned()))?;
    if url.password().is_some() || !url.username().is_empty() || url.query().is_some() {
        let message = "keys and options do not belong into it, but into the variables of the \
                       provider";
        return Err(bad(message.to_owned()));
    }
    match url.scheme() {
        "file" => match url.to_file_path() {
            Ok(root) => Ok(Arc::new(directory::Directory::new(root))),
            Err(()) => Err(bad("it names no directory of this host".to_owned())),
        },
        scheme if CLOUD.contains(&scheme) => open_cloud(&url, variables),
        scheme => Err(bad(format!("`{scheme}` is not a kind of object store"))),
    }
}

#[cfg(feature = "object-store")]
fn open_cloud(
    url: &Url,
    variables: &[(String, String)],
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    Ok(Arc::new(cloud::Cloud::open(url, variables)?))
}

#[cfg(not(feature = "object-store"))]
fn open_cloud(url: &Url, _: &[(String, String)]) -> Result<Arc<dyn ObjectStore>, StoreError> {
    Err(StoreError::Objects {
        place: url.to_string(),
        message: "this build has no client for it; use one that was built with `cargo build \
                  --features object-store`, or a directory that all hosts have \
                  (file:///DIRECTORY)"
            .to_owned(),
    })
}

/// Whether objects can be written, read and removed.
pub async fn check_object_store(objects: &dyn ObjectStore) -> Result<(), StoreError> {
    const WRITTEN: &[u8] = b"codespar";
    let below = format!("checks/{}", codespar_protocol::SessionId::new());
    let key = format!("{below}/object");
    objects.put(&key, WRITTEN.to_vec()).await?;
    let read = objects.get(&key, 0..WRITTEN.len() as u64).await?;
    objects.remove_below(&below).await?;
    match read == WRITTEN {
        true => Ok(()),
        false => Err(StoreError::Objects {
            place: objects.describe(),
            message: "it does not give back what was written".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        match open_object_store(url, &[]) {
            Ok(_) => panic!("{url} was opened"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_with_what_to_write() {
        for (url, wanted) in [
            ("nonsense", "it cannot be read"),
            ("ftp://host/dir", "`ftp` is not a kind of object store"),
            ("file://elsewhere/dir", "no directory of this host"),
            ("s3://key:hunter2@bucket", "keys and options do not belong"),
            (
                "s3://bucket?secret=hunter2",
                "keys and options do not belong",
            ),
        ] {
            let said = refusal(url);
            assert!(said.contains(wanted), "{said}");
            assert!(said.contains("s3://BUCKET/PREFIX"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[cfg(not(feature = "object-store"))]
    #[test]
    fn a_provider_needs_a_build_that_has_it() {
        for url in ["s3://bucket/a", "gs://bucket", "az://container/a"] {
            let said = refusal(url);
            assert!(said.contains("--features object-store"), "{said}");
            assert!(said.contains(url), "{said}");
        }
    }
}
