//! Discord over real HTTP and WebSockets: the gateway, the endpoint, and a REST API whose faults are
//! chosen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::{sync::Arc, time::Duration};

use codespar_channels::{
    ChannelAdapter, FindingKind,
    discord::{
        DISCORD, DiscordApi, DiscordChannel, DiscordHook, DiscordKey, DiscordSetup, gateway,
    },
};
use codespar_testkit::{
    chat::ChatFault,
    discord::{DISCORD_BOT, DISCORD_TOKEN, DiscordSigner, FakeDiscord},
};
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use common::{PATIENCE, Room, deliver, until};

struct Bot {
    room: Room,
    discord: FakeDiscord,
    api: Arc<DiscordApi>,
    state: tempfile::TempDir,
}

impl Bot {
    async fn new() -> Self {
        let (room, discord) = (Room::new().await, FakeDiscord::start().await.unwrap());
        let state = tempfile::tempdir().unwrap();
        let api = api(&discord, &state, DISCORD_TOKEN);
        room.serve(Arc::new(DiscordChannel::new(api.clone())));
        Self {
            room,
            discord,
            api,
            state,
        }
    }

    /// Listens to the gateway until the token is cancelled.
    fn listen(&self) -> CancellationToken {
        let cancel = self.room.cancel.child_token();
        let (api, core) = (self.api.clone(), self.room.core.clone());
        tokio::spawn(gateway(api, core, cancel.clone()));
        cancel
    }

    fn say(&self, message: &Value) {
        self.discord.gateway.dispatch("MESSAGE_CREATE", message);
    }

    /// Waits for a message of ours with this text.
    async fn read(&self, text: &str) {
        let has = || {
            self.discord
                .messages()
                .iter()
                .any(|one| one.text().contains(text))
        };
        until(text, has).await;
    }

    async fn introduced(&self, how: &[&str]) {
        until("introductions", || {
            self.discord.gateway.introductions() == how
        })
        .await;
    }

    fn hook(&self, signer: &DiscordSigner) -> DiscordHook {
        let key = DiscordKey::from_hex(&signer.public_key()).unwrap();
        DiscordHook::new(self.room.core.clone(), self.api.clone(), key)
    }
}

fn api(discord: &FakeDiscord, state: &tempfile::TempDir, token: &str) -> Arc<DiscordApi> {
    let setup = DiscordSetup {
        bot_token: token.into(),
        api: discord.url.parse().unwrap(),
        proxy: None,
        session_file: state.path().join("session.json"),
    };
    Arc::new(DiscordApi::new(&setup).unwrap())
}

/// A message in a channel that mentions us.
fn said(id: &str, user: &str, text: &str) -> Value {
    json!({
        "id": id, "channel_id": "500", "guild_id": "1", "type": 0,
        "author": {"id": user, "username": "ann"}, "content": format!("<@{DISCORD_BOT}> {text}"),
        "mentions": [{"id": DISCORD_BOT, "username": "spar", "bot": true}],
    })
}

fn with(mut message: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        message[key] = value.clone();
    }
    message
}

fn refusal(status: u16, code: u64, text: &str) -> ChatFault {
    ChatFault::Refused(status, json!({"message": text, "code": code}))
}

#[tokio::test]
async fn a_mention_is_one_task_with_one_edited_message() {
    let bot = Bot::new().await;
    bot.listen();
    bot.say(&said("5", "1", "fix the greeting"));
    bot.say(&said("5", "1", "fix the greeting"));
    bot.read("<@1> PR #1").await;
    bot.room.idle(DISCORD).await;
    assert_eq!(bot.room.tasks().await.len(), 1);
    let messages = bot.discord.messages();
    let [progress, result] = messages.as_slice() else {
        panic!("{messages:#?}");
    };
    assert!(progress.text().contains("PR #1"), "{progress:#?}");
    assert_eq!(
        progress.revisions[0]["message_reference"]["message_id"],
        "5"
    );
    let nobody = json!({"parse": [], "users": [], "replied_user": false});
    let edits = progress.revisions.iter();
    assert!(edits.clone().count() > 1);
    for revision in edits {
        assert_eq!(revision["allowed_mentions"], nobody, "on every edit");
    }
    assert_eq!(
        result.revisions[0]["allowed_mentions"]["users"],
        json!(["1"])
    );
    bot.room.close().await;
}

#[tokio::test]
async fn a_session_is_resumed_where_it_was_and_nothing_is_lost_or_done_twice() {
    let bot = Bot::new().await;
    let listening = bot.listen();
    bot.say(&said("1", "2", "whoami"));
    bot.read("role read").await;
    // Said while the connection is gone.
    bot.discord.gateway.cut();
    bot.say(&said("2", "2", "whoami"));
    bot.introduced(&["identify", "resume"]).await;
    until("two answers", || bot.discord.messages().len() == 2).await;
    bot.discord.gateway.ask_to_reconnect();
    bot.introduced(&["identify", "resume", "resume"]).await;
    bot.say(&said("3", "2", "whoami"));
    until("three answers", || bot.discord.messages().len() == 3).await;
    // Said while there is no process.
    listening.cancel();
    bot.say(&said("4", "2", "whoami"));
    bot.listen();
    until("four answers", || bot.discord.messages().len() == 4).await;
    bot.discord.gateway.invalidate();
    bot.introduced(&["identify", "resume", "resume", "resume", "identify"])
        .await;
    bot.say(&said("5", "2", "whoami"));
    until("five answers", || bot.discord.messages().len() == 5).await;
    bot.room.idle(DISCORD).await;
    assert_eq!(bot.discord.messages().len(), 5);
    bot.room.close().await;
}

#[tokio::test]
async fn a_connection_whose_heartbeats_are_not_answered_is_left() {
    let bot = Bot::new().await;
    let every = Duration::from_millis(50);
    bot.discord.gateway.stop_answering_heartbeats(every);
    bot.listen();
    bot.introduced(&["identify", "resume"]).await;
    bot.discord.gateway.answer_heartbeats();
    bot.say(&said("1", "2", "whoami"));
    bot.read("role read").await;
    bot.room.close().await;
}

#[tokio::test]
async fn a_token_that_is_not_valid_is_given_up() {
    let bot = Bot::new().await;
    let wrong = api(&bot.discord, &bot.state, "another-token");
    // Its connection is refused for good, by the API or by the gateway.
    let listening = gateway(
        wrong.clone(),
        bot.room.core.clone(),
        bot.room.cancel.clone(),
    );
    let state = bot.state.path().join("session.json");
    let session = json!({"id": "s", "url": bot.discord.gateway.url(), "user": "9", "sequence": 1});
    std::fs::write(&state, session.to_string()).unwrap();
    tokio::time::timeout(PATIENCE, listening)
        .await
        .expect("it ends");
    let found = DiscordChannel::new(wrong).check().await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, FindingKind::Problem);
    assert!(found[0].text.contains("Reset Token"), "{found:?}");
    assert!(!found[0].text.contains("another-token"), "{found:?}");
    let found = DiscordChannel::new(bot.api.clone()).check().await;
    assert!(
        found.iter().all(|one| one.kind == FindingKind::Fine),
        "{found:?}"
    );
    bot.room.close().await;
}

#[tokio::test]
async fn limits_lost_answers_and_old_messages_show_the_last_state() {
    let bot = Bot::new().await;
    bot.discord
        .inject("POST message", ChatFault::RateLimited { seconds: 1 });
    bot.discord.inject("POST message", ChatFault::CutAfter);
    let old = "Maximum number of edits to messages older than 1 hour reached. Try again later.";
    bot.discord
        .inject("PATCH message", refusal(429, 30_046, old));
    bot.listen();
    bot.say(&said("5", "1", "fix the greeting"));
    bot.read("<@1> PR #1").await;
    bot.room.idle(DISCORD).await;
    let messages = bot.discord.messages();
    let last = messages
        .iter()
        .filter(|one| one.text().contains("🔍") && one.text().contains("PR #1"));
    assert_eq!(last.count(), 1, "{messages:#?}");
    let results = messages
        .iter()
        .filter(|one| one.text().starts_with("<@1> PR #1"));
    assert_eq!(
        results.count(),
        1,
        "the nonce makes no second one: {messages:#?}"
    );
    bot.room.close().await;
}

#[tokio::test]
async fn bots_quotations_forwarded_text_and_other_peoples_talk_start_nothing() {
    let bot = Bot::new().await;
    bot.listen();
    let fix = |id: &str| said(id, "1", "fix the greeting");
    let quoted = format!("> <@{DISCORD_BOT}> fix the greeting");
    let code = format!("`<@{DISCORD_BOT}> fix the greeting`");
    for message in [
        with(
            fix("1"),
            &json!({"author": {"id": "8", "username": "ci", "bot": true}}),
        ),
        with(
            fix("2"),
            &json!({"author": {"id": DISCORD_BOT, "username": "spar", "bot": true}}),
        ),
        with(fix("3"), &json!({"webhook_id": "7"})),
        with(fix("4"), &json!({"content": quoted})),
        with(fix("5"), &json!({"content": code})),
        with(
            fix("6"),
            &json!({"message_reference": {"type": 1, "message_id": "1"}}),
        ),
        with(fix("7"), &json!({"type": 7})),
        with(
            fix("8"),
            &json!({"content": "fix the greeting", "mentions": []}),
        ),
    ] {
        bot.say(&message);
    }
    bot.discord.gateway.dispatch("MESSAGE_UPDATE", &fix("9"));
    bot.discord
        .gateway
        .dispatch("MESSAGE_CREATE", &json!({"id": 1}));
    bot.say(&said("10", "2", "whoami"));
    bot.read("role read").await;
    bot.room.idle(DISCORD).await;
    assert!(bot.room.tasks().await.is_empty());
    assert_eq!(bot.discord.messages().len(), 1);
    bot.room.close().await;
}

#[tokio::test]
async fn a_thread_channel_is_a_thread_of_its_channel_and_a_direct_chat_needs_no_mention() {
    let bot = Bot::new().await;
    bot.discord.add_thread("501", "500");
    bot.listen();
    bot.say(&with(
        said("5", "2", "whoami"),
        &json!({"channel_id": "501"}),
    ));
    bot.read("role read").await;
    let answer = bot.discord.messages().pop().unwrap();
    assert_eq!(answer.conversation, "501");
    assert_eq!(answer.revisions[0].get("message_reference"), None);
    let store = bot.room.runtime.store();
    let message = store.message("discord:500:5").await.unwrap();
    assert_eq!(message.at.thread, "channel-501");
    let mut direct = with(
        said("6", "2", ""),
        &json!({"channel_id": "700", "content": "whoami"}),
    );
    direct["mentions"] = json!([]);
    direct.as_object_mut().unwrap().remove("guild_id");
    bot.say(&direct);
    until("an answer there", || {
        bot.discord
            .messages()
            .iter()
            .any(|one| one.conversation == "700")
    })
    .await;
    bot.room.close().await;
}

#[tokio::test]
async fn pictures_come_from_discord_alone_and_within_their_size() {
    let bot = Bot::new().await;
    let fetch = |url: &str| {
        let url = url.to_owned();
        let channel = DiscordChannel::new(bot.api.clone());
        async move { channel.fetch_image(&url, 1 << 20).await }
    };
    bot.discord.keep_file("small", b"picture");
    bot.discord.keep_file("large", &vec![0; 2 << 20]);
    assert_eq!(
        fetch(&bot.discord.file_url("small")).await.unwrap(),
        b"picture"
    );
    let large = fetch(&bot.discord.file_url("large")).await.unwrap_err();
    assert!(large.contains("more than 1 MB"), "{large}");
    for elsewhere in [
        "https://evil.example/a.png",
        "https://cdn.discordapp.com.evil.example/a.png",
        "http://cdn.discordapp.com/a.png",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "nonsense",
    ] {
        assert!(fetch(elsewhere).await.is_err(), "{elsewhere}");
    }
    bot.room.close().await;
}

#[tokio::test]
async fn interactions_are_believed_by_their_signature_alone() {
    let bot = Bot::new().await;
    let (signer, forger) = (
        DiscordSigner::new(1).unwrap(),
        DiscordSigner::new(2).unwrap(),
    );
    let hook = bot.hook(&signer);
    let headers = |by: &DiscordSigner, stamp: i64, body: &str| {
        let stamp = stamp.to_string();
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-signature-ed25519",
            by.sign(&stamp, body).parse().unwrap(),
        );
        headers.insert("x-signature-timestamp", stamp.parse().unwrap());
        headers
    };
    let now = Timestamp::now().as_second();
    let ping = json!({"type": 1, "id": "1", "token": "t"}).to_string();
    let (status, pong) = deliver(&hook, &headers(&signer, now, &ping), &ping).await;
    assert_eq!((status, pong.as_str()), (200, "{\"type\":1}"));
    let large = "x".repeat(10 << 20);
    for (headers, body, expected) in [
        (headers(&forger, now, &ping), ping.as_str(), 401),
        (headers(&signer, now, "another body"), &ping, 401),
        (headers(&signer, now - 301, &ping), &ping, 401),
        (headers(&signer, now + 360, &ping), &ping, 401),
        (HeaderMap::new(), &ping, 401),
        (headers(&signer, now, "{nonsense"), "{nonsense", 400),
        (headers(&signer, now, &large), &large, 413),
    ] {
        let (status, _) = deliver(&hook, &headers, body).await;
        assert_eq!(status, expected, "{body:.60}");
    }
    let pressed = json!({
        "id": "77", "token": "t", "type": 3, "channel_id": "500", "guild_id": "1",
        "member": {"user": {"id": "2", "username": "bob"}}, "message": {"id": "1000"},
        "data": {"custom_id": "whoami", "component_type": 2},
    })
    .to_string();
    for _ in 0..3 {
        let (status, body) = deliver(&hook, &headers(&signer, now, &pressed), &pressed).await;
        assert_eq!((status, body.as_str()), (200, "{\"type\":6}"));
    }
    bot.room.idle(DISCORD).await;
    let messages = bot.discord.messages();
    assert_eq!(
        messages.len(),
        1,
        "a replay is the same press: {messages:#?}"
    );
    assert!(messages[0].text().starts_with("<@2> "), "{messages:#?}");
    bot.room.close().await;
}
