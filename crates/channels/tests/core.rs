//! The core with a real runtime, database and repository, and a platform whose faults are chosen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_channels::{
    AddressedMessage, ChannelAdapter, ChannelFinding, Inbound, Outbound, OutboundKind, Pace,
    Privacy, SendError, Speaker, SpeakerKind, StopReaction, ThreadRef,
};
use codespar_store::Receipt;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;

use common::{PATIENCE, Room, until};

/// A platform that keeps what is posted.
#[derive(Default)]
struct Platform {
    messages: Mutex<Vec<Posted>>,
    /// Taken one by one by the next calls.
    faults: Mutex<VecDeque<SendError>>,
    calls: Mutex<Vec<&'static str>>,
    /// What is posted is seen at once, and answered when there is a permit.
    answers: Option<Arc<Semaphore>>,
}

#[derive(Debug, Clone)]
struct Posted {
    key: String,
    revisions: Vec<Outbound>,
}

impl Platform {
    fn fault(&self) -> Result<(), SendError> {
        self.faults.lock().pop_front().map_or(Ok(()), Err)
    }

    fn of_kind(&self, kind: OutboundKind) -> Vec<Posted> {
        let messages = self.messages.lock();
        let is_it = |one: &&Posted| one.revisions[0].kind == kind;
        messages.iter().filter(is_it).cloned().collect()
    }

    fn last_texts(&self, kind: OutboundKind) -> Vec<String> {
        let posted = self.of_kind(kind);
        let texts = posted
            .iter()
            .map(|one| one.revisions.last().unwrap().text.clone());
        texts.collect()
    }
}

#[async_trait]
impl ChannelAdapter for Platform {
    fn name(&self) -> &str {
        "test"
    }

    fn pace(&self) -> Pace {
        Pace::default()
    }

    async fn post(&self, outgoing: AddressedMessage<'_>) -> Result<String, SendError> {
        let AddressedMessage { key, message, .. } = outgoing;
        self.calls.lock().push("post");
        self.fault()?;
        let place = {
            let mut messages = self.messages.lock();
            messages.push(Posted {
                key: key.to_owned(),
                revisions: vec![message.clone()],
            });
            messages.len() - 1
        };
        if let Some(answers) = &self.answers {
            answers.acquire().await.unwrap().forget();
        }
        Ok(place.to_string())
    }

    async fn edit(&self, id: &str, outgoing: AddressedMessage<'_>) -> Result<(), SendError> {
        let AddressedMessage { message, .. } = outgoing;
        self.calls.lock().push("edit");
        self.fault()?;
        let mut messages = self.messages.lock();
        messages[id.parse::<usize>().unwrap()]
            .revisions
            .push(message.clone());
        Ok(())
    }

    async fn find_posted(&self, _: &ThreadRef, key: &str) -> Result<Option<String>, SendError> {
        let messages = self.messages.lock();
        let place = messages.iter().position(|one| one.key == key);
        Ok(place.map(|place| place.to_string()))
    }

    async fn check(&self) -> Vec<ChannelFinding> {
        Vec::new()
    }
}

fn message(identity: &str, user: &str, text: &str) -> Inbound {
    Inbound {
        identity: format!("test:{identity}"),
        at: ThreadRef {
            channel: "test".to_owned(),
            conversation: "room".to_owned(),
            thread: "t".to_owned(),
        },
        speaker: Speaker {
            id: user.to_owned(),
            name: user.to_owned(),
            kind: SpeakerKind::Person,
        },
        mentioned: false,
        privacy: Privacy::Room,
        text: text.to_owned(),
        images: Vec::new(),
        reply_to: None,
    }
}

async fn served() -> (Room, Arc<Platform>) {
    let (room, platform) = (Room::new().await, Arc::new(Platform::default()));
    room.serve(platform.clone());
    (room, platform)
}

const FIX: &str = "@codespar fix the greeting";

#[tokio::test]
async fn a_reaction_to_a_message_whose_id_is_not_on_record_yet_counts() {
    let answers = Arc::new(Semaphore::new(0));
    let platform = Arc::new(Platform {
        answers: Some(answers.clone()),
        ..Platform::default()
    });
    let room = Room::new().await;
    room.serve(platform.clone());
    room.say(message("1", "ann", FIX)).await;
    until("the message is seen", || {
        !platform.messages.lock().is_empty()
    })
    .await;
    assert!(platform.messages.lock()[0].key.starts_with("task/"));
    let reaction = StopReaction {
        identity: "test:reaction".to_owned(),
        channel: "test".to_owned(),
        conversation: "room".to_owned(),
        message_id: "0".to_owned(),
        speaker: message("2", "ann", "").speaker,
    };
    let answer_later = async {
        tokio::task::yield_now().await;
        answers.add_permits(Semaphore::MAX_PERMITS);
    };
    let (received, ()) = tokio::join!(room.core.receive_stop(reaction), answer_later);
    received.unwrap();
    let message = room.runtime.store().message("test:reaction").await.unwrap();
    assert!(message.body.contains("stop "), "{message:#?}");
    room.close().await;
}

#[tokio::test]
async fn a_message_that_is_delivered_three_times_is_one_task() {
    let (room, platform) = served().await;
    let receipts = [
        room.say(message("1", "ann", FIX)).await,
        room.say(message("1", "ann", FIX)).await,
    ];
    assert_eq!(receipts, [Receipt::New, Receipt::Known]);
    room.idle("test").await;
    // A redelivery after all is done.
    assert_eq!(room.say(message("1", "ann", FIX)).await, Receipt::Known);
    room.idle("test").await;
    assert_eq!(room.tasks().await.len(), 1);
    let progress = platform.of_kind(OutboundKind::Progress);
    assert_eq!(progress.len(), 1);
    let last = &progress[0].revisions.last().unwrap().text;
    assert!(last.starts_with("🔍 work · Found"), "{last}");
    assert!(last.contains("PR #1"), "{last}");
    let results = platform.of_kind(OutboundKind::Result);
    assert_eq!(results.len(), 1);
    assert_eq!(
        results[0].revisions[0].mention.as_ref().unwrap().id,
        "ann",
        "the result notifies the requester"
    );
    room.close().await;
}

#[tokio::test]
async fn one_mention_as_two_events_is_one_task_in_either_order() {
    for order in [[true, false], [false, true]] {
        let (room, platform) = served().await;
        for mentioned in order {
            let event = Inbound {
                mentioned,
                // As a platform that tells of the mention by the event alone.
                text: "fix the greeting".to_owned(),
                ..message("1", "ann", "")
            };
            room.say(event).await;
            // The first is decided on before the second comes.
            room.idle("test").await;
        }
        assert_eq!(room.tasks().await.len(), 1, "{order:?}");
        assert_eq!(platform.of_kind(OutboundKind::Result).len(), 1);
        room.close().await;
    }
}

#[tokio::test]
async fn bots_are_not_heard_unless_they_are_listed_and_our_own_text_never() {
    let (room, platform) = served().await;
    let by = |identity: &str, id: &str, kind| {
        let mut inbound = message(identity, id, "@codespar whoami");
        inbound.speaker.kind = kind;
        inbound.at.conversation = "ops".to_owned();
        inbound
    };
    for round in 0..3 {
        room.say(by(&format!("a{round}"), "other", SpeakerKind::Bot))
            .await;
        room.say(by(&format!("b{round}"), "ann", SpeakerKind::Ourselves))
            .await;
    }
    room.idle("test").await;
    assert!(platform.messages.lock().is_empty());
    room.say(by("c", "ci", SpeakerKind::Bot)).await;
    room.idle("test").await;
    let texts = platform.last_texts(OutboundKind::Text);
    assert_eq!(texts, ["ci (ci), role write"]);
    room.close().await;
}

#[tokio::test]
async fn a_platform_that_asks_to_wait_is_asked_again_and_shows_the_message_once() {
    let (room, platform) = (Room::new().await, Arc::new(Platform::default()));
    platform.faults.lock().extend([
        SendError::RetryAfter(Duration::from_millis(300)),
        SendError::Temporary("502".to_owned()),
    ]);
    room.serve(platform.clone());
    room.say(message("1", "bob", "@codespar whoami")).await;
    room.idle("test").await;
    let texts = platform.last_texts(OutboundKind::Text);
    assert_eq!(texts, ["bob (bob), role read"]);
    assert_eq!(*platform.calls.lock(), ["post", "post", "post"]);
    room.close().await;
}

/// A token, with something that nobody sees after each of its characters.
#[tokio::test]
async fn a_secret_that_invisible_characters_cut_is_not_told() {
    let token = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let hidden = [
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{2060}',
        '\u{feff}',
        '\u{ad}',
        '\u{e0041}',
    ];
    let (room, platform) = served().await;
    for (number, invisible) in (1..).zip(hidden) {
        let cut: String = token.chars().flat_map(|c| [c, invisible]).collect();
        let mut inbound = message(&number.to_string(), "bob", "@codespar whoami");
        // Anybody may have any name, and it is said in the answer.
        inbound.speaker.name = cut;
        inbound.at.thread = number.to_string();
        room.say(inbound).await;
    }
    room.idle("test").await;
    let texts = platform.last_texts(OutboundKind::Text);
    assert_eq!(texts.len(), hidden.len(), "{texts:?}");
    for text in texts {
        let shown: String = text.chars().filter(char::is_ascii).collect();
        assert!(!shown.contains("a1B2c3D4"), "{text:?}");
        assert!(text.ends_with("role read"), "{text:?}");
    }
    room.close().await;
}

#[tokio::test]
async fn a_message_that_is_given_up_keeps_nobody_waiting() {
    let (room, platform) = (Room::new().await, Arc::new(Platform::default()));
    let refused = SendError::Permanent("the channel is archived".to_owned());
    platform.faults.lock().push_back(refused);
    room.serve(platform.clone());
    room.say(message("1", "bob", "@codespar whoami")).await;
    // Nothing else changes after it was given up.
    room.idle("test").await;
    assert_eq!(
        room.given_up("test:1/reply").await,
        "the channel is archived"
    );
    assert!(platform.messages.lock().is_empty());
    room.close().await;
}

#[tokio::test]
async fn a_message_that_cannot_be_edited_any_more_is_posted_anew() {
    let (room, platform) = served().await;
    room.say(message("1", "bob", "@codespar whoami")).await;
    room.idle("test").await;
    platform.faults.lock().push_back(SendError::CannotEdit);
    let store = room.runtime.store().clone();
    let row = store.outbound("test:1/reply").await.unwrap().unwrap();
    let changed = codespar_store::NewOutbound {
        key: row.key,
        at: row.at,
        kind: row.kind,
        body: row.body.replace("bob (bob)", "Bob"),
        priority: codespar_store::OutboundPriority::Reply,
    };
    store.put_outbound(changed).await.unwrap();
    room.idle("test").await;
    assert_eq!(*platform.calls.lock(), ["post", "edit", "post"]);
    let texts = platform.last_texts(OutboundKind::Text);
    assert_eq!(texts, ["bob (bob), role read", "Bob, role read"]);
    room.close().await;
}

#[tokio::test]
async fn a_delivery_that_a_crash_cut_short_is_looked_for_before_it_is_posted_again() {
    let (room, platform) = served().await;
    room.say(message("1", "bob", "@codespar whoami")).await;
    room.idle("test").await;
    let store = room.runtime.store().clone();
    let row = store.outbound("test:1/reply").await.unwrap().unwrap();
    // As a process that died after the platform had the message.
    let lost = codespar_store::NewOutbound {
        key: "test:2/reply".to_owned(),
        at: row.at.clone(),
        kind: row.kind.clone(),
        body: row.body.clone(),
        priority: codespar_store::OutboundPriority::Reply,
    };
    let posted = serde_json::from_str(&row.body).unwrap();
    platform.messages.lock().push(Posted {
        key: lost.key.clone(),
        revisions: vec![posted],
    });
    let key = lost.key.clone();
    room.cancel.cancel();
    store.put_outbound(lost).await.unwrap();
    store
        .record_delivery(&key, codespar_store::Delivery::Begun)
        .await
        .unwrap();
    let (core, adapter) = (room.core.clone(), platform.clone());
    let cancel = CancellationToken::new();
    let serving = tokio::spawn({
        let cancel = cancel.clone();
        async move { core.serve(adapter, cancel).await }
    });
    room.idle("test").await;
    let count = platform.messages.lock().len();
    assert_eq!(count, 2, "it is edited, not posted a second time");
    cancel.cancel();
    timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
    room.close().await;
}

#[tokio::test]
async fn only_a_linked_repository_can_be_named_and_only_an_admin_links() {
    let (room, platform) = served().await;
    room.say(message("1", "ann", "@codespar fix it in acme/secret"))
        .await;
    room.idle("test").await;
    room.say(message("2", "bob", "@codespar link acme/secret"))
        .await;
    room.idle("test").await;
    let texts = platform.last_texts(OutboundKind::Text);
    assert!(
        texts[0].contains("acme/secret is not linked here"),
        "{texts:?}"
    );
    assert!(texts[1].contains("needs the role admin"), "{texts:?}");
    assert!(room.tasks().await.is_empty());
    room.close().await;
}

#[tokio::test]
async fn a_task_of_another_conversation_does_not_exist_here() {
    let (room, platform) = served().await;
    room.say(message("1", "ann", FIX)).await;
    room.idle("test").await;
    let id = room.tasks().await[0].task_id.clone();
    let mut elsewhere = message("2", "ann", &format!("@codespar logs {id}"));
    elsewhere.at.conversation = "other".to_owned();
    room.say(elsewhere).await;
    room.say(message("3", "bob", &format!("@codespar status {id}")))
        .await;
    room.idle("test").await;
    let texts = platform.last_texts(OutboundKind::Text);
    let missing = format!("there is no task `{id}` here");
    assert!(texts.contains(&missing), "{texts:?}");
    assert!(
        texts.iter().any(|text| text.contains("completed: dev:")),
        "{texts:?}"
    );
    room.close().await;
}

#[tokio::test]
async fn no_adapter_speaks_in_the_channel_of_the_page() {
    let room = Room::new().await;
    let token = room.runtime.store().create_token(codespar_store::NewToken {
        name: "admin".to_owned(),
        role: codespar_protocol::AccessRole::Admin,
        hash: codespar_store::SecretHash("0".repeat(64)),
    });
    let id = token.await.unwrap().id.to_string();
    let forged = Inbound {
        identity: format!("web:{id}:k"),
        at: ThreadRef {
            channel: codespar_channels::WEB.to_owned(),
            conversation: "c".to_owned(),
            thread: "t".to_owned(),
        },
        speaker: Speaker {
            id: id.clone(),
            name: "admin".to_owned(),
            kind: SpeakerKind::Person,
        },
        mentioned: true,
        privacy: Privacy::Direct,
        text: "@codespar fix the greeting".to_owned(),
        images: Vec::new(),
        reply_to: None,
    };
    assert!(room.core.receive(forged).await.is_err());
    let open = room.runtime.store().open_messages("web").await.unwrap();
    assert!(open.is_empty());
    room.close().await;
}
