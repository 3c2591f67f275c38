//! A WhatsApp Cloud API with one number, over real HTTP, and the signatures of its deliveries.
//!
//! ```text
//! POST /v25.0/NUMBER/messages      GET /v25.0/NUMBER, /v25.0/MEDIA, /media/MEDIA
//! ```

use std::{io, ops::Deref, sync::Arc};

use parking_lot::Mutex;
use ring::hmac;
use serde_json::{Value, json};

use crate::{
    chat::{ChatControl, ChatFault, ChatRecord, ChatReply, ChatServer, json_body, nothing_there},
    http::Request,
};

pub const WHATSAPP_TOKEN: &str = "test-token-of-the-business";
pub const WHATSAPP_APP_SECRET: &str = "test-secret-of-the-meta-app";
/// The id of the number.
pub const WHATSAPP_NUMBER: &str = "5550001";

/// Serves until it is dropped.
pub struct FakeWhatsApp {
    /// `http://127.0.0.1:PORT/v25.0/`.
    pub url: String,
    control: ChatControl,
    _server: ChatServer,
}

impl Deref for FakeWhatsApp {
    type Target = ChatControl;

    fn deref(&self) -> &ChatControl {
        &self.control
    }
}

impl FakeWhatsApp {
    pub async fn start() -> io::Result<Self> {
        let record: Arc<Mutex<ChatRecord>> = Arc::default();
        let of_server = record.clone();
        let server = ChatServer::start(move |request| {
            let record = of_server.clone();
            async move { answer(&request, &mut record.lock()) }
        });
        let server = server.await?;
        Ok(Self {
            url: format!("{}/v25.0/", server.base),
            control: ChatControl { record },
            _server: server,
        })
    }
}

/// What the header `X-Hub-Signature-256` of a delivery says.
pub fn whatsapp_signature(secret: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, body.as_bytes());
    let digits = tag.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256={}", digits.collect::<String>())
}

/// A delivery of one message to the number.
pub fn whatsapp_delivery(contact: &Value, message: &Value) -> String {
    let value = json!({
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550001", "phone_number_id": WHATSAPP_NUMBER},
        "contacts": [contact], "messages": [message],
    });
    let change = json!({"field": "messages", "value": value});
    let entry = json!([{"id": "1", "changes": [change]}]);
    json!({"object": "whatsapp_business_account", "entry": entry}).to_string()
}

fn answer(request: &Request, record: &mut ChatRecord) -> ChatReply {
    if request.headers.get("authorization") != Some(&format!("Bearer {WHATSAPP_TOKEN}")) {
        let error = json!({"message": "Invalid OAuth access token", "code": 190});
        return ChatReply::Json(401, json!({"error": error}));
    }
    let path = request.path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("POST", ["v25.0", WHATSAPP_NUMBER, "messages"]) => send(json_body(request), record),
        ("GET", ["v25.0", WHATSAPP_NUMBER]) => {
            let number = json!({"id": WHATSAPP_NUMBER, "display_phone_number": "+1 555 0001"});
            ChatReply::Json(200, number)
        }
        ("GET", ["v25.0", id]) => match record.file(id) {
            Some(bytes) => {
                let host = request.headers.get("host").unwrap_or_default();
                let url = format!("http://{host}/media/{id}");
                ChatReply::Json(200, json!({"id": id, "url": url, "file_size": bytes.len()}))
            }
            None => ChatReply::Json(400, json!({"error": {"message": "Unknown", "code": 100}})),
        },
        ("GET", ["media", id]) => {
            let file = record.file(id).map(<[u8]>::to_vec);
            file.map_or_else(nothing_there, ChatReply::Bytes)
        }
        _ => nothing_there(),
    }
}

fn send(body: Value, record: &mut ChatRecord) -> ChatReply {
    let fault = record.fault_of("messages", &body);
    match fault {
        Some(ChatFault::RateLimited { .. }) => {
            let error = json!({"message": "(#130429) Rate limit hit", "code": 130_429});
            return ChatReply::Json(400, json!({"error": error}));
        }
        Some(ChatFault::Refused(status, body)) => return ChatReply::Json(status, body),
        Some(ChatFault::CutAfter) | None => {}
    }
    let to = body.get("to").or(body.get("recipient"));
    let to = to.and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = format!("wamid.OUR{}", record.messages.len());
    let answer = json!({"messaging_product": "whatsapp", "messages": [{"id": id}]});
    record.post(to, id, body);
    match fault {
        Some(_) => ChatReply::Cut,
        None => ChatReply::Json(200, answer),
    }
}
