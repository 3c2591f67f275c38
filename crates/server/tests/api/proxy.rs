//! People whom a proxy names.

use codespar_protocol::AccessRole;
use codespar_server::ProxySignIn;
use reqwest::{RequestBuilder, StatusCode};
use serde_json::json;

use crate::stage::{Answer, Stage, with_json};

const HEADER: &str = "x-forwarded-user";

async fn stage(proxy: &str) -> Stage {
    let address = proxy.parse().unwrap();
    let stage = Stage::behind(ProxySignIn::new(HEADER, &[address]).unwrap()).await;
    let settings = json!({"channels": {"access": {"proxy": {
        "users": {"ada@example.com": "merge", "root@example.com": "admin"}
    }}}});
    std::fs::write(
        stage.root("state").join("settings.json"),
        settings.to_string(),
    )
    .unwrap();
    stage
}

fn as_person(stage: &Stage, method: &str, path: &str, name: &str) -> RequestBuilder {
    stage.request(method, path).header(HEADER, name)
}

async fn me(stage: &Stage, name: &str) -> Answer {
    stage
        .send(as_person(stage, "GET", "/api/v1/me", name))
        .await
}

#[tokio::test]
async fn a_person_has_the_role_of_the_settings_and_others_may_read() {
    let stage = stage("127.0.0.1").await;
    assert_eq!(me(&stage, "ada@example.com").await.json()["role"], "merge");
    assert_eq!(me(&stage, "bob@example.com").await.json()["role"], "read");
    let page = stage
        .send(as_person(&stage, "GET", "/board", "ada@example.com"))
        .await;
    assert_eq!(page.status, StatusCode::OK);
    // One token for each person, however many requests there are.
    for _ in 0..3 {
        me(&stage, "ada@example.com").await;
    }
    let tokens = stage.store().tokens().await.unwrap();
    let hers: Vec<_> = tokens
        .iter()
        .filter(|one| one.name == "proxy:ada@example.com")
        .collect();
    assert_eq!(hers.len(), 1);
    // Whoever is revoked stays out, though the proxy still names them.
    stage.store().revoke_token(&hers[0].id).await.unwrap();
    assert_eq!(
        me(&stage, "ada@example.com").await.status,
        StatusCode::UNAUTHORIZED
    );
    stage.stop().await;
}

#[tokio::test]
async fn a_role_that_was_taken_away_is_gone_with_the_next_request() {
    let stage = stage("127.0.0.1").await;
    assert_eq!(me(&stage, "root@example.com").await.json()["role"], "admin");
    std::fs::write(stage.root("state").join("settings.json"), "{}").unwrap();
    assert_eq!(me(&stage, "root@example.com").await.json()["role"], "read");
    let tokens = stage.store().tokens().await.unwrap();
    let is_in_force = |one: &&codespar_store::AccessToken| {
        one.name == "proxy:root@example.com" && one.revoked_at.is_none()
    };
    let in_force: Vec<AccessRole> = tokens
        .iter()
        .filter(is_in_force)
        .map(|one| one.role)
        .collect();
    assert_eq!(in_force, [AccessRole::Read]);
    stage.stop().await;
}

#[tokio::test]
async fn the_header_of_anybody_else_is_ignored() {
    let stage = stage("192.0.2.7").await;
    assert_eq!(
        me(&stage, "root@example.com").await.status,
        StatusCode::UNAUTHORIZED
    );
    assert!(
        stage
            .store()
            .tokens()
            .await
            .unwrap()
            .iter()
            .all(|one| !one.name.starts_with("proxy:"))
    );
    let without = Stage::new().await;
    assert_eq!(
        me(&without, "root@example.com").await.status,
        StatusCode::UNAUTHORIZED
    );
    without.stop().await;
    stage.stop().await;
}

#[tokio::test]
async fn two_names_or_a_wrong_token_are_nobody() {
    let stage = stage("127.0.0.1").await;
    let twice = as_person(&stage, "GET", "/api/v1/me", "root@example.com");
    let twice = stage.send(twice.header(HEADER, "ada@example.com")).await;
    assert_eq!(twice.status, StatusCode::UNAUTHORIZED);
    let wrong = as_person(&stage, "GET", "/api/v1/me", "root@example.com");
    let wrong = stage
        .send(wrong.header("authorization", "Bearer cspr_wrong"))
        .await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    stage.stop().await;
}

#[tokio::test]
async fn pages_of_other_sites_change_nothing_in_the_name_of_a_person() {
    let stage = stage("127.0.0.1").await;
    let own = stage.url("");
    for (origin, expected) in [
        (None, StatusCode::FORBIDDEN),
        (Some("http://evil.example"), StatusCode::FORBIDDEN),
        (Some(own.as_str()), StatusCode::OK),
    ] {
        let task = stage.task("a", "waits").await;
        let path = format!("/api/v1/tasks/{}/stop", task.task_id);
        let mut request = as_person(&stage, "POST", &path, "ada@example.com");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let answer = stage.send(with_json(request, &json!({}))).await;
        assert_eq!(answer.status, expected, "{origin:?}");
    }
    stage.stop().await;
}
