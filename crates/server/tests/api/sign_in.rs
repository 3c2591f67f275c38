//! People who sign in at a provider, and those who would like to be somebody else.

use std::collections::BTreeMap;

use codespar_runtime::SignInSettings;
use codespar_server::{ProviderAddress, ProviderSetup, SignInSetup, SignInSetupError};
use codespar_testkit::identity::{
    CLIENT_ID, CLIENT_SECRET, EmailPlace, FakeIdentityProvider, Forgery, IdentityPerson, SigningKey,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stage::{Answer, Stage};

/// A server with two OpenID Connect providers, `corp` and `other`, and `github`.
pub(crate) struct House {
    pub(crate) stage: Stage,
    corp: FakeIdentityProvider,
    other: FakeIdentityProvider,
    pub(crate) github: FakeIdentityProvider,
}

fn provider(name: &str, address: ProviderAddress) -> ProviderSetup {
    let settings = SignInSettings {
        client_id: CLIENT_ID.to_owned(),
        ..SignInSettings::default()
    };
    ProviderSetup::new(name, &settings, address, Some(CLIENT_SECRET.into()), None).unwrap()
}

fn github_at(url: &str) -> ProviderAddress {
    ProviderAddress::GitHub {
        server: url.parse().unwrap(),
        api: format!("{url}/api/v3").parse().unwrap(),
    }
}

impl House {
    pub(crate) async fn new() -> Self {
        let corp = FakeIdentityProvider::start().await.unwrap();
        let other = FakeIdentityProvider::start().await.unwrap();
        let github = FakeIdentityProvider::start().await.unwrap();
        let stage = Stage::with_providers(SignInSetup {
            public_url: None,
            providers: vec![
                provider("corp", ProviderAddress::Oidc(corp.url.clone())),
                provider("other", ProviderAddress::Oidc(other.url.clone())),
                provider("github", github_at(&github.url)),
            ],
        });
        let house = Self {
            stage: stage.await,
            corp,
            other,
            github,
        };
        house.set(&json!({
            "corp": {"emails": {"ada@example.com": "merge"}, "users": {"the-admin": "admin"}},
            "other": {"users": {"248289761001": "read"}},
            "github": {"type": "github", "users": {"ada": "write"}},
        }));
        house
    }

    /// What the settings say of the providers from now on.
    pub(crate) fn set(&self, sign_in: &Value) {
        let settings = json!({"server": {"signIn": sign_in}});
        let file = self.stage.root("state").join("settings.json");
        std::fs::write(file, settings.to_string()).unwrap();
    }

    pub(crate) async fn stop(self) {
        self.stage.stop().await;
    }
}

/// Keeps cookies, follows no redirection by itself.
#[derive(Default, Clone)]
pub(crate) struct Browser {
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    /// Cookies go to the server alone, as browsers keep them by host and port here.
    pub(crate) async fn get(&mut self, house: &House, url: &str) -> Answer {
        let base = house.stage.url("");
        let whole = match url.starts_with('/') {
            true => format!("{base}{url}"),
            false => url.to_owned(),
        };
        let mut request = house.stage.client.get(&whole);
        if whole.starts_with(&base) {
            let pairs = self.cookies.iter();
            let pairs: Vec<_> = pairs
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            request = request.header("cookie", pairs.join("; "));
        }
        let answer = house.stage.send(request).await;
        for set in answer.headers.get_all("set-cookie") {
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        answer
    }

    /// To the provider and up to the address that it sends the browser back to.
    async fn until_callback(&mut self, house: &House, start: &str) -> String {
        let begun = self.get(house, start).await;
        assert_eq!(begun.status, StatusCode::SEE_OTHER, "{}", begun.text);
        let page = location(&begun);
        let answered = self.get(house, &page).await;
        assert_eq!(answered.status, StatusCode::FOUND, "{}", answered.text);
        location(&answered)
    }

    pub(crate) async fn sign_in(&mut self, house: &House, start: &str) -> Answer {
        let callback = self.until_callback(house, start).await;
        self.get(house, &callback).await
    }

    /// The role of whoever is signed in.
    async fn role(&mut self, house: &House) -> Value {
        self.get(house, "/api/v1/me").await.json()["role"].clone()
    }
}

pub(crate) fn location(answer: &Answer) -> String {
    answer.headers["location"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_person_signs_in_at_a_provider_and_out_again() {
    let house = House::new().await;
    let mut browser = Browser::default();
    let page = browser
        .get(&house, "/login?next=/board%3Fproject%3Da")
        .await;
    let start = format!(
        "{}?next=%2Fboard%3Fproject%3Da",
        house.stage.url("/login/corp")
    );
    assert!(
        page.text.contains(&start.replace('&', "&amp;")),
        "{}",
        page.text
    );
    assert!(page.text.contains("Sign in with GitHub"), "{}", page.text);
    let done = browser.sign_in(&house, &start).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    assert_eq!(location(&done), "/board?project=a");
    let me = browser.get(&house, "/api/v1/me").await.json();
    assert_eq!(me["role"], "merge");
    assert_eq!(me["name"], "sign-in:corp:ada@example.com#248289761001");
    let board = browser.get(&house, "/board").await;
    assert!(board.text.contains(">ada@example.com<"), "{}", board.text);
    // Only the cookie of the session is left.
    assert_eq!(browser.cookies.len(), 1, "{:?}", browser.cookies);
    let cookie = format!("codespar_session={}", browser.cookies["codespar_session"]);
    let out = house
        .stage
        .request("POST", "/logout")
        .header("cookie", cookie);
    let out = house
        .stage
        .send(out.header("sec-fetch-site", "same-origin"))
        .await;
    assert_eq!(out.status, StatusCode::SEE_OTHER);
    let after = browser.get(&house, "/api/v1/me").await;
    assert_eq!(after.status, StatusCode::UNAUTHORIZED);
    house.stop().await;
}

#[tokio::test]
async fn the_cookie_of_an_attempt_is_for_the_browser_alone_and_for_minutes() {
    let house = House::new().await;
    let begun = Browser::default().get(&house, "/login/corp").await;
    let set = begun.headers["set-cookie"].to_str().unwrap();
    for part in [
        "codespar_sign_in=",
        "HttpOnly",
        "SameSite=Lax",
        "Max-Age=600",
    ] {
        assert!(set.contains(part), "{set}");
    }
    let page: url::Url = location(&begun).parse().unwrap();
    let query: BTreeMap<String, String> = page.query_pairs().into_owned().collect();
    assert_eq!(query["scope"], "openid email");
    assert_eq!(query["code_challenge_method"], "S256");
    for name in ["state", "nonce"] {
        assert_eq!(query[name].len(), 43);
        assert!(!set.contains(&query[name]), "sealed");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_person_signs_in_at_github_by_login_or_number() {
    let house = House::new().await;
    let mut browser = Browser::default();
    let done = browser.sign_in(&house, "/login/github").await;
    assert_eq!(location(&done), "/");
    assert_eq!(browser.role(&house).await, "write");
    // The login of a stranger who took it over after a renaming.
    house.set(&json!({"github": {"type": "github", "users": {"id:583231": "admin"}}}));
    let mut again = Browser::default();
    again.sign_in(&house, "/login/github").await;
    assert_eq!(again.role(&house).await, "admin");
    let taken = IdentityPerson {
        id: 999,
        ..IdentityPerson::ada()
    };
    house.github.set_person(taken);
    let refused = Browser::default().sign_in(&house, "/login/github").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.text.contains("ada at GitHub has no role here"));
    house.stop().await;
}

#[tokio::test]
async fn both_kinds_of_signatures_are_believed() {
    let house = House::new().await;
    for key in [SigningKey::Rsa, SigningKey::Elliptic] {
        house.corp.sign_with(key);
        let mut browser = Browser::default();
        browser.sign_in(&house, "/login/corp").await;
        assert_eq!(browser.role(&house).await, "merge", "{key:?}");
    }
    house.stop().await;
}

#[tokio::test]
async fn no_forged_token_is_believed() {
    let house = House::new().await;
    for key in [SigningKey::Rsa, SigningKey::Elliptic] {
        for forgery in Forgery::ALL {
            // An elliptic signature under an elliptic header is no forgery.
            if (key, forgery) == (SigningKey::Elliptic, Forgery::OtherAlgorithm) {
                continue;
            }
            house.corp.sign_with(key);
            house.corp.forge(forgery);
            let mut browser = Browser::default();
            let refused = browser.sign_in(&house, "/login/corp").await;
            assert_eq!(refused.status, StatusCode::BAD_GATEWAY, "{forgery:?}");
            assert!(refused.text.contains("cannot be used"), "{}", refused.text);
            assert!(browser.cookies.is_empty(), "{forgery:?}");
        }
    }
    let tokens = house.stage.store().tokens().await.unwrap();
    assert!(
        tokens
            .iter()
            .all(|token| !token.name.starts_with("sign-in:"))
    );
    let mut browser = Browser::default();
    browser.sign_in(&house, "/login/corp").await;
    assert_eq!(
        browser.role(&house).await,
        "merge",
        "and a good one still is"
    );
    house.stop().await;
}

#[tokio::test]
async fn an_answer_counts_once_in_the_browser_that_asked() {
    let house = House::new().await;
    let mut ann = Browser::default();
    let callback = ann.until_callback(&house, "/login/corp").await;
    // Slipped to another browser, with and without an attempt of its own (login CSRF).
    let mut eve = Browser::default();
    for _ in 0..2 {
        let refused = eve.get(&house, &callback).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert!(refused.text.contains("another browser"), "{}", refused.text);
        assert!(!eve.cookies.contains_key("codespar_session"));
        eve.until_callback(&house, "/login/corp").await;
    }
    // A made-up state, or none, does not use the attempt up.
    for path in [
        "/login/corp/callback?code=code-1&state=guessed",
        "/login/corp/callback?code=code-1",
        "/login/corp/callback?state=a&state=b",
        "/login/corp/callback",
    ] {
        assert_eq!(ann.get(&house, path).await.status, StatusCode::BAD_REQUEST);
    }
    let before = ann.clone();
    let done = ann.get(&house, &callback).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    // Again, with the cookie that it was answered with.
    let mut replaying = before;
    let replayed = replaying.get(&house, &callback).await;
    assert_eq!(replayed.status, StatusCode::BAD_REQUEST);
    assert!(!replaying.cookies.contains_key("codespar_session"));
    house.stop().await;
}

#[tokio::test]
async fn a_code_is_good_for_one_attempt() {
    let house = House::new().await;
    let mut ann = Browser::default();
    let stolen = ann.until_callback(&house, "/login/corp").await;
    let stolen: url::Url = stolen.parse().unwrap();
    let code = stolen.query_pairs().find(|(name, _)| name == "code");
    let code = code.unwrap().1.into_owned();
    // Eve puts the code of Ann into an attempt of her own: the verifier does not fit.
    let mut eve = Browser::default();
    let own = eve.until_callback(&house, "/login/corp").await;
    let mut own: url::Url = own.parse().unwrap();
    let state = own.query_pairs().find(|(name, _)| name == "state");
    let state = state.unwrap().1.into_owned();
    own.query_pairs_mut()
        .clear()
        .extend_pairs([("code", code), ("state", state)]);
    let refused = eve.get(&house, own.as_str()).await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    // It is used up for Ann, too.
    let late = ann.get(&house, stolen.as_str()).await;
    assert_eq!(late.status, StatusCode::BAD_GATEWAY);
    assert!(!ann.cookies.contains_key("codespar_session"));
    house.stop().await;
}

#[tokio::test]
async fn an_answer_of_one_provider_is_none_of_another() {
    let house = House::new().await;
    let mut browser = Browser::default();
    let callback = browser.until_callback(&house, "/login/other").await;
    let mixed = callback.replace("/login/other/callback", "/login/corp/callback");
    assert_eq!(
        browser.get(&house, &mixed).await.status,
        StatusCode::BAD_REQUEST
    );
    let named = format!("{callback}&iss={}", house.corp.url);
    let refused = browser.get(&house, &named).await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY, "another issuer");
    assert!(!browser.cookies.contains_key("codespar_session"));
    // A provider that says it is another one.
    house.other.claim_to_be(&house.corp.url);
    let fresh = Stage::with_providers(SignInSetup {
        public_url: None,
        providers: vec![provider(
            "other",
            ProviderAddress::Oidc(house.other.url.clone()),
        )],
    })
    .await;
    let refused = fresh.send(fresh.request("GET", "/login/other")).await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    fresh.stop().await;
    house.stop().await;
}

#[tokio::test]
async fn an_address_counts_if_the_provider_has_verified_it() {
    let house = House::new().await;
    for (verified, is_in) in [
        (json!(true), true),
        (json!("true"), true),
        (json!(false), false),
        (json!("false"), false),
        (json!(null), false),
        (json!(1), false),
    ] {
        let person = IdentityPerson {
            email_verified: verified.clone(),
            ..IdentityPerson::ada()
        };
        for place in [EmailPlace::IdToken, EmailPlace::UserInfo] {
            house.corp.set_person(person.clone());
            house.corp.set_email_place(place);
            let mut browser = Browser::default();
            let done = browser.sign_in(&house, "/login/corp").await;
            let expected = match is_in {
                true => StatusCode::SEE_OTHER,
                false => StatusCode::FORBIDDEN,
            };
            assert_eq!(done.status, expected, "{verified} {place:?}: {}", done.text);
        }
    }
    house.corp.set_person(IdentityPerson::ada());
    house.corp.set_email_place(EmailPlace::UserInfo);
    house.corp.tell_of("somebody-else");
    let refused = Browser::default().sign_in(&house, "/login/corp").await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    house.stop().await;
}

#[tokio::test]
async fn strangers_are_refused_unless_everyone_may_read() {
    let house = House::new().await;
    let eve = IdentityPerson {
        subject: "eve".to_owned(),
        email: Some("eve@example.com".to_owned()),
        ..IdentityPerson::ada()
    };
    house.corp.set_person(eve);
    let refused = Browser::default().sign_in(&house, "/login/corp").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(
        refused
            .text
            .contains("eve@example.com at corp has no role here")
    );
    house.set(&json!({"corp": {"everyone": "read"}}));
    let mut browser = Browser::default();
    browser.sign_in(&house, "/login/corp").await;
    assert_eq!(browser.role(&house).await, "read");
    house.stop().await;
}

#[tokio::test]
async fn who_is_taken_out_of_the_settings_is_out_with_the_next_request() {
    let house = House::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&house, "/login/corp").await;
    assert_eq!(browser.role(&house).await, "merge");
    house.set(&json!({"corp": {"emails": {"bob@example.com": "merge"}}}));
    let out = browser.get(&house, "/api/v1/me").await;
    assert_eq!(out.status, StatusCode::UNAUTHORIZED);
    // With a weaker role they sign in again, and the stronger token is gone.
    house.set(&json!({"corp": {"emails": {"ada@example.com": "read"}}}));
    browser.sign_in(&house, "/login/corp").await;
    assert_eq!(browser.role(&house).await, "read");
    let tokens = house.stage.store().tokens().await.unwrap();
    let in_force = tokens.iter().filter(|token| token.revoked_at.is_none());
    let hers: Vec<_> = in_force
        .filter(|token| token.name.starts_with("sign-in:"))
        .collect();
    assert_eq!(hers.len(), 1);
    // A revoked token keeps the person out, under another address, too.
    house.stage.store().revoke_token(&hers[0].id).await.unwrap();
    let renamed = IdentityPerson {
        email: Some("ada@new.example.com".to_owned()),
        ..IdentityPerson::ada()
    };
    house.set(&json!({"corp": {"everyone": "read"}}));
    house.corp.set_person(renamed);
    let refused = Browser::default().sign_in(&house, "/login/corp").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    house.stop().await;
}

#[tokio::test]
async fn signing_in_leads_to_no_other_site() {
    let house = House::new().await;
    for next in [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/",
        "/\t/evil.example",
        "javascript:alert(1)",
        "%2f%2fevil.example",
    ] {
        let next: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
        let mut browser = Browser::default();
        let done = browser
            .sign_in(&house, &format!("/login/corp?next={next}"))
            .await;
        assert_eq!(location(&done), "/", "{next}");
        let page = browser.get(&house, &format!("/login?next={next}")).await;
        assert!(!page.text.contains("evil"), "{next}: {}", page.text);
    }
    // Encoded once more it is a path of this server.
    let done = Browser::default()
        .sign_in(&house, "/login/corp?next=/%252f%252fevil")
        .await;
    assert_eq!(location(&done), "/%2f%2fevil");
    house.stop().await;
}

#[tokio::test]
async fn changed_keys_are_fetched_once_and_not_for_every_token() {
    let house = House::new().await;
    let sign_in = async || {
        let mut browser = Browser::default();
        browser.sign_in(&house, "/login/corp").await.status
    };
    assert_eq!(sign_in().await, StatusCode::SEE_OTHER);
    assert_eq!(house.corp.count("/keys"), 1);
    house.corp.change_keys().unwrap();
    assert_eq!(sign_in().await, StatusCode::SEE_OTHER);
    assert_eq!(house.corp.count("/keys"), 2);
    for _ in 0..3 {
        house.corp.forge(Forgery::UnknownKey);
        assert_eq!(sign_in().await, StatusCode::BAD_GATEWAY);
    }
    assert_eq!(house.corp.count("/keys"), 2, "at most once a minute");
    assert_eq!(house.corp.count("/.well-known/openid-configuration"), 1);
    house.stop().await;
}

#[tokio::test]
async fn a_provider_that_declines_or_is_down_is_told_without_its_words() {
    let house = House::new().await;
    let decline = async |code: &str| {
        let mut browser = Browser::default();
        let callback = browser.until_callback(&house, "/login/corp").await;
        let callback = callback.replace(
            "code=",
            &format!("error={code}&error_description=%3Cscript%3Eevil%3C%2Fscript%3E&x="),
        );
        browser.get(&house, &callback).await
    };
    let declined = decline("access_denied").await;
    assert_eq!(declined.status, StatusCode::FORBIDDEN);
    assert!(
        declined.text.contains("did not let you in"),
        "{}",
        declined.text
    );
    let failed = decline("%3Cb%3Eevil").await;
    assert_eq!(failed.status, StatusCode::BAD_GATEWAY);
    for page in [declined, failed] {
        assert!(!page.text.contains("evil"), "{}", page.text);
    }
    house.other.set_down(true);
    let down = Browser::default().get(&house, "/login/other").await;
    assert_eq!(down.status, StatusCode::BAD_GATEWAY);
    assert!(down.text.contains("cannot be reached"), "{}", down.text);
    assert!(!down.text.contains(&house.other.url), "{}", down.text);
    let nobody = Browser::default().get(&house, "/login/nobody").await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
    house.stop().await;
}

#[test]
fn half_a_provider_is_refused_at_the_start() {
    let settings = |value: Value| -> SignInSettings { serde_json::from_value(value).unwrap() };
    let fine = settings(json!({"clientId": "x"}));
    let oidc = |issuer: &str| ProviderAddress::Oidc(issuer.to_owned());
    let new = |name: &str, settings: &SignInSettings, address| {
        ProviderSetup::new(name, settings, address, None, None).map(|_| ())
    };
    assert_eq!(new("corp", &fine, oidc("https://id.example.com")), Ok(()));
    for issuer in [
        "http://id.example.com",
        "https://id.example.com?x=1",
        "https://id.example.com#x",
        "id.example.com",
        "",
    ] {
        let refused = new("corp", &fine, oidc(issuer));
        assert_eq!(refused, Err(SignInSetupError::Address(issuer.to_owned())));
    }
    for name in ["", "Corp", "a:b", "a/b", "a#b", "a b"] {
        let refused = new(name, &fine, oidc("https://id.example.com"));
        assert_eq!(refused, Err(SignInSetupError::Name(name.to_owned())));
    }
    let without = new("corp", &settings(json!({})), oidc("https://id.example.com"));
    assert_eq!(without, Err(SignInSetupError::ClientId("corp".to_owned())));
    let open = settings(json!({"clientId": "x", "everyone": "write"}));
    let open = new("corp", &open, oidc("https://id.example.com"));
    assert_eq!(open, Err(SignInSetupError::Everyone("corp".to_owned())));
    let github = new("github", &fine, github_at("https://github.com"));
    assert_eq!(github, Err(SignInSetupError::Secret("github".to_owned())));
}
