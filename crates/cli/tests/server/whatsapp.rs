//! WhatsApp and the server, through the real binary: deliveries over its webhook.

use codespar_testkit::{
    chat::{ChatControl, ChatMessage},
    whatsapp::{
        FakeWhatsApp, WHATSAPP_APP_SECRET, WHATSAPP_NUMBER, WHATSAPP_TOKEN, whatsapp_delivery,
        whatsapp_signature,
    },
};
use serde_json::{Value, json};

use crate::{
    common::kill_points::PLATFORM_POINTS,
    crash::{Repeats, killed_at_any_point_it_is_done_once},
    stage::{
        Link, Person, Saying, Stage, Theatre, a_question_is_answered_by_a_button,
        from_a_mention_to_the_merge, half_a_setup_is_refused,
    },
};

struct WhatsApp(FakeWhatsApp);

impl WhatsApp {
    fn deliver(link: &Link<'_>, by: Person, message: &Value) {
        let id = Self::user(by);
        let contact = json!({"user_id": id, "profile": {"name": format!("{by:?}")}});
        let mut message = message.clone();
        message["from_user_id"] = json!(id);
        let body = whatsapp_delivery(&contact, &message);
        let signature = whatsapp_signature(WHATSAPP_APP_SECRET, &body);
        link.post(
            "/hooks/whatsapp",
            &[("x-hub-signature-256", signature)],
            body,
        );
    }
}

impl Stage for WhatsApp {
    const NAME: &'static str = "whatsapp";
    const CONVERSATION: &'static str = "US.1";
    const REPEATS: Repeats = Repeats::Posted;
    const LEAST_REVISIONS: usize = 1;
    // Nothing can be edited: progress shows how a run began.
    const ENDED: &'static str = "🔍 acme/api";

    async fn start() -> Self {
        Self(FakeWhatsApp::start().await.unwrap())
    }

    fn control(&self) -> &ChatControl {
        &self.0
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("WHATSAPP_ACCESS_TOKEN", WHATSAPP_TOKEN.to_owned()),
            ("WHATSAPP_PHONE_NUMBER_ID", WHATSAPP_NUMBER.to_owned()),
            ("WHATSAPP_APP_SECRET", WHATSAPP_APP_SECRET.to_owned()),
            ("WHATSAPP_VERIFY_TOKEN", "verify".to_owned()),
            ("WHATSAPP_API_URL", self.0.url.clone()),
        ]
    }

    fn user(person: Person) -> &'static str {
        match person {
            Person::Ann => "US.1",
            Person::Bob => "US.2",
            Person::Eve => "US.3",
        }
    }

    fn say(&self, link: &Link<'_>, saying: &Saying<'_>) {
        let mut message = json!({"id": format!("wamid.P{}", saying.number), "timestamp": "1"});
        match saying.picture {
            Some(file) => {
                message["type"] = json!("image");
                message["image"] = json!({"id": file, "caption": saying.text});
            }
            None => {
                message["type"] = json!("text");
                message["text"] = json!({"body": saying.text});
            }
        }
        if let Some(ours) = saying.reply_to {
            message["context"] = json!({"id": ours.id});
        }
        Self::deliver(link, saying.by, &message);
    }

    fn press(&self, link: &Link<'_>, by: Person, on: &ChatMessage, value: &str) {
        let buttons = &on.revisions.last().unwrap()["interactive"]["action"]["buttons"];
        let mut replies = buttons.as_array().unwrap().iter();
        assert!(
            replies.any(|button| button["reply"]["id"] == value),
            "{buttons}"
        );
        let message = json!({
            "id": format!("wamid.B{by:?}{}{value}", on.id), "timestamp": "1",
            "type": "interactive", "context": {"id": on.id},
            "interactive": {"type": "button_reply", "button_reply": {"id": value, "title": "x"}},
        });
        Self::deliver(link, by, &message);
    }
}

#[test]
fn from_a_message_to_the_merge_on_whatsapp() {
    from_a_mention_to_the_merge::<WhatsApp>();
}

#[test]
fn a_question_on_whatsapp_is_answered_by_a_button() {
    // Chats are private: in another person's there is no question.
    a_question_is_answered_by_a_button::<WhatsApp>("no question waits for an answer here");
}

#[test]
fn a_server_that_is_killed_at_any_point_does_it_once_on_whatsapp() {
    killed_at_any_point_it_is_done_once::<Theatre<WhatsApp>>(&PLATFORM_POINTS);
}

#[test]
fn half_a_setup_of_whatsapp_is_refused() {
    let given = [
        ("WHATSAPP_ACCESS_TOKEN", "x"),
        ("WHATSAPP_VERIFY_TOKEN", "y"),
    ];
    half_a_setup_is_refused(&given, "WHATSAPP_APP_SECRET");
}
