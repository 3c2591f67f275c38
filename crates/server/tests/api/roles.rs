//! Every route of the API with every kind of client.

use codespar_protocol::AccessRole;
use codespar_server::{Secret, SecretKind, create_token, openapi, route_access};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stage::{Stage, with_json};

/// A request that a client with the right role gets past the gate: it is served, or refused for
/// what it asks and not for who asks.
fn sample(method: &str, path: &str) -> (String, Option<Value>) {
    let path = path
        .replace("{id}", "x-00000000")
        .replace("{thread}", "main")
        .replace("{project}", "000000000000")
        .replace("{number}", "1");
    let body = (method == "POST").then(|| json!({}));
    (path, body)
}

#[derive(Debug, Clone, Copy)]
enum Who {
    Nobody,
    Garbage,
    Unknown,
    Revoked,
    Role(AccessRole),
}

const EVERYBODY: [Who; 8] = [
    Who::Nobody,
    Who::Garbage,
    Who::Unknown,
    Who::Revoked,
    Who::Role(AccessRole::Read),
    Who::Role(AccessRole::Write),
    Who::Role(AccessRole::Merge),
    Who::Role(AccessRole::Admin),
];

#[tokio::test]
async fn every_route_serves_its_role_and_nobody_below() {
    let stage = Stage::new().await;
    let (revoked, secret) = create_token(&**stage.store(), "old", AccessRole::Admin)
        .await
        .unwrap();
    stage.store().revoke_token(&revoked.id).await.unwrap();
    let unknown = Secret::random(SecretKind::Token).unwrap();
    let routes = route_access();
    assert!(routes.len() >= 25, "{routes:?}");
    for route in &routes {
        let (path, body) = sample(route.method, &route.path);
        for who in EVERYBODY {
            let mut request = stage.request(route.method, &path);
            if let Some(body) = &body {
                request = with_json(request, body);
            }
            request = match who {
                Who::Nobody => request,
                Who::Garbage => request.header("authorization", "Bearer nonsense"),
                Who::Unknown => request.bearer_auth(unknown.reveal()),
                Who::Revoked => request.bearer_auth(secret.reveal()),
                Who::Role(role) => request.bearer_auth(stage.token(role)),
            };
            let response = request.send().await.unwrap();
            let status = response.status();
            let expected = match who {
                Who::Role(role) if role.allows(route.role) => None,
                Who::Role(_) => Some(StatusCode::FORBIDDEN),
                _ => Some(StatusCode::UNAUTHORIZED),
            };
            match expected {
                Some(expected) => assert_eq!(status, expected, "{route:?} {who:?}"),
                None => {
                    let is_past = !matches!(status.as_u16(), 401 | 403) && status.as_u16() < 500;
                    assert!(is_past, "{route:?} {who:?}: {status}");
                }
            }
        }
    }
    stage.stop().await;
}

#[tokio::test]
async fn metrics_need_a_token_and_health_does_not() {
    let stage = Stage::new().await;
    for (path, expected) in [("/healthz", 200), ("/readyz", 200), ("/metrics", 401)] {
        let answer = stage.send(stage.request("GET", path)).await;
        assert_eq!(answer.status.as_u16(), expected, "{path}");
    }
    stage.task("a", "waits").await;
    let answer = stage.get(AccessRole::Read, "/metrics").await;
    assert_eq!(answer.status, StatusCode::OK);
    for line in [
        "codespar_tasks{type=\"local_bash\",state=\"pending\"} 1",
        "codespar_lease_losses_total 0",
        "codespar_event_streams 0",
        "# TYPE codespar_webhooks_total counter",
    ] {
        assert!(answer.text.contains(line), "{line} in\n{}", answer.text);
    }
    stage.stop().await;
}

#[tokio::test]
async fn the_description_names_every_route_and_its_errors() {
    let stage = Stage::new().await;
    let answer = stage.send(stage.request("GET", "/api/openapi.json")).await;
    assert_eq!(answer.status, StatusCode::OK);
    let served = answer.json();
    assert_eq!(served, serde_json::to_value(openapi()).unwrap());
    for route in route_access() {
        let operation = &served["paths"][&route.path][route.method.to_lowercase()];
        assert!(operation["security"][0].get("token").is_some(), "{route:?}");
        for status in ["401", "403", "404", "429"] {
            let schema = &operation["responses"][status]["content"]["application/json"]["schema"];
            assert_eq!(
                schema["$ref"], "#/components/schemas/ErrorBody",
                "{route:?} {status}"
            );
        }
    }
    // Nothing is referred to that is not there.
    let text = served.to_string();
    for part in text.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(
            served["components"]["schemas"].get(name).is_some(),
            "{name}"
        );
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_token_made_over_the_api_works_until_it_is_revoked() {
    let stage = Stage::new().await;
    let new = json!({"name": "ci", "role": "read"});
    let made = stage.post(AccessRole::Admin, "/api/v1/tokens", &new).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let secret = made.json()["secret"].as_str().unwrap().to_owned();
    let me = async || {
        let request = stage.request("GET", "/api/v1/me").bearer_auth(&secret);
        stage.send(request).await
    };
    let shown = me().await;
    assert_eq!(shown.json()["role"], "read");
    let listed = stage.get(AccessRole::Admin, "/api/v1/tokens").await;
    assert!(!listed.text.contains(&secret), "{}", listed.text);
    assert!(
        listed.json()["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .any(|token| token["name"] == "ci" && token["last_used_at"].is_string())
    );
    let id = made.json()["token"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/tokens/{id}/revoke");
    let revoked = stage.post(AccessRole::Admin, &path, &json!({})).await;
    assert!(revoked.json()["revoked_at"].is_string());
    assert_eq!(me().await.status, StatusCode::UNAUTHORIZED);
    stage.stop().await;
}
