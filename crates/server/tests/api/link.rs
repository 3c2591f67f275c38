//! Linking a chat account with an account at GitHub: who could gain what by whom.

use std::sync::atomic::{AtomicU64, Ordering};

use codespar_channels::{Inbound, Privacy, Speaker, SpeakerKind, ThreadRef};
use codespar_testkit::identity::IdentityPerson;
use reqwest::StatusCode;
use serde_json::json;

use crate::{
    sign_in::{Browser, House, location},
    stage::{Answer, PATIENCE},
};

static COUNT: AtomicU64 = AtomicU64::new(1);

/// Says something in Slack and gives the reply.
async fn say(house: &House, user: &str, text: &str) -> String {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let thread = format!("t{number}");
    let at = ThreadRef {
        channel: "slack".to_owned(),
        conversation: "dev".to_owned(),
        thread,
    };
    let inbound = Inbound {
        identity: format!("slack:{number}"),
        at: at.clone(),
        speaker: Speaker {
            id: user.to_owned(),
            name: format!("{user} the Great"),
            kind: SpeakerKind::Person,
        },
        mentioned: true,
        privacy: Privacy::Room,
        text: format!("@codespar {text}"),
        images: Vec::new(),
        reply_to: None,
    };
    house.stage.core.receive(inbound).await.unwrap();
    let reply = async {
        loop {
            let sent = house.stage.store().sent_to_thread(&at, 10).await.unwrap();
            if let Some(row) = sent.first() {
                return row.body.clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reply).await.unwrap()
}

async fn post(house: &House, browser: &Browser, path: &str, form: &[(&str, &str)]) -> Answer {
    let pairs = browser.cookies.iter();
    let cookies: Vec<_> = pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(form)
        .finish();
    let request = house
        .stage
        .request("POST", path)
        .header("cookie", cookies.join("; "))
        .header("origin", house.stage.url(""))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body);
    house.stage.send(request).await
}

/// A house in which Slack is served and Ada is signed in at GitHub.
async fn with_ada() -> (House, Browser) {
    let house = House::new().await;
    house.stage.serve_channel("slack");
    let mut ada = Browser::default();
    let done = ada.sign_in(&house, "/login/github").await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    (house, ada)
}

/// The code that a page shows.
async fn code(house: &House, browser: &mut Browser) -> String {
    let begun = post(house, browser, "/link", &[]).await;
    assert_eq!(location(&begun), "/link", "{}", begun.text);
    let page = browser.get(house, "/link").await.text;
    let (_, after) = page.split_once("@codespar whoami ").unwrap();
    after.split('<').next().unwrap().to_owned()
}

async fn linked(house: &House, user: &str) -> Option<String> {
    let person = house.stage.store().person("slack", user).await.unwrap();
    person.and_then(|one| one.forge_login)
}

#[tokio::test]
async fn a_person_links_their_own_chat_account() {
    let (house, mut ada) = with_ada().await;
    let code = code(&house, &mut ada).await;
    let reply = say(&house, "U1", &format!("whoami {code}")).await;
    assert!(reply.contains("confirm U1 the Great (U1)"), "{reply}");
    assert_eq!(
        linked(&house, "U1").await,
        None,
        "nothing before it is confirmed"
    );
    let page = ada.get(&house, "/link").await.text;
    assert!(page.contains("U1 the Great"), "{page}");
    let form = [
        ("code", code.as_str()),
        ("channel", "slack"),
        ("user", "U1"),
    ];
    let done = post(&house, &ada, "/link/confirm", &form).await;
    assert_eq!(location(&done), "/link", "{}", done.text);
    assert_eq!(linked(&house, "U1").await.as_deref(), Some("ada"));
    let audit = house.stage.store().audit(0, 100).await.unwrap();
    let entry = audit.iter().find(|one| one.entry.action == "link account");
    let detail = &entry.unwrap().entry.detail;
    assert!(detail.contains("ada at the forge, confirmed by sign-in:github:ada#583231"));
    // Once.
    let again = post(&house, &ada, "/link/confirm", &form).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let again = say(&house, "U2", &format!("whoami {code}")).await;
    assert!(again.contains("you have no role here"), "{again}");
    house.stop().await;
}

#[tokio::test]
async fn an_account_that_was_not_shown_is_not_linked() {
    let (house, mut ada) = with_ada().await;
    let code = code(&house, &mut ada).await;
    // Eve reads the code in the channel: the first one who wrote it counts, and is shown.
    say(&house, "U1", &format!("whoami {code}")).await;
    let late = say(&house, "EVE", &format!("whoami {code}")).await;
    assert!(late.contains("you have no role here"), "{late}");
    let form = |user| {
        [
            ("code", code.clone()),
            ("channel", "slack".to_owned()),
            ("user", user),
        ]
    };
    for user in ["EVE", "", "u1"] {
        let form = form(user.to_owned());
        let form: Vec<(&str, &str)> = form
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let refused = post(&house, &ada, "/link/confirm", &form).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{user}");
    }
    assert_eq!(linked(&house, "EVE").await, None);
    // Eve was first: Ada sees it, says no, and the code is worth nothing.
    let code = super::link::code(&house, &mut ada).await;
    say(&house, "EVE", &format!("whoami {code}")).await;
    let page = ada.get(&house, "/link").await.text;
    assert!(page.contains("EVE the Great"), "{page}");
    super::link::code(&house, &mut ada).await;
    let form = [
        ("code", code.as_str()),
        ("channel", "slack"),
        ("user", "EVE"),
    ];
    let refused = post(&house, &ada, "/link/confirm", &form).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    assert_eq!(linked(&house, "EVE").await, None);
    house.stop().await;
}

#[tokio::test]
async fn nobody_confirms_for_somebody_else() {
    let (house, mut ada) = with_ada().await;
    house
        .set(&json!({"github": {"type": "github", "everyone": "read", "users": {"ada": "write"}}}));
    house.github.set_person(IdentityPerson {
        login: "eve".to_owned(),
        id: 666,
        ..IdentityPerson::ada()
    });
    let mut eve = Browser::default();
    eve.sign_in(&house, "/login/github").await;
    let code = code(&house, &mut ada).await;
    say(&house, "EVE", &format!("whoami {code}")).await;
    let form = [
        ("code", code.as_str()),
        ("channel", "slack"),
        ("user", "EVE"),
    ];
    let refused = post(&house, &eve, "/link/confirm", &form).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    // A page of another site cannot make the browser of Ada confirm it.
    let pairs = ada.cookies.iter();
    let cookies: Vec<_> = pairs
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let request = house.stage.request("POST", "/link/confirm");
    let request = request
        .header("cookie", cookies.join("; "))
        .header("origin", "http://evil.example")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("code={code}&channel=slack&user=EVE"));
    assert_eq!(
        house.stage.send(request).await.status,
        StatusCode::FORBIDDEN
    );
    assert_eq!(linked(&house, "EVE").await, None);
    house.stop().await;
}

#[tokio::test]
async fn only_who_signed_in_at_github_gets_a_code() {
    let (house, _) = with_ada().await;
    let mut other = Browser::default();
    other.sign_in(&house, "/login/corp").await;
    let page = other.get(&house, "/link").await.text;
    assert!(page.contains("Sign in with GitHub to link"), "{page}");
    let refused = post(&house, &other, "/link", &[]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let stranger = Browser::default().get(&house, "/link").await;
    assert_eq!(location(&stranger), "/login?next=%2Flink");
    house.stop().await;
}
