//! The server under a storm of deliveries: how fast they are acknowledged, and whether each is
//! carried out once; and many clients that follow events at the same time.
//!
//! A thousand signed deliveries of Slack come at an even pace within ten seconds, each a command of
//! a known person in a thread of its own. Meanwhile two hundred clients follow the events. What was
//! carried out is counted in the audit log.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result, bail, ensure};
use codespar_testkit::{
    process::{Running, spawn},
    slack::{FakeSlack, SLACK_TOKEN},
};
use reqwest::Client;
use ring::hmac;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{
    Bench,
    report::{Bar, Row, Section},
    samples::{Samples, milliseconds},
    stage::Stage,
};

const DELIVERIES: usize = 1_000;
const WITHIN: Duration = Duration::from_secs(10);
const CLIENTS: usize = 200;
/// Lines that are said over the API; each makes several events.
const LINES: usize = 50;
/// Milliseconds for the 99th percentile of the acknowledgements. A bar.
const ACKNOWLEDGED: f64 = 1_000.0;
/// Megabytes that the server may grow by. A bar.
const GROWTH: f64 = 50.0;
const PATIENCE: Duration = Duration::from_secs(300);
const SECRET: &str = "signing-secret-of-the-bench";

pub(super) fn measure(bench: &Bench) -> Result<Section> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let stage = Stage::new()?.used(bench)?;
    let settings = json!({"channels": {
        "access": {"slack": {"users": {"U1": "read"}}},
        "turnsPerPersonHour": 10 * DELIVERIES,
    }});
    stage.settings(&settings.to_string())?;
    let slack = runtime.block_on(FakeSlack::start())?;
    let served = serve(bench, &stage, &slack)?;
    let found = runtime.block_on(storm(bench, &stage, &served))?;
    served.running.terminate()?;
    served.running.wait(PATIENCE)?;
    Ok(section(&found))
}

struct Served {
    running: Running,
    base: String,
}

fn serve(bench: &Bench, stage: &Stage, slack: &FakeSlack) -> Result<Served> {
    let mut command = stage.room().command(&bench.codespar);
    command
        .current_dir(stage.work())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("SLACK_SIGNING_SECRET", SECRET)
        .env("SLACK_BOT_TOKEN", SLACK_TOKEN)
        .env("SLACK_API_URL", &slack.url);
    let mut running = spawn(&mut command)?;
    running.wait_for_output("listening on ", PATIENCE)?;
    running.wait_for_output("\n", PATIENCE)?;
    let shown = running.stdout_so_far();
    let (_, rest) = shown.split_once("listening on ").context("no address")?;
    let base = rest.lines().next().unwrap_or_default().trim().to_owned();
    Ok(Served { running, base })
}

/// What one storm came to.
struct Found {
    /// Of each delivery.
    acknowledged: Vec<Duration>,
    /// From the first delivery until the last one was carried out.
    carried_out: Duration,
    memory_before: u64,
    memory_after: u64,
    events_of_each: usize,
}

async fn storm(bench: &Bench, stage: &Stage, served: &Served) -> Result<Found> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .tls_certs_only([])
        .no_proxy()
        .timeout(PATIENCE)
        .build()?;
    let tokens: Result<Vec<String>> = (0..5).map(|number| token(bench, stage, number)).collect();
    let tokens = tokens?;
    let followers = follow(&client, &served.base, &tokens).await?;
    // A first delivery, so that what is set up once is not counted as growth.
    deliver(&client, &served.base, 0).await?;
    counted(bench, stage, 1).await?;
    let pid = served.running.pid();
    let memory_before = resident(pid)?;
    let began = Instant::now();
    let said = say_lines(&client, &served.base, &tokens[0]);
    let (acknowledged, said) = tokio::join!(deliver_all(&client, &served.base, began), said);
    said?;
    let acknowledged = acknowledged?;
    counted(bench, stage, DELIVERIES + 1 + LINES).await?;
    let carried_out = began.elapsed();
    let events_of_each = all_heard(&client, &served.base, &tokens[1], &followers).await?;
    Ok(Found {
        acknowledged,
        carried_out,
        memory_before,
        memory_after: resident(pid)?,
        events_of_each,
    })
}

fn token(bench: &Bench, stage: &Stage, number: usize) -> Result<String> {
    let name = format!("bench-{number}");
    let args = [
        "token", "create", "--role", "write", "--name", &name, "--json",
    ];
    let made = command(bench, stage, &args)?;
    let made: Value = serde_json::from_str(&made)?;
    let secret = made["secret"].as_str();
    Ok(secret.context("no token was made")?.to_owned())
}

fn command(bench: &Bench, stage: &Stage, args: &[&str]) -> Result<String> {
    let mut command = stage.room().command(&bench.codespar);
    let done = spawn(command.current_dir(stage.work()).args(args))?.wait(PATIENCE)?;
    ensure!(done.status.success(), "{args:?}: {}", done.stderr);
    Ok(done.stdout)
}

/// Each at its own time, whether or not those before it were answered.
async fn deliver_all(client: &Client, base: &str, began: Instant) -> Result<Vec<Duration>> {
    let mut under_way = tokio::task::JoinSet::new();
    for number in 1..=DELIVERIES {
        let due = began + WITHIN.mul_f64(number as f64 / DELIVERIES as f64);
        tokio::time::sleep_until(due.into()).await;
        let (client, base) = (client.clone(), base.to_owned());
        under_way.spawn(async move { deliver(&client, &base, number).await });
    }
    let mut times = Vec::new();
    while let Some(done) = under_way.join_next().await {
        times.push(done??);
    }
    Ok(times)
}

/// Signs and sends a delivery; gives how long its acknowledgement took.
async fn deliver(client: &Client, base: &str, number: usize) -> Result<Duration> {
    let body = json!({
        "type": "event_callback", "team_id": "T1",
        "authorizations": [{"user_id": "UBOT", "is_bot": true}],
        "event": {
            "type": "app_mention", "channel": "C1", "ts": format!("{}.1", number + 1),
            "user": "U1", "text": "<@UBOT> whoami",
        },
    })
    .to_string();
    let stamp = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, format!("v0:{stamp}:{body}").as_bytes());
    let digits: String = tag
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let request = client
        .post(format!("{base}/hooks/slack"))
        .header("content-type", "application/json")
        .header("x-slack-request-timestamp", stamp)
        .header("x-slack-signature", format!("v0={digits}"))
        .body(body);
    let began = Instant::now();
    let status = request.send().await?.status();
    ensure!(status.is_success(), "a delivery was answered with {status}");
    Ok(began.elapsed())
}

async fn say_lines(client: &Client, base: &str, token: &str) -> Result<()> {
    for number in 0..LINES {
        let body = json!({"text": "whoami", "thread": format!("bench-{number}")});
        let request = client
            .post(format!("{base}/api/v1/commands"))
            .bearer_auth(token)
            .header("content-type", "application/json")
            .body(body.to_string());
        let status = request.send().await?.status();
        ensure!(status.is_success(), "a line was answered with {status}");
        tokio::time::sleep(WITHIN / LINES as u32 / 2).await;
    }
    Ok(())
}

/// Waits until so many messages are in the audit log, and checks that each is there once.
async fn counted(bench: &Bench, stage: &Stage, expected: usize) -> Result<()> {
    let began = Instant::now();
    loop {
        let log = command(bench, stage, &["audit", "export"])?;
        let mut times: HashMap<String, usize> = HashMap::new();
        for line in log.lines() {
            let entry: Value = serde_json::from_str(line)?;
            ensure!(entry["decision"] == "done", "{entry}");
            let identity = entry["identity"].as_str().unwrap_or_default();
            *times.entry(identity.to_owned()).or_default() += 1;
        }
        if let Some((identity, count)) = times.iter().find(|(_, count)| **count > 1) {
            bail!("{identity} was carried out {count} times");
        }
        if times.len() >= expected {
            ensure!(
                times.len() == expected,
                "{} messages of {expected}",
                times.len()
            );
            return Ok(());
        }
        ensure!(
            began.elapsed() < PATIENCE,
            "only {} of {expected}",
            times.len()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The ids of the events that one client was sent.
type Heard = Arc<Mutex<BTreeSet<u64>>>;

async fn follow(client: &Client, base: &str, tokens: &[String]) -> Result<Vec<Heard>> {
    let mut followers = Vec::new();
    for number in 0..CLIENTS {
        let heard = Heard::default();
        let request = client
            .get(format!("{base}/api/v1/events"))
            .bearer_auth(&tokens[number % tokens.len()]);
        let mut response = request.send().await?.error_for_status()?;
        followers.push(heard.clone());
        tokio::spawn(async move {
            let mut text = String::new();
            while let Ok(Some(chunk)) = response.chunk().await {
                text.push_str(&String::from_utf8_lossy(&chunk));
                while let Some((block, rest)) = text.split_once("\n\n") {
                    if let Some(id) = message_id(block) {
                        heard.lock().await.insert(id);
                    }
                    text = rest.to_owned();
                }
            }
        });
    }
    Ok(followers)
}

/// The place of an event that tells of a message.
fn message_id(block: &str) -> Option<u64> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    (field("event: ")? == "message").then(|| field("id: ")?.parse().ok())?
}

/// Waits until every client has heard what the record has; gives how many events that is.
async fn all_heard(client: &Client, base: &str, token: &str, all: &[Heard]) -> Result<usize> {
    let from_start = client
        .get(format!("{base}/api/v1/events?after=0"))
        .bearer_auth(token);
    let mut response = from_start.send().await?.error_for_status()?;
    let mut expected = BTreeSet::new();
    let mut text = String::new();
    // The record is read at once; what comes later is a sign of life.
    while let Ok(chunk) = tokio::time::timeout(Duration::from_secs(3), response.chunk()).await {
        let Some(chunk) = chunk? else { break };
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    expected.extend(text.split("\n\n").filter_map(message_id));
    ensure!(
        expected.len() >= LINES,
        "only {} events are on record",
        expected.len()
    );
    let began = Instant::now();
    for (number, heard) in all.iter().enumerate() {
        loop {
            let missing = expected.difference(&*heard.lock().await).count();
            if missing == 0 {
                break;
            }
            let is_late = began.elapsed() > PATIENCE;
            ensure!(!is_late, "client {number} misses {missing} events");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(expected.len())
}

/// Memory that a process holds, in bytes.
fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kilobytes.context("the kernel does not tell the memory")? * 1024)
}

/// The value that so many in a hundred do not exceed.
fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

fn section(found: &Found) -> Section {
    let of = |percent| Samples::times([percentile(&found.acknowledged, percent)]);
    let grown = found.memory_after.saturating_sub(found.memory_before);
    let row = Row::new(
        format!("{DELIVERIES} deliveries in {} s", WITHIN.as_secs()),
        [
            Some(of(50)),
            Some(of(99)),
            Some(Samples::seconds([found.carried_out])),
            Some(Samples::megabytes([found.memory_before])),
            Some(Samples::megabytes([found.memory_after])),
        ],
    );
    Section {
        title: "Server",
        reading: format!(
            "Signed deliveries of Slack at an even pace, each `whoami` of a known person in a \
             thread of its own, while {CLIENTS} clients follow the events and {LINES} lines are \
             said over the API. Each delivery is in the audit log once, and every client was sent \
             all {} events of the lines. Acknowledged: from the request to its answer, which \
             comes after the message is on record. Carried out: until the last message was \
             handled. The longest acknowledgement took {:.0} ms.",
            found.events_of_each,
            milliseconds(found.acknowledged.iter().max().copied().unwrap_or_default()),
        ),
        columns: vec![
            "acknowledged, median",
            "acknowledged, 99 of 100",
            "carried out",
            "memory before",
            "memory after",
        ],
        bars: vec![
            Bar::at_most(
                ACKNOWLEDGED,
                "99 of 100 deliveries are acknowledged",
                &of(99),
            ),
            Bar::at_most(
                GROWTH,
                "growth of the server by a thousand deliveries",
                &Samples::megabytes([grown]),
            ),
        ],
        rows: vec![row],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Duration::from_millis(100));
        assert_eq!(percentile(&times, 99), Duration::from_millis(198));
        assert_eq!(percentile(&times[..1], 99), Duration::from_millis(1));
        assert_eq!(percentile(&[], 99), Duration::ZERO);
    }

    #[test]
    fn only_events_about_messages_count() {
        assert_eq!(message_id("id: 7\nevent: message\ndata: {}"), Some(7));
        assert_eq!(message_id("id: 7\nevent: task\ndata: {}"), None);
        assert_eq!(message_id(": still here\nid: 7"), None);
    }
}
