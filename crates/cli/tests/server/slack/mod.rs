//! Slack and the server, through the real binary: deliveries over HTTP and Socket Mode, and what
//! people then read.

mod crash;
mod deliveries;
mod setup;
mod story;

use std::process::Command;

use codespar_testkit::{
    Script,
    slack::{
        FakeSlack, SLACK_SECRET, SLACK_TOKEN, SlackMessage, event_callback, form, pressed, said,
        signed_with,
    },
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    client::{Served, client_builder, started},
    common::{Bench, wait_for},
    room::{self, greeting},
};

/// A workspace whose app delivers to a server. `U1` may do everything, `U2` may read.
pub(crate) struct Workspace {
    pub(crate) bench: Bench,
    pub(crate) slack: FakeSlack,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
}

impl Workspace {
    pub(crate) fn new(script: Script) -> Self {
        let bench = greeting(script);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let slack = runtime.block_on(FakeSlack::start()).unwrap();
        let workspace = Self {
            bench,
            slack,
            runtime,
            client: client_builder().build().unwrap(),
        };
        workspace.settings(&json!({}));
        workspace
    }

    /// The people of these tests, the repository, and more.
    pub(crate) fn settings(&self, more: &Value) {
        let mut channels = json!({
            "access": {"slack": {
                "users": {"U1": "admin", "U2": "read", "U9": "read"},
                "bots": ["U9"],
            }},
            "repositories": {"acme/api": self.bench.work()},
        });
        for (key, value) in more.as_object().unwrap() {
            channels[key] = value.clone();
        }
        room::settings(&self.bench, &channels);
    }

    /// The command of a server that Slack delivers to over the webhook.
    pub(crate) fn command(&self) -> Command {
        let mut command = self.bench.command(&["serve", "--listen", "127.0.0.1:0"]);
        command
            .env("SLACK_SIGNING_SECRET", SLACK_SECRET)
            .env("SLACK_BOT_TOKEN", SLACK_TOKEN)
            .env("SLACK_API_URL", &self.slack.url);
        command
    }

    pub(crate) fn serve(&self) -> Served {
        started(&mut self.command())
    }

    /// A server whose channel has the repository linked.
    pub(crate) fn linked(&self) -> Served {
        let served = self.serve();
        self.say(&served, "U1", ("1.1", "1.1"), "link acme/api");
        self.read("acme/api is linked");
        served
    }

    /// The status of a delivery, or 0 if there was no answer.
    pub(crate) fn send(&self, served: &Served, stamp: i64, secret: &str, body: String) -> u16 {
        self.post(
            served,
            "application/json",
            signed_with(secret, stamp, &body),
            body,
        )
    }

    fn post(
        &self,
        served: &Served,
        kind: &str,
        headers: [(&'static str, String); 2],
        body: String,
    ) -> u16 {
        let url = format!("{}/hooks/slack", served.base);
        let mut request = self.client.post(url).header("content-type", kind);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let sent = self
            .runtime
            .block_on(async { request.body(body).send().await });
        sent.map_or(0, |response| response.status().as_u16())
    }

    pub(crate) fn deliver(&self, served: &Served, event: &Value) -> u16 {
        let body = event_callback(event).to_string();
        self.send(served, now(), SLACK_SECRET, body)
    }

    /// Somebody says something; Slack tells of a mention twice.
    pub(crate) fn say(&self, served: &Served, user: &str, at: (&str, &str), text: &str) {
        self.say_with(served, user, at, text, &json!([]));
    }

    /// The same with files.
    pub(crate) fn say_with(
        &self,
        served: &Served,
        user: &str,
        (ts, thread): (&str, &str),
        text: &str,
        files: &Value,
    ) {
        for kind in ["message", "app_mention"] {
            let mut event = said(kind, user, ts, &format!("<@UBOT> {text}"));
            event["files"] = files.clone();
            if ts != thread {
                event["thread_ts"] = thread.into();
            }
            self.deliver(served, &event);
        }
    }

    /// Presses a button of a message.
    pub(crate) fn press(&self, served: &Served, user: &str, message: &SlackMessage, value: &str) {
        let payload = pressed(user, message, value).to_string();
        let body = form(&json!({"payload": payload}));
        let headers = signed_with(SLACK_SECRET, now(), &body);
        let kind = "application/x-www-form-urlencoded";
        assert_eq!(self.post(served, kind, headers, body), 200);
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        let messages = self.slack.messages();
        messages.iter().map(|one| one.text().to_owned()).collect()
    }

    /// Waits for a message of ours that has this text.
    pub(crate) fn read(&self, text: &str) -> SlackMessage {
        let found = || {
            let messages = self.slack.messages();
            let mut those = messages.iter().filter(|one| one.text().contains(text));
            those.next_back().cloned()
        };
        wait_for(text, || found().is_some());
        found().unwrap()
    }

    /// Messages of progress, as they stand.
    pub(crate) fn progress(&self) -> Vec<String> {
        let mut texts = self.texts();
        texts.retain(|text| text.contains("🔍"));
        texts
    }

    pub(crate) fn pulls(&self) -> Vec<Value> {
        room::pulls(&self.bench)
    }

    pub(crate) fn tasks(&self) -> usize {
        room::Record::of(&self.bench).tasks.len()
    }
}

pub(crate) fn now() -> i64 {
    Timestamp::now().as_second()
}
