//! A provider at which people sign in, over real HTTP: OpenID Connect, and GitHub's OAuth.
//!
//! ```text
//! GET  /.well-known/openid-configuration, /authorize, /keys, /userinfo     POST /token
//! GET  /login/oauth/authorize, /api/v3/user                                POST /login/oauth/access_token
//! ```
//!
//! Whoever asks is signed in at once as the person that the test has set. Codes are exchanged once,
//! by the client that asked for them, with the verifier that fits (PKCE), as real providers do. A
//! test can make the next ID token wrong in one way.

mod tokens;

use std::{collections::HashMap, io, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

pub use self::tokens::{Forgery, SigningKey};
use self::tokens::{Keys, id_token};
use crate::{
    chat::{ChatReply, ChatServer, nothing_there},
    http::Request,
};

/// The client that is registered at the provider.
pub const CLIENT_ID: &str = "codespar-test";
/// Its secret, with characters that must be encoded.
pub const CLIENT_SECRET: &str = "s3cret+of the/client%";

/// Who signs in.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentityPerson {
    pub subject: String,
    pub email: Option<String>,
    /// As the provider writes it: a word, or something else.
    pub email_verified: Value,
    pub login: String,
    pub id: u64,
}

impl IdentityPerson {
    /// Ada, with an address that the provider has verified.
    pub fn ada() -> Self {
        Self {
            subject: "248289761001".to_owned(),
            email: Some("ada@example.com".to_owned()),
            email_verified: json!(true),
            login: "ada".to_owned(),
            id: 583_231,
        }
    }
}

/// Where the address of a person is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EmailPlace {
    #[default]
    IdToken,
    UserInfo,
}

/// A code that waits to be exchanged.
struct Grant {
    challenge: String,
    redirect: String,
    nonce: String,
    person: IdentityPerson,
}

struct State {
    person: IdentityPerson,
    keys: Keys,
    forgery: Option<Forgery>,
    email_place: EmailPlace,
    /// What the description says of its issuer, if it is not the truth.
    described_issuer: Option<String>,
    /// What the user information says of the subject, if it is not the truth.
    described_subject: Option<String>,
    codes: HashMap<String, Grant>,
    tokens: HashMap<String, IdentityPerson>,
    paths: Vec<String>,
    is_down: bool,
    last: u64,
}

/// Serves until it is dropped.
pub struct FakeIdentityProvider {
    /// `http://127.0.0.1:PORT`; the issuer, and the address of the server of GitHub.
    pub url: String,
    state: Arc<Mutex<State>>,
    _server: ChatServer,
}

impl FakeIdentityProvider {
    pub async fn start() -> io::Result<Self> {
        let state = Arc::new(Mutex::new(State {
            person: IdentityPerson::ada(),
            keys: Keys::new()?,
            forgery: None,
            email_place: EmailPlace::default(),
            described_issuer: None,
            described_subject: None,
            codes: HashMap::new(),
            tokens: HashMap::new(),
            paths: Vec::new(),
            is_down: false,
            last: 0,
        }));
        let of_server = state.clone();
        let server = ChatServer::start(move |request| {
            let state = of_server.clone();
            async move { answer(&request, &mut state.lock()) }
        });
        let server = server.await?;
        Ok(Self {
            url: server.base.clone(),
            state,
            _server: server,
        })
    }

    /// Who signs in from now on.
    pub fn set_person(&self, person: IdentityPerson) {
        self.state.lock().person = person;
    }

    pub fn set_email_place(&self, place: EmailPlace) {
        self.state.lock().email_place = place;
    }

    /// The next ID token is wrong in this way.
    pub fn forge(&self, forgery: Forgery) {
        self.state.lock().forgery = Some(forgery);
    }

    /// ID tokens are signed with a key of this kind from now on.
    pub fn sign_with(&self, key: SigningKey) {
        self.state.lock().keys.signing = key;
    }

    /// Takes a new key of its own; tokens are signed with it from now on.
    pub fn change_keys(&self) -> io::Result<()> {
        self.state.lock().keys.change()
    }

    /// The description names another issuer.
    pub fn claim_to_be(&self, issuer: &str) {
        self.state.lock().described_issuer = Some(issuer.to_owned());
    }

    /// The user information names another subject.
    pub fn tell_of(&self, subject: &str) {
        self.state.lock().described_subject = Some(subject.to_owned());
    }

    /// Every request is answered with an error page from now on, or no longer.
    pub fn set_down(&self, is_down: bool) {
        self.state.lock().is_down = is_down;
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        let state = self.state.lock();
        state.paths.iter().filter(|one| *one == path).count()
    }
}

/// The fields of a query or a form.
fn fields(text: &[u8]) -> HashMap<String, String> {
    form_urlencoded::parse(text).into_owned().collect()
}

fn answer(request: &Request, state: &mut State) -> ChatReply {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    state.paths.push(path.to_owned());
    if state.is_down {
        return ChatReply::Json(503, json!("down"));
    }
    let base = format!("http://{}", request.headers.get("host").unwrap_or_default());
    let query = fields(query.as_bytes());
    match (request.method.as_str(), path) {
        ("GET", "/.well-known/openid-configuration") => description(&base, state),
        ("GET", "/authorize" | "/login/oauth/authorize") => authorize(&query, state),
        ("GET", "/keys") => ChatReply::Json(200, state.keys.public()),
        ("POST", "/token") => token(&base, request, state),
        ("POST", "/login/oauth/access_token") => github_token(request, state),
        ("GET", "/userinfo") => match bearer(request, state) {
            Some(person) => {
                let subject = state.described_subject.clone().unwrap_or(person.subject);
                let email = json!(person.email);
                let verified = person.email_verified;
                let body = json!({"sub": subject, "email": email, "email_verified": verified});
                ChatReply::Json(200, body)
            }
            None => ChatReply::Json(401, json!({"error": "invalid_token"})),
        },
        ("GET", "/api/v3/user") => match bearer(request, state) {
            Some(person) => ChatReply::Json(
                200,
                json!({
                    "login": person.login, "id": person.id, "node_id": "MDQ6VXNlcjE=",
                    "type": "User", "site_admin": false, "email": null,
                }),
            ),
            None => ChatReply::Json(401, json!({"message": "Bad credentials", "status": "401"})),
        },
        _ => nothing_there(),
    }
}

fn description(base: &str, state: &State) -> ChatReply {
    let issuer = state.described_issuer.as_deref().unwrap_or(base);
    ChatReply::Json(
        200,
        json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "jwks_uri": format!("{base}/keys"),
            "userinfo_endpoint": format!("{base}/userinfo"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
        }),
    )
}

/// Sends the browser back with a code. What a real provider refuses is refused.
fn authorize(query: &HashMap<String, String>, state: &mut State) -> ChatReply {
    let field = |name: &str| query.get(name).cloned().unwrap_or_default();
    let is_asked_well = field("client_id") == CLIENT_ID
        && field("response_type") == "code"
        && field("code_challenge_method") == "S256"
        && field("code_challenge").len() == 43
        && field("state").len() >= 32;
    let redirect = field("redirect_uri");
    let Ok(mut back) = Url::parse(&redirect) else {
        return ChatReply::Json(400, json!({"error": "invalid_request"}));
    };
    if !is_asked_well {
        return ChatReply::Json(400, json!({"error": "invalid_request"}));
    }
    state.last += 1;
    let code = format!("code-{}", state.last);
    let grant = Grant {
        challenge: field("code_challenge"),
        redirect,
        nonce: field("nonce"),
        person: state.person.clone(),
    };
    state.codes.insert(code.clone(), grant);
    back.query_pairs_mut()
        .append_pair("code", &code)
        .append_pair("state", &field("state"));
    ChatReply::Redirect(back.to_string())
}

/// Takes a code out, if everything about its exchange fits.
fn exchanged(form: &HashMap<String, String>, state: &mut State) -> Option<Grant> {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let grant = state.codes.remove(field("code"))?;
    let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, field("code_verifier").as_bytes()));
    let fits = grant.challenge == challenge && grant.redirect == field("redirect_uri");
    fits.then_some(grant)
}

/// By the header, as it must be encoded, or by the body.
fn is_client(request: &Request, form: &HashMap<String, String>) -> bool {
    let encoded =
        |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let pair = format!("{}:{}", encoded(CLIENT_ID), encoded(CLIENT_SECRET));
    let basic = base64::engine::general_purpose::STANDARD.encode(pair);
    let by_header = request.headers.get("authorization") == Some(&format!("Basic {basic}"));
    let field = |name: &str| form.get(name).map(String::as_str);
    let by_body =
        field("client_id") == Some(CLIENT_ID) && field("client_secret") == Some(CLIENT_SECRET);
    by_header || by_body
}

fn token(base: &str, request: &Request, state: &mut State) -> ChatReply {
    let form = fields(&request.body);
    if !is_client(request, &form) {
        return ChatReply::Json(401, json!({"error": "invalid_client"}));
    }
    let Some(grant) = exchanged(&form, state) else {
        return ChatReply::Json(400, json!({"error": "invalid_grant"}));
    };
    let forgery = state.forgery.take();
    let mut claims = json!({
        "iss": base, "sub": grant.person.subject, "aud": CLIENT_ID, "nonce": grant.nonce,
    });
    if state.email_place == EmailPlace::IdToken {
        claims["email"] = json!(grant.person.email);
        claims["email_verified"] = grant.person.email_verified.clone();
    }
    let token = id_token(&state.keys, claims, forgery);
    let access = access_token(grant.person, state);
    let body = json!({"access_token": access, "token_type": "Bearer", "id_token": token});
    ChatReply::Json(200, body)
}

/// GitHub answers with 200 whatever happened.
fn github_token(request: &Request, state: &mut State) -> ChatReply {
    let form = fields(&request.body);
    let body = match is_client(request, &form) {
        false => json!({"error": "incorrect_client_credentials"}),
        true => match exchanged(&form, state) {
            Some(grant) => {
                let access = access_token(grant.person, state);
                json!({"access_token": access, "token_type": "bearer", "scope": ""})
            }
            None => json!({
                "error": "bad_verification_code",
                "error_description": "The code passed is incorrect or expired.",
            }),
        },
    };
    ChatReply::Json(200, body)
}

fn access_token(person: IdentityPerson, state: &mut State) -> String {
    state.last += 1;
    let token = format!("access-{}", state.last);
    state.tokens.insert(token.clone(), person);
    token
}

fn bearer(request: &Request, state: &State) -> Option<IdentityPerson> {
    let value = request.headers.get("authorization")?;
    state.tokens.get(value.strip_prefix("Bearer ")?).cloned()
}
