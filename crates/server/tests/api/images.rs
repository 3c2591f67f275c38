//! Pictures that go with a line: looked at, kept until the line is settled, and no more than fit.

use base64::{Engine, prelude::BASE64_STANDARD};
use codespar_protocol::AccessRole;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stage::{Answer, Stage, with_json};

const WRITE: AccessRole = AccessRole::Write;
const MEGABYTE: usize = 1024 * 1024;

/// Something that begins as a PNG does.
fn png(bytes: usize) -> Vec<u8> {
    let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
    picture.resize(bytes, 7);
    picture
}

fn image(name: &str, bytes: &[u8]) -> Value {
    json!({"name": name, "data": BASE64_STANDARD.encode(bytes)})
}

async fn say(stage: &Stage, key: &str, text: &str, images: &Value) -> Answer {
    let body = json!({"text": text, "thread": "t", "project": stage.key("a"), "images": images});
    let request = stage.request("POST", "/api/v1/commands?wait=30");
    let request = request
        .bearer_auth(stage.token(WRITE))
        .header("idempotency-key", key);
    stage.send(with_json(request, &body)).await
}

/// The files that are kept for lines of the page.
fn kept(stage: &Stage) -> Vec<std::path::PathBuf> {
    let entries = |dir: std::path::PathBuf| {
        let found = std::fs::read_dir(dir).into_iter().flatten();
        found.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let lines = entries(stage.root("state").join("channel-pictures/web"));
    lines.into_iter().flat_map(entries).collect()
}

#[tokio::test]
async fn a_picture_reaches_the_work_that_its_line_asks_for() {
    let stage = Stage::new().await;
    let picture = png(4 * MEGABYTE);
    let images = json!([image("screen.png", &picture)]);
    let said = say(&stage, "k", "fix the greeting", &images).await;
    assert_eq!(said.status, StatusCode::ACCEPTED, "{}", said.text);
    let said = said.json();
    assert_eq!(said["message"]["images"], json!(["screen.png"]));
    assert!(said["message"]["task_id"].is_string(), "{said}");
    let files = kept(&stage);
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::read(&files[0]).unwrap(), picture);
    let id = said["message"]["id"].as_str().unwrap();
    let work = stage.store().message(id).await.unwrap().work.unwrap();
    assert!(work.contains(files[0].to_str().unwrap()), "{work}");
    // The same line again is the same; with another picture it is another one under its key.
    let again = say(&stage, "k", "fix the greeting", &images).await;
    assert_eq!(again.json()["message"]["id"], id);
    assert_eq!(kept(&stage), files);
    let other = json!([image("screen.png", &png(100))]);
    let other = say(&stage, "k", "fix the greeting", &other).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(kept(&stage), files);
    stage.stop().await;
}

#[tokio::test]
async fn pictures_of_a_line_that_is_settled_are_gone() {
    let stage = Stage::new().await;
    let images = || json!([image("a.png", &png(100)), image("b.png", &png(200))]);
    for _ in 0..2 {
        let said = say(&stage, "k", "whoami", &images()).await;
        assert_eq!(said.status, StatusCode::ACCEPTED, "{}", said.text);
        assert_eq!(said.json()["message"]["images"], json!(["a.png", "b.png"]));
        let is_gone = async {
            while !kept(&stage).is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(crate::stage::PATIENCE, is_gone)
            .await
            .unwrap();
    }
    stage.stop().await;
}

#[tokio::test]
async fn what_is_no_picture_or_too_much_is_refused_and_nothing_is_said() {
    let stage = Stage::new().await;
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>";
    for (images, reason) in [
        (json!([image("x.png", svg)]), "x.png is not a PNG"),
        (json!([image("x.png", b"")]), "x.png is not a PNG"),
        (
            json!([image("big.png", &png(4 * MEGABYTE + 1))]),
            "at most 4 MB",
        ),
        (
            json!([{"data": "no base64!"}]),
            "`images[0].data` is not base64",
        ),
        (json!([image("", &png(9))]), "`name` is empty"),
        (
            json!([image(&"x".repeat(101), &png(9))]),
            "`name` is longer",
        ),
        (json!([{"name": "x"}]), "missing field `data`"),
        (
            json!([{"data": "", "path": "/etc/passwd"}]),
            "unknown field `path`",
        ),
        (
            json!(vec![image("x", &png(9)); 5]),
            "`images` has at most 4",
        ),
    ] {
        let refused = say(&stage, "k", "fix the greeting", &images).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.text
        );
        assert!(refused.text.contains(reason), "{}", refused.text);
    }
    assert_eq!(kept(&stage), Vec::<std::path::PathBuf>::new());
    let thread = format!("/api/v1/commands/t?project={}", stage.key("a"));
    assert_eq!(
        stage.get(WRITE, &thread).await.status,
        StatusCode::NOT_FOUND
    );
    stage.stop().await;
}

#[tokio::test]
async fn four_pictures_fit_and_large_bodies_go_nowhere_else() {
    let stage = Stage::new().await;
    let four: Vec<Value> = (0..4).map(|_| image("x.png", &png(4 * MEGABYTE))).collect();
    let said = say(&stage, "k", "whoami", &json!(four)).await;
    assert_eq!(said.status, StatusCode::ACCEPTED, "{}", said.text);
    let large = "x".repeat(24 * MEGABYTE);
    let refused = say(&stage, "l", &large, &json!([])).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    let body = json!({"instruction": "x".repeat(300 * 1024)});
    for path in ["/api/v1/tasks", "/api/v1/commands/t", "/login"] {
        let request = stage.request("POST", path).bearer_auth(stage.token(WRITE));
        let refused = stage.send(with_json(request, &body)).await;
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_stranger_keeps_no_pictures_here() {
    let stage = Stage::new().await;
    let body = json!({"text": "whoami", "images": [image("x.png", &png(MEGABYTE))]});
    let request = with_json(stage.request("POST", "/api/v1/commands"), &body);
    assert_eq!(stage.send(request).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(kept(&stage), Vec::<std::path::PathBuf>::new());
    stage.stop().await;
}
