//! The object store of a provider, against a server that speaks enough of S3.

#![cfg(feature = "object-store")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

mod s3_server;

use codespar_store::{ObjectStore, StoreError, check_object_store, open_object_store};
use s3_server::S3Server;
use std::sync::Arc;

fn opened(server: &S3Server) -> Arc<dyn ObjectStore> {
    let variables = [
        ("AWS_ENDPOINT_URL", server.url.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "eu-west-1"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    open_object_store("s3://bucket/codespar", &variables).unwrap()
}

#[tokio::test]
async fn objects_are_kept_read_by_range_and_removed_with_their_prefix() {
    let server = S3Server::start().await;
    let objects = opened(&server);
    objects
        .put("outputs/t1/0", b"hello".to_vec())
        .await
        .unwrap();
    objects
        .put("outputs/t1/5", b"again".to_vec())
        .await
        .unwrap();
    objects
        .put("outputs/t2/0", b"other".to_vec())
        .await
        .unwrap();
    assert_eq!(objects.get("outputs/t1/0", 1..4).await.unwrap(), b"ell");
    let missing = objects.get("outputs/t1/9", 0..1).await;
    assert!(
        matches!(missing, Err(StoreError::Objects { .. })),
        "{missing:?}"
    );
    for _ in 0..2 {
        objects.remove_below("outputs/t1").await.unwrap();
    }
    let left: Vec<String> = server.objects.lock().unwrap().keys().cloned().collect();
    assert_eq!(left, ["bucket/codespar/outputs/t2/0"]);
}

#[tokio::test]
async fn a_provider_is_checked_by_writing_to_it() {
    let server = S3Server::start().await;
    let objects = opened(&server);
    check_object_store(&*objects).await.unwrap();
    assert!(server.objects.lock().unwrap().is_empty());
    assert_eq!(objects.describe(), "s3://bucket/codespar");
}
