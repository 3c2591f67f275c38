//! Who runs what, what waits and the limits: over the API, on the page and in the metrics.

use codespar_protocol::{AccessRole, TaskId, TaskRecord, TaskType};
use codespar_store::{
    Capacity, EngineState,
    LimitScope::{All, Repository, User},
    RunnerAbout, RunnerId,
};
use jiff::{SignedDuration, Timestamp};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    stage::Stage,
    web::{ATTACK, check_is_text},
};

const READ: AccessRole = AccessRole::Read;
/// A user whose name would end a label of a metric, and the line.
const ODD_USER: &str = "ann\"} 1\nx{y=\"\\";

/// What runs and what waits on a stage.
struct Fleet {
    mine: TaskRecord,
    left: TaskRecord,
    waiting: TaskRecord,
}

fn about(host: &str) -> RunnerAbout {
    RunnerAbout {
        host: host.to_owned(),
        version: "1.2.3".to_owned(),
        labels: "gpu".parse().unwrap(),
        started_at: Timestamp::now() - SignedDuration::from_hours(3),
        agents: 20,
        shells: 8,
        engine: "temporal".to_owned(),
        engine_state: EngineState::Connected,
    }
}

async fn beats(stage: &Stage, runner: &str, host: &str) {
    let runner = RunnerId(runner.to_owned());
    let beat = stage.store().beat(&runner, &about(host), &[]).await;
    beat.unwrap();
}

/// Takes all that is ready and requires no labels.
async fn claims(stage: &Stage, runner: &str) -> Vec<TaskId> {
    let room = Capacity {
        by_type: vec![(TaskType::LocalBash, 9)],
        total: 9,
        ..Capacity::default()
    };
    let runner = RunnerId(runner.to_owned());
    let claimed = stage.store().claim_tasks(&runner, &room).await.unwrap();
    claimed.into_iter().map(|one| one.record.task_id).collect()
}

/// A worker with a task of this server and one of another project, a process that is gone and left a
/// task behind, tasks that wait, and limits.
async fn fleet(stage: &Stage) -> Fleet {
    let subject = format!("{ATTACK} correct-horse-battery");
    let mine = stage.task("a", &subject).await;
    stage.task("elsewhere", "of somebody else").await;
    assert_eq!(claims(stage, "worker-one").await.len(), 2);
    beats(stage, "worker-one", &format!("host {ATTACK}")).await;
    let left = stage.task("b", "left behind").await;
    assert_eq!(
        claims(stage, "lost").await,
        std::slice::from_ref(&left.task_id)
    );
    let lost = RunnerId("lost".to_owned());
    stage.store().withdraw_runner(&lost).await.unwrap();
    let waiting = stage.labelled("a", "waits", "gpu").await;
    stage.task("elsewhere", "waits elsewhere").await;
    let root = |name: &str| stage.root(name).to_str().unwrap().to_owned();
    for (scope, name, limit) in [
        (All, String::new(), 9),
        (Repository, root("a"), 3),
        (Repository, root("elsewhere"), 4),
        (User, ATTACK.to_owned(), 5),
        (User, ODD_USER.to_owned(), 6),
        (User, String::new(), 7),
    ] {
        let set = stage.store().set_limit(scope, &name, Some(limit)).await;
        set.unwrap();
    }
    let started = async |task: TaskRecord| stage.store().task(&task.task_id).await.unwrap();
    Fleet {
        mine: started(mine).await,
        left: started(left).await,
        waiting,
    }
}

async fn text_of(stage: &Stage, path: &str) -> String {
    let answer = stage.get(READ, path).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
    answer.text
}

/// Nothing of another project is named, no directory and no secret.
fn check_is_of_this_server(stage: &Stage, text: &str) {
    let directory = stage.root("");
    for hidden in [
        "somebody else",
        "waits elsewhere",
        "correct-horse",
        directory.to_str().unwrap(),
    ] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}

fn running(task: &TaskRecord, repository: &str) -> Value {
    json!({
        "task_id": task.task_id, "task_type": "local_bash", "subject": task.subject,
        "repository": repository, "started_at": task.started_at, "attempt": 1, "take_overs": 0,
    })
}

#[tokio::test]
async fn the_api_tells_who_runs_what_and_what_waits() {
    let stage = Stage::new().await;
    let fleet = fleet(&stage).await;
    let text = text_of(&stage, "/api/v1/workers").await;
    check_is_of_this_server(&stage, &text);
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        shown["queue"],
        json!({"pending": 2, "ready": 2, "running": 3})
    );
    let gone = json!({
        "id": "lost", "worker": false, "silent": true, "state": "gone", "host": null,
        "version": null, "engine": null, "engine_reached": null, "labels": [], "started_at": null,
        "running": [running(&fleet.left, "b")], "running_others": 0,
    });
    assert_eq!(shown["runners"][0], gone);
    let worker = &shown["runners"][1];
    let mut mine = running(&fleet.mine, "a");
    mine["subject"] = worker["running"][0]["subject"].clone();
    assert!(mine["subject"].as_str().unwrap().starts_with(ATTACK));
    let alive = json!({
        "id": "worker-one", "worker": true, "silent": false, "state": "alive",
        "host": format!("host {ATTACK}"), "version": "1.2.3", "engine": "temporal",
        "engine_reached": true,
        "labels": ["gpu"], "started_at": worker["started_at"],
        "running": [mine], "running_others": 1,
    });
    assert_eq!(*worker, alive);
    assert!(worker["started_at"].is_string(), "{worker}");
    assert_eq!(shown["runners"].as_array().unwrap().len(), 2);
    let queue = |labels: &[&str], repository: Option<&str>, at: &Value| {
        json!({
            "task_type": "local_bash", "labels": labels, "repository": repository, "ready": 1,
            "oldest_ready_at": at,
        })
    };
    let others_since = &shown["queues"][0]["oldest_ready_at"];
    let waiting_since = json!(fleet.waiting.created_at);
    assert_eq!(
        shown["queues"],
        json!([
            queue(&[], None, others_since),
            queue(&["gpu"], Some("a"), &waiting_since)
        ])
    );
    let limit = |scope: &str, name: &str, limit: u32, running: u64| {
        json!({
            "scope": scope, "name": name, "limit": limit, "running": running,
        })
    };
    assert_eq!(
        shown["limits"],
        json!([
            limit("all", "", 9, 3),
            limit("repository", "a", 3, 1),
            limit("user", "", 7, 0),
            limit("user", ATTACK, 5, 0),
            limit("user", ODD_USER, 6, 0),
        ])
    );
    stage.stop().await;
}

#[tokio::test]
async fn the_health_page_tells_the_same_as_text() {
    let stage = Stage::new().await;
    let nobody = text_of(&stage, "/health").await;
    assert!(nobody.contains("Nobody runs tasks"), "{nobody}");
    let fleet = fleet(&stage).await;
    let page = text_of(&stage, "/health").await;
    check_is_text("/health", &page);
    check_is_of_this_server(&stage, &page);
    let mine = format!("<a href=\"/tasks/{}\">&lt;script&gt;", fleet.mine.task_id);
    let left = format!("<a href=\"/tasks/{}\">left behind</a>", fleet.left.task_id);
    for part in [
        "<span class=\"status completed\">alive</span>",
        "<span class=\"status failed\">gone</span>",
        "<span>host &lt;script&gt;",
        "<span>version 1.2.3</span>",
        "<span>labels gpu</span>",
        "<span>temporal</span>",
        "3 h ago",
        &mine,
        &left,
        "1 running of other projects",
        "<td>gpu</td><td>a</td><td class=\"number\">1</td>",
        "<td><span class=\"note\">other projects</span></td><td class=\"number\">1</td>",
        "<td>all</td><td class=\"number\">3</td><td class=\"number\">9</td>",
        "<td>repository a</td><td class=\"number\">1</td><td class=\"number\">3</td>",
        "<td>each user</td><td class=\"number\">0</td><td class=\"number\">7</td>",
        "<td>user &lt;script&gt;",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    stage.stop().await;
}

/// The value of a series, by its whole name.
fn value(metrics: &str, series: &str) -> Option<f64> {
    let mut lines = metrics.lines();
    let found = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.map(|value| value.parse().unwrap())
}

#[tokio::test]
async fn a_scaler_has_a_value_also_while_nothing_waits() {
    let stage = Stage::new().await;
    let depth = |labels: &str| format!("codespar_ready_tasks{{labels=\"{labels}\"}}");
    let age = |labels: &str| format!("codespar_ready_task_age_seconds{{labels=\"{labels}\"}}");
    let metrics = text_of(&stage, "/metrics").await;
    for series in [&depth(""), &age("")] {
        assert_eq!(value(&metrics, series), Some(0.0), "{metrics}");
    }
    assert_eq!(value(&metrics, &depth("gpu")), None, "{metrics}");

    beats(&stage, "worker-one", "host").await;
    let metrics = text_of(&stage, "/metrics").await;
    for series in [&depth(""), &age(""), &depth("gpu"), &age("gpu")] {
        assert_eq!(value(&metrics, series), Some(0.0), "{metrics}");
    }

    stage.labelled("a", "waits", "gpu").await;
    stage.labelled("b", "waits", "gpu,linux").await;
    let metrics = text_of(&stage, "/metrics").await;
    for (labels, ready) in [("", 0.0), ("gpu", 1.0), ("gpu,linux", 1.0)] {
        assert_eq!(value(&metrics, &depth(labels)), Some(ready), "{metrics}");
        let waits = value(&metrics, &age(labels)).unwrap() > 0.0;
        assert_eq!(waits, ready > 0.0, "{metrics}");
    }

    // What a lost process offered is not on offer.
    let seen = stage.store().runners().await.unwrap().remove(0);
    stage.store().mark_silent(&seen).await.unwrap();
    let waiting = stage.store().tasks(Default::default()).await.unwrap();
    for task in waiting {
        let stopped = stage.store().stop_task(&task.task_id, "not needed").await;
        stopped.unwrap();
    }
    let metrics = text_of(&stage, "/metrics").await;
    assert_eq!(value(&metrics, &depth("gpu")), None, "{metrics}");
    assert_eq!(value(&metrics, &depth("")), Some(0.0), "{metrics}");
    stage.stop().await;
}

#[tokio::test]
async fn metrics_count_processes_what_they_run_and_limits() {
    let stage = Stage::new().await;
    fleet(&stage).await;
    let metrics = text_of(&stage, "/metrics").await;
    check_is_of_this_server(&stage, &metrics);
    let by_version = |version: &str, engine: &str, state: &str| {
        format!(
            "codespar_runners_by_version{{version=\"{version}\",engine=\"{engine}\",state=\"{state}\"}}"
        )
    };
    let odd = "ann\\\"} 1\\nx{y=\\\"\\\\";
    let limit = |what: &str, scope: &str, name: &str| {
        format!("codespar_limit_{what}{{scope=\"{scope}\",name=\"{name}\"}}")
    };
    for (series, expected) in [
        ("codespar_runners".to_owned(), 1.0),
        (by_version("1.2.3", "temporal", "alive"), 1.0),
        (by_version("unknown", "unknown", "gone"), 1.0),
        ("codespar_fleet_running_tasks".to_owned(), 3.0),
        (limit("running", "all", ""), 3.0),
        (limit("max", "all", ""), 9.0),
        (limit("running", "repository", "a"), 1.0),
        (limit("max", "repository", "a"), 3.0),
        (limit("running", "user", odd), 0.0),
        (limit("max", "user", odd), 6.0),
        (limit("max", "user", ""), 7.0),
    ] {
        assert_eq!(
            value(&metrics, &series),
            Some(expected),
            "{series} in {metrics}"
        );
    }
    // Every line is a comment, or a series with a number behind it.
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (_, number) = line.rsplit_once(' ').unwrap();
        assert!(number.parse::<f64>().is_ok(), "{line}");
    }
    stage.stop().await;
}
