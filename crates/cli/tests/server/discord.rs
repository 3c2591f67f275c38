//! Discord and the server, through the real binary: events of the gateway.

use codespar_testkit::{
    chat::{ChatControl, ChatMessage},
    discord::{DISCORD_BOT, DISCORD_TOKEN, FakeDiscord},
};
use serde_json::{Value, json};

use crate::{
    common::kill_points::PLATFORM_POINTS,
    crash::killed_at_any_point_it_is_done_once,
    stage::{
        Link, NEEDS_WRITE, Person, ReactingStage, Saying, Stage, Theatre,
        a_question_is_answered_by_a_button, a_stop_sign_stops_the_run, from_a_mention_to_the_merge,
        half_a_setup_is_refused,
    },
};

/// Everybody is in one channel of a server.
const CHANNEL: &str = "500";

struct Discord(FakeDiscord);

fn user(person: Person) -> Value {
    json!({"id": Discord::user(person), "username": format!("{person:?}")})
}

impl Stage for Discord {
    const NAME: &'static str = "discord";
    const CONVERSATION: &'static str = CHANNEL;

    async fn start() -> Self {
        Self(FakeDiscord::start().await.unwrap())
    }

    fn control(&self) -> &ChatControl {
        &self.0
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("DISCORD_BOT_TOKEN", DISCORD_TOKEN.to_owned()),
            ("DISCORD_API_URL", self.0.url.clone()),
        ]
    }

    fn say(&self, _: &Link<'_>, saying: &Saying<'_>) {
        let mut message = json!({
            "id": saying.number.to_string(), "channel_id": CHANNEL, "guild_id": "1", "type": 0,
            "author": user(saying.by), "content": format!("<@{DISCORD_BOT}> {}", saying.text),
            "mentions": [{"id": DISCORD_BOT, "username": "spar", "bot": true}],
        });
        if let Some(file) = saying.picture {
            let url = self.0.file_url(file);
            message["attachments"] = json!([{"id": "1", "filename": "a.png", "url": url}]);
        }
        if let Some(ours) = saying.reply_to {
            message["type"] = json!(19);
            message["message_reference"] = json!({"type": 0, "message_id": ours.id});
        }
        self.0.gateway.dispatch("MESSAGE_CREATE", &message);
    }

    fn say_again(&self, _: &Link<'_>, _: &Saying<'_>) {}

    fn press(&self, _: &Link<'_>, by: Person, on: &ChatMessage, value: &str) {
        let rows = &on.revisions.last().unwrap()["components"];
        let buttons = rows.as_array().unwrap().iter();
        let mut buttons = buttons.flat_map(|row| row["components"].as_array().unwrap());
        assert!(buttons.any(|button| button["custom_id"] == value), "{rows}");
        let id = format!("{by:?}-{}-{value}", on.id).replace([' ', '#'], "-");
        self.0.gateway.dispatch("INTERACTION_CREATE", &json!({
            "id": id, "token": "token", "type": 3, "channel_id": on.conversation, "guild_id": "1",
            "member": {"user": user(by)}, "message": {"id": on.id},
            "data": {"custom_id": value, "component_type": 2},
        }));
    }
}

impl ReactingStage for Discord {
    const SIGNS: [&'static str; 2] = ["👍", "⏹️"];

    fn react(&self, by: Person, on: &ChatMessage, sign: &str) {
        self.0.gateway.dispatch(
            "MESSAGE_REACTION_ADD",
            &json!({
                "user_id": Discord::user(by), "channel_id": on.conversation, "message_id": on.id,
                "guild_id": "1", "member": {"user": user(by)}, "emoji": {"id": null, "name": sign},
            }),
        );
    }
}

#[test]
fn a_stop_sign_on_discord_stops_the_run() {
    a_stop_sign_stops_the_run::<Discord>();
}

#[test]
fn from_a_mention_to_the_merge_on_discord() {
    from_a_mention_to_the_merge::<Discord>();
}

#[test]
fn a_question_on_discord_is_answered_by_a_button() {
    a_question_is_answered_by_a_button::<Discord>(NEEDS_WRITE);
}

#[test]
fn a_server_that_is_killed_at_any_point_does_it_once_on_discord() {
    killed_at_any_point_it_is_done_once::<Theatre<Discord>>(&PLATFORM_POINTS);
}

#[test]
fn half_a_setup_of_discord_is_refused() {
    half_a_setup_is_refused(&[("DISCORD_PUBLIC_KEY", "00")], "DISCORD_BOT_TOKEN");
}
