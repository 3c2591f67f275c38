//! A Discord with one bot, over real HTTP and WebSockets: the REST API and the gateway.
//!
//! ```text
//! GET gateway/bot, users/@me, users/@me/guilds, channels/C       GET /files/F
//! POST channels/C/messages, interactions/I/T/callback     PATCH channels/C/messages/M
//! ```
//!
//! A nonce makes no second message. The gateway numbers its events; a session that is resumed gets
//! those after its number, one that is begun those that no session was told of.

use std::{collections::HashMap, io, ops::Deref, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    chat::{
        ChatControl, ChatFault, ChatMessage, ChatRecord, ChatReply, ChatServer, json_body,
        nothing_there,
    },
    discord_gateway::FakeGateway,
    http::Request,
};

pub const DISCORD_TOKEN: &str = "test-token-of-the-discord-bot";
/// The account of the bot.
pub const DISCORD_BOT: &str = "99";

type Channels = Arc<Mutex<HashMap<String, Value>>>;

/// Serves until it is dropped.
pub struct FakeDiscord {
    /// `http://127.0.0.1:PORT/api/v10/`.
    pub url: String,
    control: ChatControl,
    channels: Channels,
    /// What is said over the WebSocket.
    pub gateway: Arc<FakeGateway>,
    _server: ChatServer,
}

impl Deref for FakeDiscord {
    type Target = ChatControl;

    fn deref(&self) -> &ChatControl {
        &self.control
    }
}

impl FakeDiscord {
    pub async fn start() -> io::Result<Self> {
        let record: Arc<Mutex<ChatRecord>> = Arc::default();
        let channels = Channels::default();
        let gateway = FakeGateway::start().await?;
        let of_server = (record.clone(), channels.clone(), gateway.url.clone());
        let server = ChatServer::start(move |request| {
            let (record, channels, gateway) = of_server.clone();
            async move { answer(&request, &mut record.lock(), &channels.lock(), &gateway) }
        });
        let server = server.await?;
        Ok(Self {
            url: format!("{}/api/v10/", server.base),
            control: ChatControl { record },
            channels,
            gateway,
            _server: server,
        })
    }

    /// A channel that is a thread of another one.
    pub fn add_thread(&self, id: &str, parent: &str) {
        let thread = json!({"id": id, "type": 11, "parent_id": parent});
        self.channels.lock().insert(id.to_owned(), thread);
    }

    /// The address of a file that is kept.
    pub fn file_url(&self, id: &str) -> String {
        self.url.replace("/api/v10/", &format!("/files/{id}"))
    }
}

fn answer(
    request: &Request,
    record: &mut ChatRecord,
    channels: &HashMap<String, Value>,
    gateway: &str,
) -> ChatReply {
    if let Some(id) = request.path.strip_prefix("/files/") {
        let file = record.file(id).map(<[u8]>::to_vec);
        return file.map_or_else(nothing_there, ChatReply::Bytes);
    }
    if request.headers.get("authorization") != Some(&format!("Bot {DISCORD_TOKEN}")) {
        return ChatReply::Json(401, json!({"message": "401: Unauthorized", "code": 0}));
    }
    let Some(path) = request.path.strip_prefix("/api/v10/") else {
        return nothing_there();
    };
    let parts: Vec<&str> = path.split('/').collect();
    // The name of a route, without the ids in it.
    let method = match (request.method.as_str(), parts.as_slice()) {
        (verb, ["channels", _]) => format!("{verb} channel"),
        (verb, ["channels", _, "messages", ..]) => format!("{verb} message"),
        (_, ["interactions", ..]) => "callback".to_owned(),
        (verb, _) => format!("{verb} {path}"),
    };
    let body = json_body(request);
    let fault = record.fault_of(&method, &body);
    match fault {
        Some(ChatFault::RateLimited { seconds }) => {
            let body = json!({
                "message": "You are being rate limited.", "retry_after": seconds as f64 + 0.01,
                "global": false,
            });
            return ChatReply::Limited(seconds + 60, body);
        }
        Some(ChatFault::Refused(status, body)) => return ChatReply::Json(status, body),
        Some(ChatFault::CutAfter) => {
            act(&method, &parts, body, record);
            return ChatReply::Cut;
        }
        None => {}
    }
    match method.as_str() {
        "GET gateway/bot" => ChatReply::Json(
            200,
            json!({"url": gateway, "shards": 1, "session_start_limit":
                {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}}),
        ),
        "GET users/@me" => ChatReply::Json(
            200,
            json!({"id": DISCORD_BOT, "username": "spar", "bot": true}),
        ),
        "GET users/@me/guilds" => ChatReply::Json(200, json!([{"id": "1", "name": "Team"}])),
        "GET channel" => {
            let usual = json!({"id": parts[1], "type": 0});
            ChatReply::Json(200, channels.get(parts[1]).cloned().unwrap_or(usual))
        }
        _ => act(&method, &parts, body, record),
    }
}

/// What changes something.
fn act(method: &str, parts: &[&str], body: Value, record: &mut ChatRecord) -> ChatReply {
    match (method, parts) {
        ("POST message", [_, channel, ..]) => {
            let nonce = &body["nonce"];
            let is_it = |one: &&ChatMessage| one.revisions[0]["nonce"] == *nonce;
            let known = record
                .messages
                .iter()
                .find(is_it)
                .filter(|_| !nonce.is_null());
            if let Some(known) = known {
                let content = known.text().to_owned();
                return ChatReply::Json(200, json!({"id": known.id, "content": content}));
            }
            let id = (1_000 + record.messages.len()).to_string();
            let answer = json!({"id": id, "content": body["content"]});
            record.post((*channel).to_owned(), id, body);
            ChatReply::Json(200, answer)
        }
        ("PATCH message", [_, channel, _, id]) => match record.edit(channel, id, body) {
            Some(()) => ChatReply::Json(200, json!({"id": id})),
            None => ChatReply::Json(404, json!({"message": "Unknown Message", "code": 10_008})),
        },
        ("callback", _) => ChatReply::Json(204, Value::Null),
        _ => nothing_there(),
    }
}

/// The key pair of an application, which signs interactions.
pub struct DiscordSigner {
    pair: ring::signature::Ed25519KeyPair,
}

impl DiscordSigner {
    /// The same one for the same number.
    ///
    /// # Errors
    /// Never with 32 bytes, which these are.
    pub fn new(number: u8) -> Result<Self, ring::error::KeyRejected> {
        let pair = ring::signature::Ed25519KeyPair::from_seed_unchecked(&[number; 32])?;
        Ok(Self { pair })
    }

    /// As the Developer Portal shows it.
    pub fn public_key(&self) -> String {
        use ring::signature::KeyPair;
        hex(self.pair.public_key().as_ref())
    }

    /// What the header `X-Signature-Ed25519` says.
    pub fn sign(&self, stamp: &str, body: &str) -> String {
        let signed = format!("{stamp}{body}");
        hex(self.pair.sign(signed.as_bytes()).as_ref())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
