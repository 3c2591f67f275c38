//! WhatsApp over real HTTP: the webhook, and a Cloud API whose faults are chosen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::sync::Arc;

use codespar_channels::{
    ChannelAdapter, FindingKind, HookMethod, HookRequest, Webhook,
    whatsapp::{
        WHATSAPP, WhatsAppApi, WhatsAppChannel, WhatsAppHook, WhatsAppSecrets, WhatsAppSetup,
    },
};
use codespar_testkit::{
    chat::ChatFault,
    whatsapp::{
        FakeWhatsApp, WHATSAPP_APP_SECRET, WHATSAPP_NUMBER, WHATSAPP_TOKEN, whatsapp_delivery,
        whatsapp_signature,
    },
};
use http::HeaderMap;
use serde_json::{Value, json};

use common::{Room, deliver};

struct Business {
    room: Room,
    whatsapp: FakeWhatsApp,
    hook: WhatsAppHook,
}

impl Business {
    async fn new() -> Self {
        let (room, whatsapp) = (Room::new().await, FakeWhatsApp::start().await.unwrap());
        room.serve(Arc::new(channel(&whatsapp, WHATSAPP_TOKEN)));
        let secrets = WhatsAppSecrets {
            app_secret: WHATSAPP_APP_SECRET.into(),
            verify_token: "verify".into(),
        };
        let hook = WhatsAppHook::new(room.core.clone(), secrets, WHATSAPP_NUMBER.to_owned());
        Self {
            room,
            whatsapp,
            hook,
        }
    }

    async fn send(&self, body: &str) -> u16 {
        deliver(&self.hook, &signed(WHATSAPP_APP_SECRET, body), body)
            .await
            .0
    }

    fn texts(&self) -> Vec<String> {
        let messages = self.whatsapp.messages();
        messages.iter().map(|one| one.text().to_owned()).collect()
    }
}

fn channel(whatsapp: &FakeWhatsApp, token: &str) -> WhatsAppChannel {
    let setup = WhatsAppSetup {
        access_token: token.into(),
        phone_number_id: WHATSAPP_NUMBER.to_owned(),
        api: whatsapp.url.parse().unwrap(),
        proxy: None,
    };
    WhatsAppChannel::new(Arc::new(WhatsAppApi::new(&setup).unwrap()))
}

fn signed(secret: &str, body: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let signature = whatsapp_signature(secret, body);
    headers.insert("x-hub-signature-256", signature.parse().unwrap());
    headers
}

/// Somebody who is known by a business-scoped id.
fn said(id: &str, more: &Value) -> String {
    let mut message = json!({"id": id, "from_user_id": "US.1", "timestamp": "1"});
    for (key, value) in more.as_object().unwrap() {
        message[key] = value.clone();
    }
    let contact = json!({"user_id": "US.1", "profile": {"name": "Ann"}});
    whatsapp_delivery(&contact, &message)
}

fn text(id: &str, text: &str) -> String {
    said(id, &json!({"type": "text", "text": {"body": text}}))
}

#[tokio::test]
async fn a_message_shows_how_it_begins_and_what_it_comes_to() {
    let business = Business::new().await;
    for _ in 0..3 {
        assert_eq!(
            business.send(&text("wamid.A", "fix the greeting")).await,
            200
        );
    }
    business.room.idle(WHATSAPP).await;
    assert_eq!(business.room.tasks().await.len(), 1);
    let messages = business.whatsapp.messages();
    let [begun, result] = messages.as_slice() else {
        panic!("{messages:#?}");
    };
    assert!(begun.text().starts_with("🔍 work · "), "{begun:#?}");
    assert!(result.text().starts_with("PR #1"), "{result:#?}");
    assert_eq!(result.revisions[0]["recipient"], "US.1");
    assert_eq!(result.revisions[0]["context"]["message_id"], "wamid.A");
    business.room.close().await;
}

#[tokio::test]
async fn a_limit_is_waited_for_and_a_closed_window_is_not() {
    let business = Business::new().await;
    let closed = json!({"error": {"message": "(#131047) Re-engagement message", "code": 131_047}});
    business
        .whatsapp
        .inject("messages", ChatFault::RateLimited { seconds: 6 });
    assert_eq!(business.send(&text("wamid.A", "whoami")).await, 200);
    business.room.idle(WHATSAPP).await;
    assert_eq!(business.texts(), ["Ann (US.1), role merge"]);
    business
        .whatsapp
        .inject("messages", ChatFault::Refused(400, closed));
    assert_eq!(business.send(&text("wamid.B", "whoami")).await, 200);
    let failure = business.room.given_up("whatsapp:US.1:wamid.B/reply").await;
    assert_eq!(business.whatsapp.messages().len(), 1);
    assert!(failure.contains("more than 24 hours ago"), "{failure}");
    business.room.close().await;
}

#[tokio::test]
async fn what_is_forged_or_broken_gets_its_status_and_starts_nothing() {
    let business = Business::new().await;
    let fix = text("wamid.A", "fix the greeting");
    let to_another = fix.replace(WHATSAPP_NUMBER, "777");
    let large = "x".repeat(10 << 20);
    let signed = |body: &str| signed(WHATSAPP_APP_SECRET, body);
    for (headers, body, expected) in [
        (self::signed("another-secret", &fix), fix.as_str(), 401),
        (signed("another body"), &fix, 401),
        (HeaderMap::new(), &fix, 401),
        (signed("{nonsense"), "{nonsense", 400),
        (signed(&large), &large, 413),
        (signed(&to_another), &to_another, 200),
        (signed(r#"{"entry": []}"#), r#"{"entry": []}"#, 200),
    ] {
        let (status, _) = deliver(&business.hook, &headers, body).await;
        assert_eq!(status, expected, "{body:.60}");
    }
    business.room.idle(WHATSAPP).await;
    assert!(business.room.tasks().await.is_empty());
    assert!(business.whatsapp.messages().is_empty());
    business.room.close().await;
}

#[tokio::test]
async fn the_address_is_ours_with_the_verify_token_alone() {
    let business = Business::new().await;
    let asked = async |query: &str| {
        let request = HookRequest {
            method: HookMethod::Get,
            query,
            headers: &HeaderMap::new(),
            body: b"",
        };
        let answer = business.hook.handle(request).await;
        (answer.status, answer.body)
    };
    let right = asked("hub.mode=subscribe&hub.verify_token=verify&hub.challenge=42").await;
    assert_eq!(right, (200, "42".to_owned()));
    for wrong in [
        "hub.mode=subscribe&hub.verify_token=other&hub.challenge=42",
        "hub.mode=subscribe&hub.challenge=42",
        "hub.verify_token=verify&hub.challenge=42",
        "",
    ] {
        assert_eq!(asked(wrong).await.0, 403, "{wrong}");
    }
    business.room.close().await;
}

#[tokio::test]
async fn people_without_an_id_are_known_by_their_number_and_strangers_are_refused() {
    let business = Business::new().await;
    let by_number = |id: &str, number: &str| {
        let message = json!({"id": id, "from": number, "text": {"body": "whoami"}});
        whatsapp_delivery(
            &json!({"wa_id": number, "profile": {"name": "Bob"}}),
            &message,
        )
    };
    business.send(&by_number("wamid.A", "491")).await;
    business.send(&by_number("wamid.B", "492")).await;
    business.room.idle(WHATSAPP).await;
    let texts = business.texts();
    assert!(
        texts.contains(&"Bob (491), role read".to_owned()),
        "{texts:?}"
    );
    assert!(
        texts
            .iter()
            .any(|text| text.contains("you have no role here")),
        "{texts:?}"
    );
    let [first, ..] = &business.whatsapp.messages()[..] else {
        panic!("{texts:?}");
    };
    assert_eq!(first.revisions[0]["to"], first.conversation.as_str());
    business.room.close().await;
}

#[tokio::test]
async fn pictures_that_are_too_large_are_named_and_the_text_runs() {
    let business = Business::new().await;
    business.whatsapp.keep_file("77", &vec![0; 5 << 20]);
    let image = json!({"type": "image", "image": {"id": "77", "caption": "fix the greeting"}});
    assert_eq!(business.send(&said("wamid.A", &image)).await, 200);
    business.room.idle(WHATSAPP).await;
    let texts = business.texts();
    let left_out = |text: &String| text.contains("picture is left out");
    assert!(texts.iter().any(left_out), "{texts:#?}");
    assert_eq!(business.room.tasks().await.len(), 1);
    let whatsapp = channel(&business.whatsapp, WHATSAPP_TOKEN);
    for reference in ["../5550001/messages", "", "a?b", "https://evil.example/"] {
        assert!(
            whatsapp.fetch_image(reference, 1 << 20).await.is_err(),
            "{reference}"
        );
    }
    business.room.close().await;
}

#[tokio::test]
async fn the_check_says_what_is_missing_and_where_to_click() {
    let business = Business::new().await;
    let found = channel(&business.whatsapp, WHATSAPP_TOKEN).check().await;
    let kinds: Vec<FindingKind> = found.iter().map(|one| one.kind).collect();
    assert_eq!(
        kinds,
        [FindingKind::Fine, FindingKind::Warning],
        "{found:?}"
    );
    let found = channel(&business.whatsapp, "revoked").check().await;
    assert_eq!(found[0].kind, FindingKind::Problem);
    assert!(found[0].text.contains("API Setup"), "{found:?}");
    assert!(!found[0].text.contains("revoked"), "{found:?}");
    business.room.close().await;
}
