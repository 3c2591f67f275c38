//! A failed run is resumed with everything that its order needs.

use codespar_testkit::{Conversation, Fault, Matcher, Script, ScriptedModel, Turn};
use serde_json::{Value, json};

use crate::{
    common::{Bench, parsed},
    repository::{FIX, answer, dev_resume, greeting, script},
};

/// Fails, and says how to go on; the id of the task.
fn failing(bench: &Bench, args: &[&str]) -> String {
    let finished = bench.run(&[&["dev", "--json", "make it say hi"], args].concat());
    assert_eq!(finished.status.code(), Some(1), "{}", finished.stdout);
    let id = parsed(&finished.stdout)["task_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let resume = format!("failed. Resume with: codespar dev --resume {id}");
    assert!(finished.stderr.contains(&resume), "{}", finished.stderr);
    id
}

fn files_of_runs(bench: &Bench) -> usize {
    let runs = bench.room.codespar_home().join("dev/runs");
    std::fs::read_dir(runs).map_or(0, Iterator::count)
}

#[test]
fn a_run_that_failed_by_its_answer_asks_again_with_the_same_pictures() {
    let mut bench = greeting(script(&["greet.sh"], [Turn::text("I would rather not.")]));
    let png = bench.work().join("../shot.png");
    std::fs::write(&png, b"\x89PNG\r\n\x1a\nrest").unwrap();
    let id = failing(&bench, &["--image", png.to_str().unwrap()]);
    std::fs::remove_file(&png).unwrap();
    assert_eq!(bench.run(&["gc"]).status.code(), Some(0));

    let better = script(&["greet.sh"], [answer("Say hi", FIX)]);
    bench.server = ScriptedModel::start_blocking(better).unwrap();
    let (report, code) = dev_resume(&bench, &id);
    assert_eq!(code, Some(0), "{report}");
    let requests = bench.server.requests();
    assert_eq!(requests.len(), 1, "the writer alone is asked again");
    let request = requests[0].json();
    let content = request["messages"][0]["content"].as_array().unwrap();
    let is_picture = |block: &Value| block["type"] == "image";
    assert!(content.iter().any(is_picture), "{content:?}");
    assert_eq!(
        files_of_runs(&bench),
        0,
        "a run that is over keeps no files"
    );
}

fn by_agent(turns: impl IntoIterator<Item = Turn>) -> Script {
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    );
    script(&["greet.sh"], []).conversation(agent.turns(turns))
}

#[test]
fn an_agent_that_failed_is_followed_by_another_in_its_tree() {
    let edit = json!({"file_path": "greet.sh", "old_string": "hello", "new_string": "hi"});
    let mut bench = greeting(by_agent([
        Turn::tool("Read", &json!({"file_path": "greet.sh"})),
        Turn::tool("Edit", &edit),
        Turn::text("Say hi").fault(Fault::status(400).into()),
    ]));
    let id = failing(&bench, &["--engine", "agent"]);
    assert_eq!(bench.run(&["gc"]).status.code(), Some(0));

    // It changes nothing itself: the change is the one that the first agent left.
    let rest = by_agent([Turn::text("Say hi")]);
    bench.server = ScriptedModel::start_blocking(rest).unwrap();
    let (report, code) = dev_resume(&bench, &id);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        report["verification"]["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
    assert_eq!(
        files_of_runs(&bench),
        0,
        "a run that is over keeps no files"
    );
}
