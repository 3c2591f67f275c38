//! An app: who it says it is is proven by its key, and its tokens are for one repository.
//!
//! The key is one that was made for these tests and is used nowhere else.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::{
    FakeGitHub,
    answer::{Answer, Answered, plain_page},
    route::{Asked, not_found},
    state::{Level, State, TokenKind, User},
};

/// The key of the app as GitHub gives it.
pub const APP_KEY_PKCS1: &str = include_str!("keys/app-pkcs1.pem");
/// The same key in the other form.
pub const APP_KEY_PKCS8: &str = include_str!("keys/app-pkcs8.pem");
/// The app that has the key.
pub const APP_ID: &str = "12345";

/// GitHub takes at most this between now and the end of a token that an app signs.
const LONGEST: i64 = 600;

pub(super) struct App {
    slug: String,
    permissions: Value,
    events: Vec<String>,
    deliveries: Vec<Attempt>,
    redelivered: Vec<u64>,
    made_tokens: u64,
    /// How long new tokens last.
    lifetime: SignedDuration,
}

#[derive(Clone)]
struct Attempt {
    id: u64,
    guid: String,
    at: Timestamp,
    status: u16,
    event: String,
}

/// What a signed token claims, if it is signed by the key of the app.
pub fn app_claims(jwt: &str) -> Option<Value> {
    let (text, signature) = jwt.rsplit_once('.')?;
    let pem: String = APP_KEY_PKCS8
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let der = base64::engine::general_purpose::STANDARD.decode(pem).ok()?;
    let key = RsaKeyPair::from_pkcs8(&der).ok()?;
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref());
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    public.verify(text.as_bytes(), &signature).ok()?;
    let claims = text.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

/// Endpoints that an app asks for in its own name; `None` for others.
pub(super) fn answer(state: &mut State, asked: &Asked, api_path: &str) -> Option<Answered> {
    let parts = asked.parts(api_path)?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let is_ours = matches!(parts[..], ["app", ..] | ["repos", _, _, "installation"]);
    is_ours.then(|| act(state, asked, &parts))
}

fn act(state: &mut State, asked: &Asked, parts: &[&str]) -> Answered {
    let claims = asked.token().and_then(app_claims);
    let now = Timestamp::now().as_second();
    let is_valid = claims.is_some_and(|claims| {
        let second = |name: &str| claims[name].as_i64().unwrap_or_default();
        claims["iss"] == APP_ID
            && second("iat") <= now
            && (now..=now + LONGEST).contains(&second("exp"))
    });
    let Some(app) = state.app.as_mut().filter(|_| is_valid) else {
        return Err(Answer::error(401, "A JSON web token could not be decoded"));
    };
    match (asked.method.as_str(), parts) {
        ("GET", ["app"]) => Ok(Answer::json(
            200,
            &json!({"id": 12345, "slug": app.slug, "permissions": app.permissions,
                "events": app.events}),
        )),
        ("GET", ["repos", ..]) => Ok(Answer::json(200, &json!({"id": 77}))),
        ("POST", ["app", "installations", "77", "access_tokens"]) => Ok(make_token(state)),
        ("GET", ["app", "hook", "deliveries"]) => {
            let mut all = app.deliveries.clone();
            all.reverse();
            let all: Vec<Value> = all.iter().map(attempt_json).collect();
            plain_page(asked, &all)
        }
        ("POST", ["app", "hook", "deliveries", id, "attempts"]) => {
            let id = id.parse().map_err(|_| not_found())?;
            app.redelivered.push(id);
            Ok(Answer::json(202, &json!({})))
        }
        _ => Err(not_found()),
    }
}

fn attempt_json(attempt: &Attempt) -> Value {
    json!({
        "id": attempt.id,
        "guid": attempt.guid,
        "delivered_at": attempt.at.to_string(),
        "redelivery": false,
        "duration": 0.03,
        "status": if attempt.status == 200 { "OK" } else { "failed" },
        "status_code": attempt.status,
        "event": attempt.event,
        "action": "created",
    })
}

/// Their lengths differ, as they do at GitHub.
fn make_token(state: &mut State) -> Answer {
    let Some(app) = state.app.as_mut() else {
        return not_found();
    };
    app.made_tokens += 1;
    let padding = "x".repeat(usize::try_from(app.made_tokens % 7).unwrap_or_default() * 11);
    let token = format!("ghs_installation{}{padding}", app.made_tokens);
    let user = User {
        login: format!("{}[bot]", app.slug),
        token: token.clone(),
        level: Level::Write,
        kind: TokenKind::App,
    };
    let expires_at = Timestamp::now() + app.lifetime;
    state.users.push(user);
    Answer::json(
        201,
        &json!({"token": token, "expires_at": expires_at.to_string()}),
    )
}

impl FakeGitHub {
    /// Installs an app on the repository, with everything that CodeSpar needs.
    pub fn install_app(&self, slug: &str) {
        let app = App {
            slug: slug.to_owned(),
            permissions: json!({"metadata": "read", "contents": "write", "issues": "write",
                "pull_requests": "write", "checks": "write", "statuses": "read"}),
            events: [
                "issue_comment",
                "issues",
                "pull_request_review",
                "pull_request_review_comment",
            ]
            .map(str::to_owned)
            .into(),
            deliveries: Vec::new(),
            redelivered: Vec::new(),
            made_tokens: 0,
            lifetime: SignedDuration::from_hours(1),
        };
        self.change(|state| state.app = Some(app));
    }

    fn change_app<T: Default>(&self, change: impl FnOnce(&mut App) -> T) -> T {
        self.change(|state| state.app.as_mut().map(change).unwrap_or_default())
    }

    /// What the app was given, and what is delivered to it.
    pub fn set_app_rights(&self, permissions: &Value, events: &[&str]) {
        self.change_app(|app| {
            app.permissions = permissions.clone();
            app.events = events.iter().map(|&event| event.to_owned()).collect();
        });
    }

    /// How long tokens last from now on.
    pub fn set_app_token_lifetime(&self, lifetime: SignedDuration) {
        self.change_app(|app| app.lifetime = lifetime);
    }

    /// GitHub refuses all tokens that the app has made so far.
    pub fn revoke_app_tokens(&self) {
        self.change(|state| state.users.retain(|user| user.kind != TokenKind::App));
    }

    pub fn made_app_tokens(&self) -> u64 {
        self.change_app(|app| app.made_tokens)
    }

    /// An attempt to deliver an event to the app, so long ago; 0 is no answer.
    pub fn add_delivery(&self, id: u64, guid: &str, age: SignedDuration, status: u16) {
        self.change_app(|app| {
            app.deliveries.push(Attempt {
                id,
                guid: guid.to_owned(),
                at: Timestamp::now() - age,
                status,
                event: "issue_comment".to_owned(),
            });
        });
    }

    /// The deliveries that GitHub was asked to make again.
    pub fn redelivered(&self) -> Vec<u64> {
        self.change_app(|app| app.redelivered.clone())
    }
}
