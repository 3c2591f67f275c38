//! `codespar fleet`, and labels of tasks and workers.

use codespar_testkit::{Script, process::spawn};
use serde_json::Value;

use crate::common::{Bench, PATIENCE, parsed, wait_for};

fn fleet(bench: &Bench) -> Value {
    parsed(&bench.run(&["fleet", "status", "--json"]).stdout)
}

/// A command that runs until the file `gate` is there; only where these labels are offered.
fn create(bench: &Bench, subject: &str, labels: &[&str]) -> String {
    let command = "until [ -e gate ]; do sleep 0.05; done";
    let mut args = vec!["task", "create", "--type", "local_bash", "--json"];
    args.extend(["--subject", subject, "--command", command]);
    for label in labels {
        args.extend(["--label", label]);
    }
    let created = bench.run(&args);
    assert_eq!(created.status.code(), Some(0), "{}", created.stderr);
    let id = &parsed(&created.stdout)["task_id"];
    id.as_str().unwrap().to_owned()
}

fn status(bench: &Bench, id: &str) -> String {
    let task = parsed(&bench.run(&["task", "get", id, "--json"]).stdout);
    task["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_task_with_labels_waits_for_a_worker_that_offers_them() {
    let bench = Bench::new(Script::new());
    let plain = spawn(&mut bench.command(&["worker"])).unwrap();
    wait_for("the worker is there", || {
        fleet(&bench)["runners"].as_array().unwrap().len() == 1
    });
    let anywhere = create(&bench, "anywhere", &[]);
    let labelled = create(&bench, "only there", &["gpu", "repo:acme/api"]);
    wait_for("the one without labels runs", || {
        status(&bench, &anywhere) == "running"
    });
    let report = fleet(&bench);
    assert_eq!(report["runners"][0]["running"][0]["task_id"], anywhere);
    assert_eq!(report["queues"][0]["ready"], 1, "{report:#}");
    assert_eq!(report["queues"][0]["labels"][0], "gpu", "{report:#}");
    assert_eq!(status(&bench, &labelled), "pending");

    let args = [
        "worker",
        "--label",
        "repo:acme/api",
        "--label",
        "gpu",
        "--label",
        "x",
    ];
    let other = spawn(&mut bench.command(&args)).unwrap();
    wait_for("the labelled one runs", || {
        status(&bench, &labelled) == "running"
    });
    let shown = bench.run(&["fleet", "status"]).stdout;
    assert!(shown.contains("labels gpu,repo:acme/api,x"), "{shown}");
    assert!(shown.contains(&labelled), "{shown}");
    bench.file("gate", "");
    for id in [&anywhere, &labelled] {
        wait_for("it completes", || status(&bench, id) == "completed");
    }
    for worker in [plain, other] {
        worker.terminate().unwrap();
        worker.wait(PATIENCE).unwrap();
    }
}

#[test]
fn a_worker_until_idle_leaves_what_requires_labels_that_it_does_not_offer() {
    let bench = Bench::new(Script::new());
    bench.file("gate", "");
    let labelled = create(&bench, "only there", &["gpu"]);
    let alive = bench.room.alive().unwrap();
    assert_eq!(alive, Vec::<u32>::new(), "no worker is started for it");
    let anywhere = create(&bench, "anywhere", &[]);
    let worker = bench.run(&["worker", "--until-idle"]);
    assert_eq!(worker.status.code(), Some(0), "{}", worker.stderr);
    assert_eq!(status(&bench, &anywhere), "completed");
    assert_eq!(status(&bench, &labelled), "pending");
    let other = bench.run(&["worker", "--until-idle", "--label", "gpu"]);
    assert_eq!(other.status.code(), Some(0), "{}", other.stderr);
    assert_eq!(status(&bench, &labelled), "completed");
}

#[test]
fn a_limit_holds_tasks_back_until_it_is_removed() {
    let bench = Bench::new(Script::new());
    let set = bench.run(&["fleet", "limit", "all", "1"]);
    assert_eq!(set.stdout, "all: 1\n");
    let first = create(&bench, "first", &[]);
    let second = create(&bench, "second", &[]);
    wait_for("the first runs", || status(&bench, &first) == "running");
    wait_for("the limit is used up", || {
        fleet(&bench)["limits"][0]["running"] == 1
    });
    assert_eq!(status(&bench, &second), "pending");
    let removed = bench.run(&["fleet", "limit", "all", "none"]);
    assert_eq!(removed.stdout, "no limits\n");
    wait_for("the second runs", || status(&bench, &second) == "running");
    bench.file("gate", "");
    for id in [&first, &second] {
        wait_for("it completes", || status(&bench, id) == "completed");
    }
    bench.room.wait_until_empty(PATIENCE).unwrap();
}

#[test]
fn bad_labels_and_limits_are_refused_by_name() {
    let bench = Bench::new(Script::new());
    let cases: [(&[&str], &str); 5] = [
        (
            &["worker", "--label", "No Good"],
            "`No Good` cannot be a label",
        ),
        (
            &["fleet", "limit", "everything", "1"],
            "not a scope of limits",
        ),
        (
            &["fleet", "limit", "all", "many"],
            "give a number, or `none`",
        ),
        (
            &["fleet", "limit", "all", "1", "--name", "x"],
            "has no --name",
        ),
        (&["fleet", "limit", "labels", "1"], "needs --name"),
    ];
    for (args, expected) in cases {
        let refused = bench.run(args);
        assert_ne!(refused.status.code(), Some(0), "{args:?}");
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
}
