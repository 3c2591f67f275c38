//! From an instruction over HTTP to a merged pull request; two projects on one server.

use serde_json::{Value, json};

use crate::{
    client::{Api, serve, token},
    common::git::git,
    repository::{FIX, answer, greeting, script},
};

fn project(api: &Api, name: &str) -> String {
    let (_, listed) = api.get("/api/v1/projects");
    let projects = listed["projects"].as_array().unwrap();
    let found = projects.iter().find(|project| project["name"] == name);
    found.unwrap_or_else(|| panic!("{listed}"))["key"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn an_instruction_over_http_becomes_a_merged_pull_request() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let served = serve(&bench, &[]);
    let writer = Api::new(&served.base, &token(&bench, "write"));
    let merger = Api::new(&served.base, &token(&bench, "merge"));
    let heard = writer.follow(None);
    heard.wait_for("ready", |event| event.name == "ready");
    let (status, task) = writer.post("/api/v1/tasks", &json!({"instruction": "make it say hi"}));
    assert_eq!(status, 201, "{task}");
    let id = task["task_id"].as_str().unwrap();
    let ended = writer.ended(id);
    assert_eq!(ended["status"], "completed", "{ended}");
    heard.wait_for("the steps", |event| {
        event.name == "agent" && event.data["event"]["type"] == "step"
    });
    heard.wait_for("the end", |event| {
        event.name == "task" && event.data["status"] == "completed"
    });
    let (_, steps) = writer.get(&format!("/api/v1/tasks/{id}/steps"));
    assert!(!steps["steps"].as_array().unwrap().is_empty(), "{steps}");

    let name = bench
        .work()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let pulls = format!("/api/v1/projects/{}/pulls", project(&writer, &name));
    let (_, listed) = writer.get(&pulls);
    assert_eq!(listed["pull_requests"][0]["number"], 1, "{listed}");
    let (_, diff) = writer.get(&format!("{pulls}/1/diff"));
    assert!(
        diff["diff"].as_str().unwrap().contains("+greeting=hi"),
        "{diff}"
    );
    let merge = format!("{pulls}/1/merge");
    let (status, refused) = writer.post(&merge, &json!({}));
    assert_eq!(
        (status, &refused["error"]["code"]),
        (403, &Value::from("role"))
    );
    let (status, merged) = merger.post(&merge, &json!({"strategy": "squash"}));
    assert_eq!(status, 200, "{merged}");
    assert!(git(&bench.work(), &["show", "main:greet.sh"]).contains("greeting=hi"));
    let (_, usage) = writer.get("/api/v1/usage");
    assert_eq!(usage["rows"][0]["calls"], 1, "{usage}");
    let (status, metrics) = writer.get("/metrics");
    assert_eq!(status, 200);
    let line = "codespar_tasks{type=\"local_workflow\",state=\"completed\"} 1";
    assert!(metrics.as_str().unwrap().contains(line), "{metrics}");
}

#[test]
fn one_server_keeps_two_projects_apart() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let other = bench.room.home().join("other");
    std::fs::create_dir_all(&other).unwrap();
    git(
        &other,
        &["clone", "--quiet", bench.work().to_str().unwrap(), "."],
    );
    git(&other, &["config", "user.name", "Ada"]);
    git(&other, &["config", "user.email", "ada@example.invalid"]);
    let (here, there) = (bench.work(), other.clone());
    let served = serve(
        &bench,
        &[
            "--project",
            here.to_str().unwrap(),
            "--project",
            there.to_str().unwrap(),
        ],
    );
    let api = Api::new(&served.base, &token(&bench, "write"));
    let key = project(&api, "other");
    let (status, unclear) = api.post("/api/v1/tasks", &json!({"instruction": "make it say hi"}));
    assert_eq!(status, 422, "{unclear}");
    let body = json!({"instruction": "make it say hi", "project": key});
    let (status, task) = api.post("/api/v1/tasks", &body);
    assert_eq!(status, 201, "{task}");
    let ended = api.ended(task["task_id"].as_str().unwrap());
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(ended["project"], key.as_str());
    let branches = |dir: &std::path::Path| git(dir, &["branch", "--list", "codespar/*"]);
    assert!(branches(&other).contains("codespar/"));
    assert_eq!(branches(&bench.work()), "");
    let (_, listed) = api.get(&format!("/api/v1/tasks?project={key}"));
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1);
}
