//! Live events: nothing is missed, nobody is held up.

use std::time::Duration;

use codespar_protocol::{AccessRole, Event};
use codespar_server::ServerLimits;
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::stage::{PATIENCE, Stage, wide};

/// An event as a client reads it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Read {
    id: Option<u64>,
    name: String,
    data: Value,
}

struct Stream {
    response: Response,
    text: String,
    /// The last id that was sent, also by signs of life.
    last_id: Option<u64>,
}

impl Stream {
    async fn open(stage: &Stage, query: &str) -> Self {
        Self::open_after(stage, query, None).await
    }

    async fn open_after(stage: &Stage, query: &str, last: Option<u64>) -> Self {
        let mut request = stage
            .request("GET", &format!("/api/v1/events{query}"))
            .bearer_auth(stage.token(AccessRole::Read));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            text: String::new(),
            last_id: last,
        }
    }

    /// The next event; none at the end of the stream.
    async fn next(&mut self) -> Option<Read> {
        tokio::time::timeout(PATIENCE, self.read()).await.unwrap()
    }

    async fn read(&mut self) -> Option<Read> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(event) = self.parse(&block) {
                    return Some(event);
                }
            }
            let chunk = self.response.chunk().await.ok()??;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    fn parse(&mut self, block: &str) -> Option<Read> {
        let field = |name: &str| {
            let mut lines = block.lines();
            lines
                .find_map(|line| line.strip_prefix(name))
                .map(str::to_owned)
        };
        let id = field("id: ").map(|id| id.parse().unwrap());
        self.last_id = id.or(self.last_id);
        Some(Read {
            id,
            name: field("event: ")?,
            data: serde_json::from_str(&field("data: ")?).unwrap(),
        })
    }

    async fn named(&mut self, name: &str) -> Read {
        loop {
            let event = self.next().await.expect("the stream goes on");
            if event.name == name {
                return event;
            }
        }
    }
}

#[tokio::test]
async fn changes_are_told_with_what_a_view_needs() {
    let stage = Stage::new().await;
    let mut stream = Stream::open(&stage, "").await;
    assert_eq!(stream.next().await.unwrap().name, "ready");
    let (task, session) = stage.agent("a").await;
    let made = stream.named("task").await;
    assert_eq!(made.data["status"], "pending");
    assert_eq!(made.data["task"]["task_id"], task.task_id.to_string());
    stage.say(session, 0, "key correct-horse-battery").await;
    let said = stream.named("entry").await;
    assert_eq!(said.data["session_id"], session.to_string());
    assert_eq!(said.data["task_id"], task.task_id.to_string());
    assert_eq!(said.data["seq"], 1);
    assert!(!said.data.to_string().contains("correct-horse"), "{said:?}");
    assert!(said.id > made.id);
    stage.stop().await;
}

#[tokio::test]
async fn a_client_that_reconnects_misses_nothing_and_gets_nothing_twice() {
    let stage = Stage::new().await;
    let session = stage.session(&stage.root("a")).await;
    let mut stream = Stream::open(&stage, "").await;
    stream.next().await.unwrap();
    let mut seen = Vec::new();
    for seq in 0..20 {
        stage.say(session, seq, "x").await;
        if seq % 5 == 4 {
            // Some of what was said is read, then the connection is gone.
            for _ in 0..3 {
                seen.push(stream.named("entry").await.data["seq"].as_u64().unwrap());
            }
            let last = stream.last_id;
            stream = Stream::open_after(&stage, "", last).await;
            assert_eq!(stream.next().await.unwrap().name, "ready");
        }
    }
    while seen.len() < 20 {
        seen.push(stream.named("entry").await.data["seq"].as_u64().unwrap());
    }
    assert_eq!(seen, (1..=20).collect::<Vec<u64>>());
    stage.stop().await;
}

#[tokio::test]
async fn what_other_projects_do_is_not_told() {
    let stage = Stage::new().await;
    let mut stream = Stream::open(&stage, "").await;
    stream.next().await.unwrap();
    let session = stage.session(&stage.root("elsewhere")).await;
    stage.say(session, 0, "not for them").await;
    stage.task("elsewhere", "not for them").await;
    let ours = stage.task("b", "for them").await;
    let event = stream.next().await.unwrap();
    assert_eq!(
        event.data["task"]["task_id"],
        ours.task_id.to_string(),
        "{event:?}"
    );
    stage.stop().await;
}

#[tokio::test]
async fn one_task_or_session_can_be_followed_alone() {
    let stage = Stage::new().await;
    let (task, session) = stage.agent("a").await;
    let mut of_task = Stream::open(&stage, &format!("?task={}", task.task_id)).await;
    let mut of_session = Stream::open(&stage, &format!("?session={session}")).await;
    of_task.next().await.unwrap();
    of_session.next().await.unwrap();
    stage.task("a", "another").await;
    stage.say(session, 0, "mine").await;
    assert_eq!(of_task.next().await.unwrap().name, "entry");
    assert_eq!(of_session.next().await.unwrap().name, "entry");
    stage.stop().await;
}

#[tokio::test]
async fn what_an_agent_says_is_told_as_it_says_it() {
    let stage = Stage::new().await;
    let (task, session) = stage.agent("a").await;
    let mut stream = Stream::open(&stage, "").await;
    stream.next().await.unwrap();
    let text = "key correct-horse-battery".to_owned();
    let delta = Event::TextDelta { text };
    stage
        .runtime
        .events()
        .publish(Some(session), Some(&task.task_id), delta);
    let event = stream.named("agent").await;
    assert_eq!(event.id, None);
    assert_eq!(event.data["task_id"], task.task_id.to_string());
    assert_eq!(event.data["event"]["type"], "text_delta");
    assert!(
        !event.data.to_string().contains("correct-horse"),
        "{event:?}"
    );
    stage.stop().await;
}

#[tokio::test]
async fn a_place_that_was_never_reached_says_resync() {
    let stage = Stage::new().await;
    stage.task("a", "one").await;
    let newest = stage.store().newest_change().await.unwrap().0;
    let mut stream = Stream::open(&stage, &format!("?after={}", newest + 100)).await;
    let event = stream.next().await.unwrap();
    assert_eq!((event.name.as_str(), event.id), ("resync", Some(newest)));
    stage.task("a", "two").await;
    assert_eq!(stream.next().await.unwrap().name, "task");
    let mut all = Stream::open(&stage, "?after=0").await;
    all.next().await.unwrap();
    assert_eq!(all.next().await.unwrap().data["task"]["subject"], "one");
    stage.stop().await;
}

#[tokio::test]
async fn signs_of_life_move_the_place_of_a_client_that_hears_nothing() {
    let stage = Stage::new().await;
    let quiet = stage.session(&stage.root("a")).await;
    let mut stream = Stream::open(&stage, &format!("?session={quiet}")).await;
    let ready = stream.next().await.unwrap().id;
    stage.task("a", "of no interest").await;
    let began = std::time::Instant::now();
    while stream.last_id <= ready {
        assert!(began.elapsed() < PATIENCE);
        let chunk = tokio::time::timeout(PATIENCE, stream.response.chunk()).await;
        stream.text = String::from_utf8(chunk.unwrap().unwrap().unwrap().to_vec()).unwrap();
        let text = stream.text.clone();
        stream.parse(&text);
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_revoked_token_hears_nothing_more() {
    let stage = Stage::new().await;
    let mut stream = Stream::open(&stage, "").await;
    stream.next().await.unwrap();
    let tokens = stage.store().tokens().await.unwrap();
    let read = tokens.iter().find(|token| token.name == "read").unwrap();
    stage.store().revoke_token(&read.id).await.unwrap();
    assert_eq!(stream.next().await, None);
    stage.stop().await;
}

#[tokio::test]
async fn the_end_of_the_server_is_told() {
    let stage = Stage::new().await;
    let mut stream = Stream::open(&stage, "").await;
    stream.next().await.unwrap();
    stage.begin_to_stop();
    assert_eq!(stream.next().await.unwrap().name, "restart");
    assert_eq!(stream.next().await, None);
    stage.stop().await;
}

#[tokio::test]
async fn two_hundred_clients_hear_everything() {
    let stage = Stage::new().await;
    let session = stage.session(&stage.root("a")).await;
    let mut streams = Vec::new();
    for _ in 0..200 {
        let mut stream = Stream::open(&stage, "").await;
        stream.next().await.unwrap();
        streams.push(stream);
    }
    for seq in 0..30 {
        stage.say(session, seq, &"x".repeat(2000)).await;
    }
    for stream in &mut streams {
        for seq in 1..=30 {
            assert_eq!(stream.named("entry").await.data["seq"], seq);
        }
    }
    let health = stage.get(AccessRole::Read, "/api/v1/workers").await.json();
    assert_eq!(health["event_streams"], 200);
    stage.stop().await;
}

#[tokio::test]
async fn a_client_that_fell_behind_catches_up_from_the_store() {
    let stage = Stage::new().await;
    let session = stage.session(&stage.root("a")).await;
    let mut stream = Stream::open(&stage, "").await;
    stream.next().await.unwrap();
    // More than the hub keeps, and more than the sockets hold.
    for seq in 0..500 {
        stage.say(session, seq, &"x".repeat(40_000)).await;
    }
    for seq in 1..=500 {
        assert_eq!(stream.named("entry").await.data["seq"], seq);
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_large_entry_is_announced_without_its_content() {
    let stage = Stage::new().await;
    let session = stage.session(&stage.root("a")).await;
    let mut stream = Stream::open(&stage, "").await;
    stream.next().await.unwrap();
    stage.say(session, 0, &"x".repeat(1 << 20)).await;
    let event = stream.named("entry").await;
    assert_eq!(event.data["entry"], Value::Null);
    assert_eq!(event.data["seq"], json!(1));
    stage.stop().await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_disconnected_and_others_go_on() {
    use tokio::{io::AsyncWriteExt, net::TcpStream};
    let limits = ServerLimits {
        stall_time: Duration::from_millis(300),
        event_streams: 2,
        ..wide()
    };
    let stage = Stage::with(limits).await;
    let session = stage.session(&stage.root("a")).await;
    let mut stuck = TcpStream::connect(stage.address).await.unwrap();
    let head = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        stage.token(AccessRole::Read)
    );
    stuck.write_all(head.as_bytes()).await.unwrap();
    let mut other = Stream::open(&stage, "").await;
    other.next().await.unwrap();
    let third = stage.get(AccessRole::Read, "/api/v1/events").await;
    assert_eq!(third.status, StatusCode::TOO_MANY_REQUESTS);
    for seq in 0..900 {
        stage.say(session, seq, &"x".repeat(30_000)).await;
        assert_eq!(other.named("entry").await.data["seq"], seq + 1);
    }
    let began = std::time::Instant::now();
    loop {
        let health = stage.get(AccessRole::Read, "/api/v1/workers").await.json();
        if health["event_streams"] == 1 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{health}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stuck);
    stage.stop().await;
}
