//! Signing in at a provider, through the real binary.

use codespar_testkit::{
    Script,
    identity::{CLIENT_ID, CLIENT_SECRET, FakeIdentityProvider},
    process::spawn,
};
use serde_json::{Value, json};

use crate::{
    client::{client_builder, serve, started},
    common::{Bench, PATIENCE},
};

fn write_settings(bench: &Bench, server: &Value) {
    let file = bench.room.codespar_home().join("settings.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, json!({ "server": server }).to_string()).unwrap();
}

/// The role of whoever went through the sign-in that begins at this address.
fn role_after(runtime: &tokio::runtime::Runtime, base: &str, start: &str) -> Value {
    let none = reqwest::redirect::Policy::none();
    let client = client_builder().redirect(none).build().unwrap();
    runtime.block_on(async {
        let get = async |url: String, cookies: Vec<String>| {
            let request = client.get(url).header("cookie", cookies.join("; "));
            let response = request.send().await.unwrap();
            let header = |name: &'static str| response.headers().get_all(name).iter();
            let text = |value: &reqwest::header::HeaderValue| value.to_str().unwrap().to_owned();
            let location = header("location").next().map(text);
            let cookies: Vec<String> = header("set-cookie")
                .map(|value| text(value).split(';').next().unwrap().to_owned())
                .collect();
            (location, cookies, response.text().await.unwrap())
        };
        let (page, cookies, text) = get(format!("{base}{start}"), Vec::new()).await;
        let (callback, _, _) = get(page.expect(&text), Vec::new()).await;
        let (next, session, text) = get(callback.unwrap(), cookies).await;
        assert_eq!(next.as_deref(), Some("/board"), "{text}");
        let (_, _, me) = get(format!("{base}/api/v1/me"), session).await;
        serde_json::from_str::<Value>(&me).unwrap()["role"].clone()
    })
}

#[test]
fn people_sign_in_at_a_provider_and_at_github() {
    let bench = Bench::new(Script::new());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let provider = runtime.block_on(FakeIdentityProvider::start()).unwrap();
    let secret = bench.room.codespar_home().join("client.secret");
    write_settings(
        &bench,
        &json!({"signIn": {
            "corp": {
                "issuer": provider.url, "clientId": CLIENT_ID, "clientSecretFile": secret,
                "emails": {"ada@example.com": "merge"},
            },
            "github": {
                "type": "github", "clientId": CLIENT_ID, "clientSecretEnv": "SIGN_IN_SECRET",
                "users": {"ada": "write"},
            },
        }}),
    );
    std::fs::write(&secret, format!("{CLIENT_SECRET}\n")).unwrap();
    let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("SIGN_IN_SECRET", CLIENT_SECRET);
    command.env("GITHUB_SERVER_URL", &provider.url);
    let served = started(&mut command);
    let corp = role_after(&runtime, &served.base, "/login/corp?next=/board");
    assert_eq!(corp, "merge");
    let github = role_after(&runtime, &served.base, "/login/github?next=/board");
    assert_eq!(github, "write");
    let tokens = bench.run(&["token", "list"]);
    for name in ["sign-in:corp:ada@example.com", "sign-in:github:ada"] {
        assert!(tokens.stdout.contains(name), "{}", tokens.stdout);
    }
}

#[test]
fn half_a_provider_is_refused() {
    let bench = Bench::new(Script::new());
    let corp = json!({"issuer": "https://id.example.com", "clientId": "x"});
    let with = |key: &str, value: Value| {
        let mut corp = corp.clone();
        corp[key] = value;
        json!({"signIn": {"corp": corp}})
    };
    for (server, reason) in [
        (
            with("issuer", Value::Null),
            "server.signIn.corp.issuer is missing",
        ),
        (
            with("issuer", json!("http://id.example.com")),
            "is no https address",
        ),
        (
            with("clientSecretEnv", json!("NOT_SET")),
            "NOT_SET is not set",
        ),
        (
            with("clientSecretFile", json!("/nonexistent")),
            "/nonexistent: ",
        ),
        (
            with("everyone", json!("admin")),
            "everyone can be `read` alone",
        ),
        (
            with("clientSecret", json!("x")),
            "unknown field `clientSecret`",
        ),
    ] {
        write_settings(&bench, &server);
        let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0"]);
        let refused = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
    write_settings(&bench, &json!({"publicUrl": "https://spar.example.com"}));
    serve(&bench, &[]);
}
