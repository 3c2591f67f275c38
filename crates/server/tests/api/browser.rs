//! Browsers: signing in, and pages of other sites that use the cookie.

use codespar_protocol::AccessRole;
use reqwest::StatusCode;
use serde_json::json;

use crate::stage::{Answer, Stage, with_json};

const FORM: &str = "application/x-www-form-urlencoded";

async fn sign_in(stage: &Stage, token: &str) -> Answer {
    let request = stage
        .request("POST", "/login")
        .header("content-type", FORM)
        .header("origin", stage.url(""))
        .body(format!("token={token}"));
    stage.send(request).await
}

fn cookie_of(answer: &Answer) -> String {
    let set = answer.headers["set-cookie"].to_str().unwrap();
    set.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_browser_signs_in_with_a_token_and_out_again() {
    let stage = Stage::new().await;
    let home = stage.send(stage.request("GET", "/")).await;
    assert_eq!(home.headers["location"], "/login");
    let answer = sign_in(&stage, stage.token(AccessRole::Write)).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let set = answer.headers["set-cookie"].to_str().unwrap();
    for part in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age="] {
        assert!(set.contains(part), "{set}");
    }
    assert!(
        !set.contains(stage.token(AccessRole::Write)),
        "the cookie is not the token"
    );
    let cookie = cookie_of(&answer);
    let me = async || {
        let request = stage.request("GET", "/api/v1/me").header("cookie", &cookie);
        stage.send(request).await
    };
    assert_eq!(me().await.json()["role"], "write");
    let out = stage
        .request("POST", "/logout")
        .header("cookie", &cookie)
        .header("sec-fetch-site", "same-origin");
    assert_eq!(stage.send(out).await.status, StatusCode::SEE_OTHER);
    assert_eq!(me().await.status, StatusCode::UNAUTHORIZED);
    stage.stop().await;
}

#[tokio::test]
async fn a_session_ends_with_its_token() {
    let stage = Stage::new().await;
    let cookie = cookie_of(&sign_in(&stage, stage.token(AccessRole::Read)).await);
    let me = async || {
        let request = stage.request("GET", "/api/v1/me").header("cookie", &cookie);
        stage.send(request).await.status
    };
    assert_eq!(me().await, StatusCode::OK);
    let tokens = stage.store().tokens().await.unwrap();
    let token = tokens.iter().find(|token| token.name == "read").unwrap();
    stage.store().revoke_token(&token.id).await.unwrap();
    assert_eq!(me().await, StatusCode::UNAUTHORIZED);
    stage.stop().await;
}

#[tokio::test]
async fn the_printed_link_signs_one_browser_in_once() {
    let stage = Stage::new().await;
    let shown = stage.send(stage.request("GET", &stage.sign_in)).await;
    assert_eq!(shown.status, StatusCode::OK);
    // Looking at the link does not use it up.
    let code = stage.sign_in.split_once("code=").unwrap().1.to_owned();
    assert!(shown.text.contains(&code));
    let first = sign_in(&stage, &code).await;
    let request = stage
        .request("GET", "/api/v1/me")
        .header("cookie", cookie_of(&first));
    assert_eq!(stage.send(request).await.json()["role"], "admin");
    let second = sign_in(&stage, &code).await;
    assert_eq!(second.status, StatusCode::UNAUTHORIZED);
    assert!(second.headers.get("set-cookie").is_none());
    stage.stop().await;
}

#[tokio::test]
async fn pages_of_other_sites_change_nothing_with_the_cookie() {
    let stage = Stage::new().await;
    let cookie = cookie_of(&sign_in(&stage, stage.token(AccessRole::Admin)).await);
    let own = stage.url("");
    let attempts: [(&[(&str, &str)], bool); 7] = [
        (&[("origin", "http://evil.example")], false),
        (&[("sec-fetch-site", "cross-site")], false),
        (
            &[
                ("sec-fetch-site", "same-site"),
                ("origin", "http://localhost:9"),
            ],
            false,
        ),
        (&[("origin", "null")], false),
        (&[], false),
        (
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://evil.example"),
            ],
            false,
        ),
        (&[("sec-fetch-site", "same-origin"), ("origin", &own)], true),
    ];
    for (headers, is_served) in attempts {
        let task = stage.task("a", "waits").await;
        let path = format!("/api/v1/tasks/{}/stop", task.task_id);
        let mut request = stage.request("POST", &path).header("cookie", &cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = stage.send(with_json(request, &json!({}))).await;
        let expected = if is_served {
            StatusCode::OK
        } else {
            StatusCode::FORBIDDEN
        };
        assert_eq!(answer.status, expected, "{headers:?}");
        let status = stage.store().task(&task.task_id).await.unwrap().status;
        assert_eq!(status.is_final(), is_served, "{headers:?}");
    }
    // Nor do they sign the browser in or out.
    for path in ["/login", "/logout"] {
        let request = stage
            .request("POST", path)
            .header("cookie", &cookie)
            .header("origin", "http://evil.example")
            .header("content-type", FORM)
            .body(format!("token={}", stage.token(AccessRole::Read)));
        assert_eq!(
            stage.send(request).await.status,
            StatusCode::FORBIDDEN,
            "{path}"
        );
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_wrong_token_is_not_made_up_for_by_a_cookie() {
    let stage = Stage::new().await;
    let cookie = cookie_of(&sign_in(&stage, stage.token(AccessRole::Admin)).await);
    let request = stage
        .request("GET", "/api/v1/me")
        .header("cookie", cookie)
        .header("authorization", "Bearer cspr_wrong");
    assert_eq!(stage.send(request).await.status, StatusCode::UNAUTHORIZED);
    stage.stop().await;
}
