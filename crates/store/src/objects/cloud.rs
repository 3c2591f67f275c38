//! Providers of object stores, through the `object_store` crate. Its HTTP client is `reqwest`, whose
//! TLS is rustls with ring here.

use std::ops::Range;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectStore as Client, ObjectStoreExt, path::Path};
use url::Url;

use super::ObjectStore;
use crate::StoreError;

/// Options of providers. Without the prefix, `TOKEN` or `REGION` of anything would be one.
const VARIABLES: &[&str] = &["AWS_", "GOOGLE_", "AZURE_"];

pub(super) struct Cloud {
    client: Box<dyn Client>,
    prefix: Path,
    place: String,
}

impl Cloud {
    pub(super) fn open(url: &Url, variables: &[(String, String)]) -> Result<Self, StoreError> {
        // An error means that one is there already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let place = url.to_string();
        let is_theirs = |(name, _): &&(String, String)| {
            let mut theirs = VARIABLES.iter();
            theirs.any(|prefix| name.starts_with(prefix))
        };
        let options = variables.iter().filter(is_theirs).map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            (name, value.as_str())
        });
        match object_store::parse_url_opts(url, options) {
            Ok((client, prefix)) => Ok(Self {
                client,
                prefix,
                place,
            }),
            Err(error) => Err(StoreError::Objects {
                place,
                message: error.to_string(),
            }),
        }
    }

    fn path(&self, key: &str) -> Path {
        key.split('/')
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn error(&self, error: &object_store::Error) -> StoreError {
        StoreError::Objects {
            place: self.place.clone(),
            message: error.to_string(),
        }
    }
}

#[async_trait]
impl ObjectStore for Cloud {
    async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        let put = self.client.put(&self.path(key), bytes.into()).await;
        put.map(drop).map_err(|error| self.error(&error))
    }

    async fn get(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let got = self.client.get_range(&self.path(key), range).await;
        let bytes = got.map_err(|error| self.error(&error))?;
        Ok(bytes.into())
    }

    async fn remove_below(&self, prefix: &str) -> Result<(), StoreError> {
        let listed = self.client.list(Some(&self.path(prefix)));
        let found = listed.map_ok(|object| object.location).boxed();
        let removed = self.client.delete_stream(found);
        let removed = removed.try_for_each(|_| async { Ok(()) }).await;
        removed.map_err(|error| self.error(&error))
    }

    fn describe(&self) -> String {
        self.place.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(url: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let url = Url::parse(url).unwrap();
        let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        let variables: Vec<_> = variables.iter().map(own).collect();
        let opened = Cloud::open(&url, &variables);
        let shown = opened.map(|cloud| format!("{} below `{}`", cloud.client, cloud.prefix));
        shown.map_err(|error| error.to_string())
    }

    #[test]
    fn urls_of_all_providers_are_read() {
        let account = [("AZURE_STORAGE_ACCOUNT_NAME", "acme"), ("TOKEN", "no")];
        for (url, wanted) in [
            ("s3://bucket/a/b", "AmazonS3(bucket) below `a/b`"),
            ("gs://bucket", "GoogleCloudStorage(bucket) below ``"),
            ("az://box/a", "below `a`"),
        ] {
            let shown = opened(url, &account).unwrap();
            assert!(shown.contains(wanted), "{shown}");
        }
        let refused = opened("az://box/a", &[]).unwrap_err();
        assert!(refused.contains("az://box/a"), "{refused}");
    }
}
