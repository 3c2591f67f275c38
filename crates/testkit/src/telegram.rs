//! A Telegram with one bot, over real HTTP: what the Bot API does with updates and messages.
//!
//! ```text
//! POST /bot<token>/getMe, getUpdates, getWebhookInfo, sendMessage, editMessageText,
//!      answerCallbackQuery, getFile           GET /file/bot<token>/<path>
//! ```
//!
//! `getUpdates` is held until there is an update, and forgets those before the offset that is asked
//! for, as the real one does.

use std::{io, ops::Deref, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    chat::{
        ChatControl, ChatFault, ChatRecord, ChatReply, ChatServer, id_of, json_body, nothing_there,
    },
    http::Request,
};

/// The token of the bot; its number is that of the account.
pub const TELEGRAM_TOKEN: &str = "99:test-token-of-the-bot";
/// The account of the bot.
pub const TELEGRAM_BOT: (i64, &str) = (99, "spar_test_bot");

/// The id of an emoji of a pack that stands for ⏹.
pub const TELEGRAM_STOP_EMOJI: &str = "9209";

#[derive(Default)]
struct Updates {
    waiting: Mutex<Vec<Value>>,
    last: Mutex<i64>,
    news: Notify,
    webhook: Mutex<String>,
}

/// Serves until it is dropped.
pub struct FakeTelegram {
    /// `http://127.0.0.1:PORT/`.
    pub url: String,
    control: ChatControl,
    updates: Arc<Updates>,
    _server: ChatServer,
}

impl Deref for FakeTelegram {
    type Target = ChatControl;

    fn deref(&self) -> &ChatControl {
        &self.control
    }
}

impl FakeTelegram {
    pub async fn start() -> io::Result<Self> {
        let record: Arc<Mutex<ChatRecord>> = Arc::default();
        let updates: Arc<Updates> = Arc::default();
        let (of_server, queue) = (record.clone(), updates.clone());
        let server = ChatServer::start(move |request| {
            let (record, queue) = (of_server.clone(), queue.clone());
            async move { answer(&request, &record, &queue).await }
        });
        let server = server.await?;
        Ok(Self {
            url: format!("{}/", server.base),
            control: ChatControl { record },
            updates,
            _server: server,
        })
    }

    /// Puts an update into the queue; `update` without its id. Gives the whole.
    pub fn deliver(&self, update: &Value) -> Value {
        let mut last = self.updates.last.lock();
        *last += 1;
        let mut update = update.clone();
        update["update_id"] = json!(*last);
        self.updates.waiting.lock().push(update.clone());
        self.updates.news.notify_waiters();
        update
    }

    /// Updates that were not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.updates.waiting.lock().len()
    }

    /// As after `setWebhook`.
    pub fn set_webhook(&self, url: &str) {
        url.clone_into(&mut self.updates.webhook.lock());
    }
}

async fn answer(request: &Request, record: &Mutex<ChatRecord>, updates: &Updates) -> ChatReply {
    if let Some(path) = request
        .path
        .strip_prefix(&format!("/file/bot{TELEGRAM_TOKEN}/files/"))
    {
        let file = record.lock().file(path).map(<[u8]>::to_vec);
        return file.map_or_else(nothing_there, ChatReply::Bytes);
    }
    let Some(method) = request.path.strip_prefix(&format!("/bot{TELEGRAM_TOKEN}/")) else {
        return refused(401, "Unauthorized");
    };
    let body = json_body(request);
    let fault = record.lock().fault_of(method, &body);
    match fault {
        Some(ChatFault::RateLimited { seconds }) => {
            let body = json!({
                "ok": false, "error_code": 429, "parameters": {"retry_after": seconds},
                "description": format!("Too Many Requests: retry after {seconds}"),
            });
            ChatReply::Limited(seconds, body)
        }
        Some(ChatFault::Refused(status, body)) => ChatReply::Json(status, body),
        Some(ChatFault::CutAfter) => {
            let _ = act(method, &body, record, updates).await;
            ChatReply::Cut
        }
        None => act(method, &body, record, updates).await,
    }
}

async fn act(
    method: &str,
    body: &Value,
    record: &Mutex<ChatRecord>,
    updates: &Updates,
) -> ChatReply {
    let fine = |result: Value| ChatReply::Json(200, json!({"ok": true, "result": result}));
    let chat = id_of(&body["chat_id"]);
    match method {
        "getMe" => fine(json!({
            "id": TELEGRAM_BOT.0, "is_bot": true, "first_name": "Spar",
            "username": TELEGRAM_BOT.1, "can_join_groups": true,
        })),
        "getWebhookInfo" => fine(json!({"url": *updates.webhook.lock()})),
        "getUpdates" => fine(json!(held(body, updates).await)),
        "answerCallbackQuery" => fine(json!(true)),
        // The pack of this bot has one emoji, with the id of its place in Unicode.
        "getCustomEmojiStickers" => {
            let ids = body["custom_emoji_ids"].as_array().into_iter().flatten();
            let known = ids.filter(|id| **id == json!(TELEGRAM_STOP_EMOJI));
            let stickers = known.map(|id| json!({"custom_emoji_id": id, "emoji": "⏹"}));
            fine(json!(stickers.collect::<Vec<_>>()))
        }
        "sendMessage" => {
            let mut record = record.lock();
            // Ids of a chat are shared by all who write there; ours begin far above people's.
            let id = 1_000 + record.messages.len();
            record.post(chat, id.to_string(), body.clone());
            fine(json!({"message_id": id, "date": 1, "chat": {"id": body["chat_id"]}}))
        }
        "editMessageText" => edit(body, &chat, &mut record.lock()),
        "getFile" => {
            let id = body["file_id"].as_str().unwrap_or_default();
            match record.lock().file(id) {
                Some(bytes) => fine(json!({
                    "file_id": id, "file_size": bytes.len(), "file_path": format!("files/{id}"),
                })),
                None => refused(400, "Bad Request: wrong file_id"),
            }
        }
        _ => refused(404, "Not Found"),
    }
}

/// An edit that changes nothing is refused, as the real one does.
fn edit(body: &Value, chat: &str, record: &mut ChatRecord) -> ChatReply {
    let id = id_of(&body["message_id"]);
    let is_it = |one: &&crate::chat::ChatMessage| one.conversation == chat && one.id == id;
    let shown = |body: &Value| (body["text"].clone(), body["reply_markup"].clone());
    let last = record.messages.iter().find(is_it);
    let last = last.and_then(|one| one.revisions.last()).map(shown);
    match last {
        None => refused(400, "Bad Request: message to edit not found"),
        Some(last) if last == shown(body) => refused(
            400,
            "Bad Request: message is not modified: specified new message content and reply markup \
             are exactly the same as a current content and reply markup of the message",
        ),
        Some(_) => {
            record.edit(chat, &id, body.clone());
            ChatReply::Json(
                200,
                json!({"ok": true, "result": {"message_id": body["message_id"]}}),
            )
        }
    }
}

/// What waits from an offset on; what is before it is acknowledged.
async fn held(body: &Value, updates: &Updates) -> Vec<Value> {
    let offset = body["offset"].as_i64().unwrap_or_default();
    let seconds = body["timeout"].as_u64().unwrap_or_default();
    let waited = async {
        loop {
            let news = updates.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let mut waiting = updates.waiting.lock();
                waiting.retain(|update| update["update_id"].as_i64() >= Some(offset));
                if !waiting.is_empty() {
                    return waiting.clone();
                }
            }
            news.await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(seconds), waited).await;
    waited.unwrap_or_default()
}

fn refused(code: u16, description: &str) -> ChatReply {
    let body = json!({"ok": false, "error_code": code, "description": description});
    ChatReply::Json(code, body)
}
