//! Telegram and the server, through the real binary: updates that are asked for.

use codespar_testkit::{
    chat::{ChatControl, ChatMessage},
    telegram::{FakeTelegram, TELEGRAM_BOT, TELEGRAM_STOP_EMOJI, TELEGRAM_TOKEN},
};
use serde_json::{Value, json};

use crate::{
    common::{kill_points::PLATFORM_POINTS, wait_for},
    crash::{Repeats, killed_at_any_point_it_is_done_once},
    room::{FIX, answer, script, writer},
    stage::{
        Link, NEEDS_WRITE, Person, ReactingStage, Saying, Stage, Theatre,
        a_question_is_answered_by_a_button, a_stop_sign_stops_the_run, from_a_mention_to_the_merge,
        half_a_setup_is_refused,
    },
};

/// Everybody is in one group.
const GROUP: i64 = -100_200;

struct Telegram(FakeTelegram);

fn from(person: Person) -> Value {
    let id: i64 = Telegram::user(person).parse().unwrap();
    json!({"id": id, "is_bot": false, "first_name": format!("{person:?}")})
}

fn chat() -> Value {
    json!({"id": GROUP, "type": "supergroup", "title": "Team"})
}

fn number(message: &ChatMessage) -> i64 {
    message.id.parse().unwrap()
}

impl Stage for Telegram {
    const NAME: &'static str = "telegram";
    const CONVERSATION: &'static str = "-100200";
    const REPEATS: Repeats = Repeats::Posted;

    async fn start() -> Self {
        Self(FakeTelegram::start().await.unwrap())
    }

    fn control(&self) -> &ChatControl {
        &self.0
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("TELEGRAM_BOT_TOKEN", TELEGRAM_TOKEN.to_owned()),
            ("TELEGRAM_API_URL", self.0.url.clone()),
        ]
    }

    fn say(&self, _: &Link<'_>, saying: &Saying<'_>) {
        let name = TELEGRAM_BOT.1;
        let text = format!("@{name} {}", saying.text);
        let entities = json!([{"type": "mention", "offset": 0, "length": name.len() + 1}]);
        let mut message = json!({
            "message_id": saying.number, "date": 1, "from": from(saying.by), "chat": chat(),
        });
        let (text_at, entities_at) = match saying.picture {
            Some(file) => {
                message["photo"] = json!([
                    {"file_id": "none", "width": 9, "height": 9},
                    {"file_id": file, "width": 90, "height": 90},
                ]);
                ("caption", "caption_entities")
            }
            None => ("text", "entities"),
        };
        message[text_at] = json!(text);
        message[entities_at] = entities;
        if let Some(ours) = saying.reply_to {
            message["reply_to_message"] = json!({
                "message_id": number(ours), "date": 1, "chat": chat(),
                "from": {"id": TELEGRAM_BOT.0, "is_bot": true, "first_name": "Spar"},
            });
        }
        self.0.deliver(&json!({"message": message}));
    }

    fn say_again(&self, _: &Link<'_>, _: &Saying<'_>) {}

    fn press(&self, _: &Link<'_>, by: Person, on: &ChatMessage, value: &str) {
        let keyboard = &on.revisions.last().unwrap()["reply_markup"]["inline_keyboard"];
        let buttons = keyboard
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|row| row.as_array().unwrap());
        let mut values = buttons.map(|button| button["callback_data"].as_str().unwrap());
        assert!(values.any(|one| one == value), "{keyboard}");
        let id = format!("{by:?}-{}-{value}", on.id);
        self.0.deliver(&json!({"callback_query": {
            "id": id, "from": from(by), "chat_instance": "1", "data": value,
            "message": {"message_id": number(on), "date": 1, "chat": chat()},
        }}));
    }
}

impl ReactingStage for Telegram {
    const SIGNS: [&'static str; 2] = ["1", TELEGRAM_STOP_EMOJI];

    fn react(&self, by: Person, on: &ChatMessage, sign: &str) {
        self.0.deliver(&json!({"message_reaction": {
            "chat": chat(), "message_id": number(on), "user": from(by), "date": 1,
            "old_reaction": [],
            "new_reaction": [{"type": "custom_emoji", "custom_emoji_id": sign}],
        }}));
    }
}

#[test]
fn a_stop_sign_on_telegram_stops_the_run() {
    a_stop_sign_stops_the_run::<Telegram>();
}

#[test]
fn from_a_mention_to_the_merge_on_telegram() {
    from_a_mention_to_the_merge::<Telegram>();
}

#[test]
fn a_question_on_telegram_is_answered_by_a_button() {
    a_question_is_answered_by_a_button::<Telegram>(NEEDS_WRITE);
}

#[test]
fn a_server_that_is_killed_at_any_point_does_it_once_on_telegram() {
    killed_at_any_point_it_is_done_once::<Theatre<Telegram>>(&PLATFORM_POINTS);
}

#[test]
fn a_delivery_is_acknowledged_and_the_token_is_shown_nowhere() {
    let theatre = Theatre::<Telegram>::new(script([writer("say hi", [answer("Say hi", FIX)])]));
    let refused = json!({"ok": false, "error_code": 401, "description": "Unauthorized"});
    for method in ["getMe", "getUpdates", "sendMessage"] {
        let fault = codespar_testkit::chat::ChatFault::Refused(401, refused.clone());
        theatre.stage.0.inject(method, fault);
    }
    let served = theatre.serve();
    let link = theatre.link(&served);
    for _ in 0..2 {
        theatre
            .stage
            .say(&link, &Saying::new(Person::Bob, 1, "whoami"));
        theatre
            .stage
            .say(&link, &Saying::new(Person::Bob, 2, "whoami"));
    }
    theatre.read("role read");
    wait_for("all are acknowledged", || {
        theatre.stage.0.unacknowledged() == 0
    });
    let posted = theatre.stage.0.messages().len();
    assert_eq!(posted, 1, "one was refused, one was sent, and none twice");
    served.running.kill_9().unwrap();
    let logs = std::fs::read_dir(theatre.bench.room.codespar_home()).unwrap();
    for entry in logs.flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains("test-token-of-the-bot"),
            "{:?}",
            entry.path()
        );
    }
}

#[test]
fn half_a_setup_of_telegram_is_refused() {
    half_a_setup_is_refused(&[("TELEGRAM_WEBHOOK_SECRET", "x")], "TELEGRAM_BOT_TOKEN");
}
