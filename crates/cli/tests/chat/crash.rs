//! Killed anywhere between the receipt of a message and the last edit, the next process goes on.

use codespar_store::OutboxRow;
use codespar_testkit::process::spawn_with_stdin;

use crate::{
    common::{
        PATIENCE,
        git::git,
        kill_points::{POINTS, at_each},
    },
    room::{FIX, Record, answer, chat_command, decisions, greeting, pulls, say, script, writer},
};

#[test]
fn killed_at_any_point_there_is_one_task_one_pull_request_and_one_message_of_progress() {
    at_each(&POINTS, dies);
}

fn dies(variable: &str, point: &str) {
    let bench = greeting(script([writer(
        "say hi",
        [answer("Say hi", FIX), answer("Say hi", FIX)],
    )]));
    let mut command = chat_command(&bench, "ann");
    command.env(format!("CODESPAR_TEST_DIE_{variable}"), point);
    let died = spawn_with_stdin(&mut command, "@codespar fix it to say hi\n".into())
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(died.status.code(), None, "{point}: {}", died.stdout);

    let next = say(&bench, "ann", &[]);
    assert_eq!(next.status.code(), Some(0), "{point}: {}", next.stderr);
    let record = Record::of(&bench);
    assert_eq!(record.tasks.len(), 1, "{point}");
    let progress = record.texts("progress");
    assert_eq!(progress.len(), 1, "{point}: {progress:#?}");
    assert!(
        progress[0].contains("✅ PR #1: Say hi"),
        "{point}: {progress:#?}"
    );
    let results = record.texts("result");
    assert_eq!(results.len(), 1, "{point}: {results:#?}");
    let is_sent = |row: &OutboxRow| row.sent_revision == row.revision && row.failure.is_none();
    assert!(
        record.sent.iter().all(is_sent),
        "{point}: {:#?}",
        record.sent
    );
    let pulls = pulls(&bench);
    assert_eq!(pulls.len(), 1, "{point}");
    let range = format!("main..{}", pulls[0]["head"].as_str().unwrap());
    let commits = git(&bench.work(), &["rev-list", "--count", &range]);
    assert_eq!(commits, "1\n", "{point}");
    assert_eq!(
        decisions(&bench),
        ["ann dev allowed", "ann dev done"],
        "{point}"
    );
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new(),
        "{point}"
    );
}
