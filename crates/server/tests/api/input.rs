//! What a hostile or clumsy client sends.

use std::time::Duration;

use codespar_protocol::AccessRole;
use codespar_server::ServerLimits;
use reqwest::StatusCode;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::stage::{PATIENCE, Stage, wide, with_json};

#[tokio::test]
async fn bad_bodies_are_told_apart() {
    let stage = Stage::new().await;
    let path = "/api/v1/tasks";
    let post = |body: &str, kind: &str| {
        let request = stage
            .request("POST", path)
            .bearer_auth(stage.token(AccessRole::Write));
        request
            .header("content-type", kind.to_owned())
            .body(body.to_owned())
    };
    let json_type = "application/json";
    let cases = [
        ("{", json_type, 400, "bad_request"),
        ("", json_type, 400, "bad_request"),
        ("\u{0}\u{1}", json_type, 400, "bad_request"),
        ("{}", "text/plain", 415, "unsupported_media_type"),
        (
            "{}",
            "application/x-www-form-urlencoded",
            415,
            "unsupported_media_type",
        ),
        ("[]", json_type, 422, "unprocessable"),
        ("{}", json_type, 422, "unprocessable"),
        (r#"{"instruction":1}"#, json_type, 422, "unprocessable"),
        (r#"{"instruction":"  "}"#, json_type, 422, "unprocessable"),
        (
            r#"{"instruction":"x","sandbox":"off"}"#,
            json_type,
            422,
            "unprocessable",
        ),
        (
            r#"{"instruction":"x","permission_mode":"bypassPermissions"}"#,
            json_type,
            422,
            "unprocessable",
        ),
        (
            r#"{"instruction":"x","project":"../../etc"}"#,
            json_type,
            422,
            "unprocessable",
        ),
        (
            r#"{"instruction":"x","repository":"/etc"}"#,
            json_type,
            422,
            "unprocessable",
        ),
        (
            r#"{"instruction":"x","repository":"../elsewhere"}"#,
            json_type,
            422,
            "unprocessable",
        ),
    ];
    for (body, kind, status, code) in cases {
        let answer = stage.send(post(body, kind)).await;
        assert_eq!(
            answer.status.as_u16(),
            status,
            "{body} as {kind}: {}",
            answer.text
        );
        assert_eq!(answer.code(), code, "{body}");
    }
    stage.stop().await;
}

#[tokio::test]
async fn branches_models_and_budgets_are_checked_before_there_is_a_task() {
    let stage = Stage::new().await;
    let key = stage.key("a");
    let with = |name: &str, value: serde_json::Value| {
        let mut body = json!({"instruction": "x", "project": key});
        body[name] = value;
        body
    };
    let bad = [
        with("base", json!("--upload-pack=touch /tmp/x")),
        with("base", json!("a..b")),
        with("base", json!("a b")),
        with("base", json!("a\nb")),
        with("model", json!("no-such-model-anywhere")),
        with("max_budget_usd", json!(0)),
        with("max_budget_usd", json!(-1)),
        with("max_budget_usd", json!(1e300)),
        json!({"instruction": "x", "project": key, "base": "main", "pull_request": 1}),
        json!({"instruction": "x"}),
    ];
    for body in bad {
        let answer = stage.post(AccessRole::Write, "/api/v1/tasks", &body).await;
        assert_eq!(answer.status.as_u16(), 422, "{body}: {}", answer.text);
    }
    let listed = stage.get(AccessRole::Read, "/api/v1/tasks").await;
    assert_eq!(listed.json()["tasks"], json!([]));
    stage.stop().await;
}

#[tokio::test]
async fn a_body_of_ten_megabytes_is_refused_and_the_client_hears_why() {
    let stage = Stage::new().await;
    let body = json!({"instruction": "x".repeat(10 << 20)});
    let answer = stage.post(AccessRole::Write, "/api/v1/tasks", &body).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(answer.code(), "body_too_large");
    // Without a declared length it is counted.
    let chunk = || Ok::<_, std::io::Error>(vec![b' '; 64 << 10]);
    let chunks = futures::stream::iter((0..160).map(move |_| chunk()));
    let request = stage
        .request("POST", "/api/v1/tasks")
        .bearer_auth(stage.token(AccessRole::Write))
        .header("content-type", "application/json")
        .body(reqwest::Body::wrap_stream(chunks));
    match request.send().await {
        Ok(response) => assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE),
        // The connection is closed on a client that goes on sending.
        Err(error) => assert!(error.is_request() || error.is_body(), "{error}"),
    }
    stage.stop().await;
}

#[tokio::test]
async fn what_does_not_exist_is_not_found_and_paths_lead_nowhere_else() {
    let stage = Stage::new().await;
    let (project, elsewhere) = (
        stage.key("a"),
        codespar_server::ProjectKey::of(&stage.root("elsewhere")),
    );
    let paths = [
        "/api/v1/nothing".to_owned(),
        "/api/v1/tasks/w-00000000".to_owned(),
        "/api/v1/tasks/nonsense".to_owned(),
        "/api/v1/tasks/..%2f..%2fetc%2fpasswd".to_owned(),
        "/api/v1/tasks/%00".to_owned(),
        "/api/v1/tasks/w-00000000/output".to_owned(),
        "/api/v1/sessions/0190a5c2-7e1b-7c3a-9f00-5a1b2c3d4e5f".to_owned(),
        "/api/v1/sessions/%2e%2e/entries".to_owned(),
        "/api/v1/questions/q-00000000".to_owned(),
        format!("/api/v1/projects/{project}/pulls/1"),
        format!("/api/v1/projects/{project}/pulls/18446744073709551615"),
        format!("/api/v1/projects/{project}/pulls/-1"),
        format!("/api/v1/projects/{project}/pulls/1/diff"),
        format!("/api/v1/projects/{}/pulls", elsewhere.as_str()),
        "/api/v1/projects/..%2f..%2f/pulls".to_owned(),
        "/api/v1/tasks?project=000000000000".to_owned(),
        "/assets/../../../../etc/passwd".to_owned(),
        "/assets/%2e%2e/%2e%2e/etc/passwd".to_owned(),
    ];
    for path in paths {
        let answer = stage.get(AccessRole::Admin, &path).await;
        assert_eq!(
            answer.status,
            StatusCode::NOT_FOUND,
            "{path}: {}",
            answer.text
        );
        assert_eq!(answer.code(), "not_found", "{path}");
    }
    let wrong = stage.request("DELETE", "/api/v1/tasks");
    let wrong = stage
        .send(wrong.bearer_auth(stage.token(AccessRole::Admin)))
        .await;
    assert_eq!(wrong.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(wrong.code(), "method_not_allowed");
    stage.stop().await;
}

#[tokio::test]
async fn bad_parameters_are_refused() {
    let stage = Stage::new().await;
    let session = stage.session(&stage.root("a")).await;
    let paths = [
        "/api/v1/tasks?limit=0".to_owned(),
        "/api/v1/tasks?limit=201".to_owned(),
        "/api/v1/tasks?limit=x".to_owned(),
        "/api/v1/tasks?status=happy".to_owned(),
        "/api/v1/tasks?type=none".to_owned(),
        "/api/v1/tasks?cursor=none".to_owned(),
        "/api/v1/tasks?colour=red".to_owned(),
        "/api/v1/sessions?cursor=1".to_owned(),
        format!("/api/v1/sessions/{session}/entries?from=-1"),
        format!("/api/v1/sessions/{session}/entries?limit=501"),
        "/api/v1/usage?from=yesterday".to_owned(),
        "/api/v1/usage?from=2020-01-01&until=2026-01-01".to_owned(),
        "/api/v1/usage?from=2026-01-02&until=2026-01-01".to_owned(),
        "/api/v1/usage?until=-009999-01-01".to_owned(),
        "/api/v1/events?after=-1".to_owned(),
    ];
    for path in paths {
        let answer = stage.get(AccessRole::Read, &path).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{path}: {}",
            answer.text
        );
    }
    stage.stop().await;
}

#[tokio::test]
async fn names_of_other_sites_are_not_answered() {
    let stage = Stage::new().await;
    for (host, expected) in [
        ("127.0.0.1", 200),
        ("localhost:1234", 200),
        ("spar.example", 200),
        ("evil.example", 403),
        ("spar.example.evil.example", 403),
    ] {
        let request = stage
            .request("GET", "/api/v1/me")
            .bearer_auth(stage.token(AccessRole::Admin))
            .header("host", host);
        let answer = stage.send(request).await;
        assert_eq!(answer.status.as_u16(), expected, "{host}");
    }
    stage.stop().await;
}

#[tokio::test]
async fn every_answer_tells_browsers_to_keep_to_themselves() {
    let stage = Stage::new().await;
    for path in [
        "/",
        "/login",
        "/healthz",
        "/api/v1/me",
        "/nothing",
        "/api/openapi.json",
    ] {
        let answer = stage.send(stage.request("GET", path)).await;
        let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        assert!(
            header("content-security-policy").starts_with("default-src 'none'"),
            "{path}"
        );
        assert!(
            !header("content-security-policy").contains("unsafe"),
            "{path}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("referrer-policy"), "same-origin", "{path}");
        assert!(
            answer.headers.get("access-control-allow-origin").is_none(),
            "{path}"
        );
    }
    stage.stop().await;
}

#[tokio::test]
async fn clients_that_ask_too_often_are_told_to_wait() {
    let limits = ServerLimits {
        request_burst: 3,
        requests_per_second: 0,
        failure_burst: 2,
        failures_per_minute: 0,
        ..wide()
    };
    let stage = Stage::with(limits).await;
    let me = async |token: &str| {
        let request = stage.request("GET", "/api/v1/me").bearer_auth(token);
        stage.send(request).await.status.as_u16()
    };
    let token = stage.token(AccessRole::Read);
    assert_eq!(
        [me(token).await, me(token).await, me(token).await],
        [200; 3]
    );
    assert_eq!(me(token).await, 429);
    let statuses = [me("cspr_x").await, me("cspr_x").await, me("cspr_x").await];
    assert_eq!(statuses, [401, 401, 429]);
    // Nobody else is locked out by that.
    assert_eq!(me(stage.token(AccessRole::Admin)).await, 200);
    let form = stage.request("POST", "/login").body("token=cspr_wrong");
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(stage.send(form).await.status.as_u16(), 429);
    stage.stop().await;
}

#[tokio::test]
async fn a_client_that_never_ends_its_request_is_disconnected() {
    let limits = ServerLimits {
        header_time: Duration::from_millis(300),
        body_time: Duration::from_millis(300),
        ..wide()
    };
    let stage = Stage::with(limits).await;
    let mut silent = TcpStream::connect(stage.address).await.unwrap();
    silent
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: loc")
        .await
        .unwrap();
    let mut rest = Vec::new();
    let read = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut rest));
    assert!(read.await.is_ok(), "the connection is closed");
    let mut slow = TcpStream::connect(stage.address).await.unwrap();
    let head = format!(
        "POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        stage.token(AccessRole::Write)
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 64];
    let read = tokio::time::timeout(PATIENCE, slow.read(&mut answer)).await;
    let length = read.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    stage.stop().await;
}

#[tokio::test]
async fn more_connections_than_allowed_wait_for_a_place() {
    let limits = ServerLimits {
        connections: 2,
        ..wide()
    };
    let stage = Stage::with(limits).await;
    let first = TcpStream::connect(stage.address).await.unwrap();
    let second = TcpStream::connect(stage.address).await.unwrap();
    let mut third = TcpStream::connect(stage.address).await.unwrap();
    third
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = [0; 12];
    let early = tokio::time::timeout(Duration::from_millis(300), third.read_exact(&mut answer));
    assert!(early.await.is_err(), "it must wait");
    drop((first, second));
    let mut text = String::new();
    let read = tokio::time::timeout(PATIENCE, third.read_to_string(&mut text));
    read.await.unwrap().unwrap();
    assert!(text.ends_with("ok\n"), "{text}");
    stage.stop().await;
}

#[tokio::test]
async fn a_post_without_a_body_says_what_is_missing() {
    let stage = Stage::new().await;
    let task = stage.task("a", "waits").await;
    let path = format!("/api/v1/tasks/{}/stop", task.task_id);
    let request = stage
        .request("POST", &path)
        .bearer_auth(stage.token(AccessRole::Write));
    assert_eq!(stage.send(request).await.status.as_u16(), 415);
    let request = stage
        .request("POST", &path)
        .bearer_auth(stage.token(AccessRole::Write));
    let answer = stage.send(with_json(request, &json!({}))).await;
    assert_eq!(answer.json()["status"], "killed", "{}", answer.text);
    stage.stop().await;
}
