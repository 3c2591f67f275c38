//! Where the pages of an engine are shown.

use codespar_testkit::{
    Script,
    process::{Finished, spawn},
};

use super::{
    Fleet,
    common::{PATIENCE, parsed, wait_for},
};

/// The tasks of this test are dispatched by leases; the variables count for the commands that look.
fn with_pages(fleet: &Fleet, args: &[&str]) -> Finished {
    let mut command = fleet.command(args);
    command
        .env("TEMPORAL_ADDRESS", "temporal.example:7233")
        .env("CODESPAR_TEMPORAL_UI", "https://ui.example");
    spawn(&mut command).unwrap().wait(PATIENCE).unwrap()
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn tasks_link_to_the_pages_of_temporal_where_their_address_is_known() {
    let fleet = Fleet::new(Script::new());
    let command = "until [ -e gate ]; do sleep 0.05; done";
    let create = ["task", "create", "--type", "local_bash", "--subject", "s"];
    let created = fleet.run(&[&create[..], &["--json", "--command", command]].concat());
    assert_eq!(created.status.code(), Some(0), "{}", created.stderr);
    let created = parsed(&created.stdout);
    let id = created["task_id"].as_str().unwrap();
    let is = |status| wait_for(status, || fleet.tasks()[0]["status"] == status);
    is("running");

    let page = format!(
        "https://ui.example/namespaces/default/activities\
         ?query=%60ActivityId%60+STARTS_WITH+%22{id}.%22"
    );
    let task = parsed(&with_pages(&fleet, &["task", "get", id, "--json"]).stdout);
    assert_eq!(task["engine_url"], page.as_str(), "{task:#}");
    let report = parsed(&with_pages(&fleet, &["fleet", "status", "--json"]).stdout);
    let running = &report["runners"][0]["running"][0];
    assert_eq!(running["task_id"], id, "{report:#}");
    assert_eq!(running["engine_url"], page.as_str(), "{report:#}");
    for args in [&["task", "get", id][..], &["fleet", "status"]] {
        let shown = with_pages(&fleet, args).stdout;
        assert!(shown.contains(&page), "{shown}");
    }

    let task = parsed(&fleet.run(&["task", "get", id, "--json"]).stdout);
    assert_eq!(task.get("engine_url"), None, "{task:#}");
    fleet.bench.file("gate", "");
    is("completed");
    fleet.bench.room.wait_until_empty(PATIENCE).unwrap();
}
