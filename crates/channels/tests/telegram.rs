//! Telegram over real HTTP: polling, the webhook, and a Bot API whose faults are chosen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::sync::Arc;

use codespar_channels::{
    ChannelAdapter, FindingKind,
    telegram::{
        TELEGRAM, TelegramApi, TelegramChannel, TelegramDelivery, TelegramHook, TelegramSetup,
        updates,
    },
};
use codespar_testkit::{
    chat::ChatFault,
    telegram::{FakeTelegram, TELEGRAM_BOT, TELEGRAM_TOKEN},
};
use http::HeaderMap;
use serde_json::{Value, json};

use common::{Room, deliver, until};

const SECRET: &str = "secret-token-of-the-webhook";

struct Bot {
    room: Room,
    telegram: FakeTelegram,
    api: Arc<TelegramApi>,
}

impl Bot {
    async fn new() -> Self {
        let (room, telegram) = (Room::new().await, FakeTelegram::start().await.unwrap());
        let setup = TelegramSetup {
            bot_token: TELEGRAM_TOKEN.into(),
            api: telegram.url.parse().unwrap(),
            proxy: None,
            delivery: TelegramDelivery::Polling,
        };
        let api = Arc::new(TelegramApi::new(&setup).unwrap());
        let channel = TelegramChannel::new(api.clone(), setup.delivery);
        room.serve(Arc::new(channel));
        Self {
            room,
            telegram,
            api,
        }
    }

    /// Asks for updates, as `codespar serve` does.
    async fn polling() -> Self {
        let bot = Self::new().await;
        let (api, core, cancel) = (
            bot.api.clone(),
            bot.room.core.clone(),
            bot.room.cancel.clone(),
        );
        tokio::spawn(updates(api, core, cancel));
        bot
    }

    fn hook(&self) -> TelegramHook {
        TelegramHook::new(self.room.core.clone(), self.api.clone(), SECRET.into())
    }

    /// Waits until everything that was delivered is on record and done.
    async fn idle(&self) {
        until("updates are acknowledged", || {
            self.telegram.unacknowledged() == 0
        })
        .await;
        self.room.idle(TELEGRAM).await;
    }

    fn texts(&self) -> Vec<String> {
        let messages = self.telegram.messages();
        messages.iter().map(|one| one.text().to_owned()).collect()
    }
}

/// A message in a private chat.
fn said(number: i64, user: i64, text: &str) -> Value {
    json!({"message": {
        "message_id": number, "date": 1, "text": text,
        "from": {"id": user, "is_bot": false, "first_name": "Ann"},
        "chat": {"id": user, "type": "private"},
    }})
}

/// A message in a group, with something else in it.
fn in_group(number: i64, text: &str, more: &Value) -> Value {
    let mut update = said(number, 1, text);
    update["message"]["chat"] = json!({"id": -100, "type": "supergroup"});
    for (key, value) in more.as_object().unwrap() {
        update["message"][key] = value.clone();
    }
    update
}

fn secret(secret: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-telegram-bot-api-secret-token", secret.parse().unwrap());
    headers
}

#[tokio::test]
async fn a_message_is_one_task_with_one_edited_message() {
    let bot = Bot::polling().await;
    bot.telegram.deliver(&said(5, 1, "fix the greeting"));
    // Delivered again with another number of the update.
    bot.telegram.deliver(&said(5, 1, "fix the greeting"));
    bot.idle().await;
    assert_eq!(bot.room.tasks().await.len(), 1);
    let messages = bot.telegram.messages();
    let [progress, result] = messages.as_slice() else {
        panic!("{messages:#?}");
    };
    assert!(progress.text().contains("PR #1"), "{progress:#?}");
    assert_eq!(progress.revisions[0]["reply_parameters"]["message_id"], 5);
    assert!(result.text().starts_with("Ann PR #1"), "{result:#?}");
    assert_eq!(result.revisions[0]["entities"][0]["user"]["id"], 1);
    bot.room.close().await;
}

/// A run whose messages meet these faults; how many messages of progress there are, and how many of
/// them show the end.
async fn run_with(faults: Vec<(&str, ChatFault)>) -> (usize, usize) {
    let bot = Bot::new().await;
    for (method, fault) in faults {
        bot.telegram.inject(method, fault);
    }
    let update = said(5, 1, "fix the greeting").to_string();
    let (status, _) = deliver(&bot.hook(), &secret(SECRET), &update).await;
    assert_eq!(status, 200);
    bot.room.idle(TELEGRAM).await;
    let texts = bot.texts();
    let progress: Vec<&String> = texts.iter().filter(|text| text.contains('🔍')).collect();
    let ended = progress.iter().filter(|text| text.contains("PR #1"));
    let counts = (progress.len(), ended.count());
    bot.room.close().await;
    counts
}

#[tokio::test]
async fn limits_and_lost_answers_show_a_message_once() {
    let limited = ChatFault::RateLimited { seconds: 1 };
    // The answer of the edit is lost; tried again, Telegram says that nothing changes.
    let faults = vec![
        ("sendMessage", limited),
        ("editMessageText", ChatFault::CutAfter),
    ];
    assert_eq!(run_with(faults).await, (1, 1));
}

#[tokio::test]
async fn a_message_that_cannot_be_edited_any_more_is_posted_anew() {
    let description = "Bad Request: message can't be edited";
    let body = json!({"ok": false, "error_code": 400, "description": description});
    let faults = vec![("editMessageText", ChatFault::Refused(400, body))];
    assert_eq!(run_with(faults).await, (2, 1));
}

#[tokio::test]
async fn an_error_of_telegram_that_lasts_is_not_tried_again() {
    let bot = Bot::new().await;
    let body = json!({
        "ok": false, "error_code": 403, "description": "Forbidden: bot was blocked by the user",
    });
    bot.telegram
        .inject("sendMessage", ChatFault::Refused(403, body));
    let update = said(5, 2, "whoami").to_string();
    deliver(&bot.hook(), &secret(SECRET), &update).await;
    let reason = bot.room.given_up("telegram:2:5/reply").await;
    assert!(reason.contains("bot was blocked"), "{reason}");
    assert_eq!(bot.telegram.count("sendMessage"), 1);
    bot.room.close().await;
}

#[tokio::test]
async fn what_is_forged_or_broken_gets_its_status_and_starts_nothing() {
    let bot = Bot::new().await;
    let hook = bot.hook();
    let update = said(5, 1, "fix the greeting").to_string();
    for (headers, body, expected) in [
        (secret("another-secret"), update.as_str(), 401),
        (secret(""), &update, 401),
        (HeaderMap::new(), &update, 401),
        (secret(SECRET), "{nonsense", 400),
        (secret(SECRET), r#"{"message": {"text": 1}}"#, 400),
        (secret(SECRET), &"x".repeat(10 << 20), 413),
        (secret(SECRET), r#"{"update_id": 1, "poll": {}}"#, 200),
        (
            secret(SECRET),
            r#"{"update_id": 1, "edited_message": {}}"#,
            200,
        ),
    ] {
        let (status, _) = deliver(&hook, &headers, body).await;
        assert_eq!(status, expected, "{body:.60}");
    }
    bot.room.idle(TELEGRAM).await;
    assert!(bot.room.tasks().await.is_empty());
    assert!(bot.telegram.messages().is_empty());
    for _ in 0..3 {
        assert_eq!(deliver(&hook, &secret(SECRET), &update).await.0, 200);
    }
    bot.room.idle(TELEGRAM).await;
    assert_eq!(
        bot.room.tasks().await.len(),
        1,
        "a replay is the same message"
    );
    bot.room.close().await;
}

#[tokio::test]
async fn quotations_code_forwarded_text_bots_and_other_peoples_talk_start_nothing() {
    let bot = Bot::polling().await;
    let fix = "@codespar fix the greeting";
    let whole = |kind: &str| json!([{"type": kind, "offset": 0, "length": fix.len()}]);
    let robot = json!({"id": 8, "is_bot": true, "first_name": "Other"});
    let ours = json!({"id": TELEGRAM_BOT.0, "is_bot": true, "first_name": "Spar"});
    for (number, (text, more)) in [
        (fix, json!({"entities": whole("code")})),
        (fix, json!({"entities": whole("pre")})),
        (fix, json!({"entities": whole("blockquote")})),
        (fix, json!({"forward_origin": {"type": "user"}})),
        (fix, json!({"from": robot.clone()})),
        (fix, json!({"from": ours})),
        (fix, json!({"via_bot": robot})),
        ("fix the greeting", json!({})),
        (
            "/fix@other_bot it",
            json!({"entities": [{"type": "bot_command", "offset": 0, "length": 14}]}),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        bot.telegram
            .deliver(&in_group(i64::try_from(number).unwrap() + 1, text, &more));
    }
    bot.idle().await;
    assert!(bot.room.tasks().await.is_empty());
    assert!(bot.telegram.messages().is_empty(), "{:?}", bot.texts());
    bot.room.close().await;
}

#[tokio::test]
async fn a_topic_is_a_thread_and_so_is_a_chain_of_replies() {
    let bot = Bot::polling().await;
    let command = json!([{"type": "bot_command", "offset": 0, "length": 21}]);
    let topic = json!({"message_thread_id": 3, "is_topic_message": true, "entities": command});
    bot.telegram
        .deliver(&in_group(5, "/whoami@spar_test_bot", &topic));
    bot.idle().await;
    let answer = bot.telegram.messages().pop().unwrap();
    assert_eq!(answer.revisions[0]["message_thread_id"], 3);
    assert_eq!(answer.revisions[0].get("reply_parameters"), None);
    // A person's message begins the chain; a reply to our answer belongs to it.
    bot.telegram.deliver(&in_group(
        6,
        "/whoami@spar_test_bot",
        &json!({
            "entities": [{"type": "bot_command", "offset": 0, "length": 21}],
            "reply_to_message": {"message_id": 2, "from": {"id": 1, "first_name": "Ann"}},
        }),
    ));
    bot.idle().await;
    let first = bot.telegram.messages().pop().unwrap();
    assert_eq!(first.revisions[0]["reply_parameters"]["message_id"], 2);
    bot.telegram.deliver(&in_group(
        7,
        "whoami",
        &json!({"reply_to_message": {
            "message_id": first.id.parse::<i64>().unwrap(),
            "from": {"id": TELEGRAM_BOT.0, "is_bot": true, "first_name": "Spar"},
        }}),
    ));
    bot.idle().await;
    let second = bot.telegram.messages().pop().unwrap();
    assert_ne!(second.id, first.id);
    assert_eq!(second.revisions[0]["reply_parameters"]["message_id"], 2);
    bot.room.close().await;
}

#[tokio::test]
async fn a_button_is_pressed_with_the_rights_of_who_presses_it() {
    let bot = Bot::polling().await;
    bot.telegram.deliver(&said(5, 1, "fix the greeting"));
    bot.idle().await;
    let result = bot.telegram.messages().pop().unwrap();
    let merge = &result.revisions[0]["reply_markup"]["inline_keyboard"][0][1];
    assert_eq!(merge["callback_data"], "merge PR #1");
    let pressed = json!({"callback_query": {
        "id": "press-1", "from": {"id": 2, "is_bot": false, "first_name": "Bob"},
        "data": "merge PR #1",
        "message": {"message_id": result.id.parse::<i64>().unwrap(), "chat": {"id": 1, "type": "private"}},
    }});
    bot.telegram.deliver(&pressed);
    bot.idle().await;
    let refused = bot.telegram.messages().pop().unwrap();
    assert!(refused.text().starts_with("Bob "), "{refused:#?}");
    assert!(
        refused.text().contains("needs the role merge"),
        "{refused:#?}"
    );
    assert_eq!(bot.telegram.count("answerCallbackQuery"), 1);
    // Over the webhook the acknowledgement is the answer.
    let (status, body) = deliver(&bot.hook(), &secret(SECRET), &pressed.to_string()).await;
    assert_eq!(status, 200);
    assert!(body.contains("answerCallbackQuery"), "{body}");
    bot.room.close().await;
}

#[tokio::test]
async fn pictures_are_fetched_for_those_who_may_and_within_their_size() {
    let bot = Bot::polling().await;
    bot.telegram.keep_file("large", &vec![0; 5 << 20]);
    let with_picture = |number: i64, user: i64| {
        let mut update = said(number, user, "");
        update["message"]["caption"] = json!("fix the greeting");
        update["message"].as_object_mut().unwrap().remove("text");
        update["message"]["photo"] = json!([{"file_id": "large", "width": 9, "height": 9}]);
        update
    };
    bot.telegram.deliver(&with_picture(5, 3));
    bot.idle().await;
    assert_eq!(
        bot.texts(),
        ["Ann you have no role here. An admin can give you one."]
    );
    assert_eq!(
        bot.telegram.count("getFile"),
        0,
        "nothing is fetched for a stranger"
    );
    bot.telegram.deliver(&with_picture(6, 1));
    bot.idle().await;
    let texts = bot.texts();
    let left_out = |text: &String| text.contains("photo is left out: it has more than");
    assert!(texts.iter().any(left_out), "{texts:#?}");
    assert_eq!(bot.room.tasks().await.len(), 1, "the text runs without it");
    bot.room.close().await;
}

#[tokio::test]
async fn the_check_says_what_is_missing_and_where_to_click() {
    let bot = Bot::new().await;
    let channel = |delivery| TelegramChannel::new(bot.api.clone(), delivery);
    let polling = channel(TelegramDelivery::Polling);
    let found = polling.check().await;
    assert!(
        found.iter().all(|one| one.kind == FindingKind::Fine),
        "{found:?}"
    );
    assert!(found[0].text.contains("@spar_test_bot"), "{found:?}");
    let hooked = channel(TelegramDelivery::Webhook {
        secret: SECRET.into(),
    });
    let found = hooked.check().await;
    assert!(found[1].text.contains("call setWebhook"), "{found:?}");
    bot.telegram
        .set_webhook("https://codespar.example/hooks/telegram");
    let found = polling.check().await;
    assert!(found[1].text.contains("call deleteWebhook"), "{found:?}");
    let setup = TelegramSetup {
        bot_token: "99:revoked".into(),
        api: bot.telegram.url.parse().unwrap(),
        proxy: None,
        delivery: TelegramDelivery::Polling,
    };
    let api = Arc::new(TelegramApi::new(&setup).unwrap());
    let found = TelegramChannel::new(api, TelegramDelivery::Polling)
        .check()
        .await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, FindingKind::Problem);
    assert!(found[0].text.contains("Unauthorized"), "{found:?}");
    assert!(!found[0].text.contains("revoked"), "{found:?}");
    bot.room.close().await;
}
