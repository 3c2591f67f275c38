//! Going back to an earlier message: files, conversation, both, and back again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::{fs, path::PathBuf, sync::Arc};

use codespar_agent::{
    Agent, FileEffect, OnConflict, RewindError, RewindPreview, RewindReport, RewindRequest,
    RewindScope, Rewinder, Transcript,
};
use codespar_policy::Access;
use codespar_protocol::{ContentBlock, EntryBody, Message, Outcome, conversation};
use codespar_store::Store;
use codespar_testkit::{Conversation, Matcher, Script, Turn};
use codespar_tools::{
    Call, ChangeAuthor, ChangeCause, Checkpoints, Restore, RestoreStep, sandbox::Approval,
    standard_tools,
};
use common::Bench;
use serde_json::{json, value::to_raw_value};
use tokio_util::sync::CancellationToken;

const ASIDE: OnConflict = OnConflict::LeaveAlone;

fn edit(file: &str, old: &str, new: &str) -> Turn {
    let input = json!({"file_path": file, "old_string": old, "new_string": new});
    Turn::tool("Edit", &input)
}

fn before(turn: usize, scope: RewindScope) -> RewindRequest {
    RewindRequest::Before { turn, scope }
}

/// Three turns: an edit, a new file and a command, another edit.
fn three_turns() -> Script {
    Script::of([
        edit("a.txt", "one", "two"),
        Turn::text("First."),
        Turn::new()
            .and_tool(
                "Write",
                &json!({"file_path": "new/b.txt", "content": "b\n"}),
            )
            .and_tool("Bash", &json!({"command": "echo  c > c.txt"})),
        Turn::text("Second."),
        edit("a.txt", "two", "three"),
        Turn::text("Third."),
        Turn::text("Fourth."),
    ])
}

async fn say(agent: &mut Agent, prompt: &str) {
    let result = agent
        .run(Some(Message::user(prompt)), CancellationToken::new())
        .await;
    assert_eq!(result.outcome, Outcome::Success, "{}", result.result);
}

async fn after_three_turns() -> (Bench, Agent) {
    let mut bench = Bench::new(three_turns()).await;
    fs::write(bench.root.join("a.txt"), "one\n").unwrap();
    let (mut agent, _) = bench.agent().await;
    for prompt in ["first", "\n  second  \nand more", "third"] {
        say(&mut agent, prompt).await;
    }
    (bench, agent)
}

/// The conversation as it would be sent.
fn shown(agent: &Agent) -> Vec<String> {
    let messages = agent.transcript().messages().iter();
    messages
        .map(|message| serde_json::to_string(&**message).unwrap())
        .collect()
}

fn text(bench: &Bench, name: &str) -> Option<String> {
    fs::read_to_string(bench.root.join(name)).ok()
}

fn files(bench: &Bench) -> [Option<String>; 3] {
    ["a.txt", "new/b.txt", "c.txt"].map(|name| text(bench, name))
}

fn some(texts: [&str; 3]) -> [Option<String>; 3] {
    texts.map(|text| (!text.is_empty()).then(|| text.to_owned()))
}

#[tokio::test]
async fn turns_are_listed_with_their_prompts_and_files() {
    let (bench, agent) = after_three_turns().await;
    let turns = agent.turns().await.unwrap();
    let listed: Vec<(usize, &str, Vec<PathBuf>)> = turns
        .iter()
        .map(|turn| (turn.number, turn.prompt.as_str(), turn.files.clone()))
        .collect();
    let a = vec![bench.root.join("a.txt")];
    let b = vec![bench.root.join("new/b.txt")];
    assert_eq!(
        listed,
        [(1, "first", a.clone()), (2, "second", b), (3, "third", a)]
    );
    assert!(turns.is_sorted_by_key(|turn| turn.at));
}

#[tokio::test]
async fn both_go_back_and_a_new_process_finds_the_same_conversation() {
    let (mut bench, mut agent) = after_three_turns().await;
    let all = shown(&agent);
    let report = agent.rewind(before(2, RewindScope::Both), ASIDE).await;
    let report = report.unwrap();
    let restored = vec![bench.root.join("new/b.txt"), bench.root.join("a.txt")];
    assert_eq!(
        report,
        RewindReport {
            restored,
            messages_dropped: 6,
            prompt: Some("\n  second  \nand more".to_owned()),
            ..RewindReport::default()
        }
    );
    assert_eq!(files(&bench), some(["two\n", "", "c\n"]));
    assert!(!bench.root.join("new").exists());
    assert_eq!(shown(&agent), all[..4]);
    drop(agent);
    let (mut agent, recovered) = bench.agent().await;
    assert_eq!(recovered.outcome_unknown, [""; 0]);
    assert_eq!(shown(&agent), all[..4]);
    // The model answers as it did then, with the ids of the turn that was taken out.
    say(&mut agent, "second again").await;
    let request = bench.server.last_request().unwrap();
    assert!(
        !request
            .messages()
            .iter()
            .any(|m| m.to_string().contains("third"))
    );
    assert_eq!(files(&bench), some(["two\n", "b\n", "c\n"]));
    let turns = agent.turns().await.unwrap();
    let prompts: Vec<&str> = turns.iter().map(|turn| turn.prompt.as_str()).collect();
    assert_eq!(prompts, ["first", "second again"]);
    assert_eq!(turns[1].files, [bench.root.join("new/b.txt")]);
}

#[tokio::test]
async fn a_rewind_is_undone_in_every_scope_and_once() {
    for scope in [
        RewindScope::Both,
        RewindScope::Code,
        RewindScope::Conversation,
    ] {
        let (mut bench, mut agent) = after_three_turns().await;
        let all = shown(&agent);
        agent.rewind(before(1, scope), ASIDE).await.unwrap();
        let expected = match scope {
            RewindScope::Conversation => ["three\n", "b\n", "c\n"],
            _ => ["one\n", "", "c\n"],
        };
        assert_eq!(files(&bench), some(expected), "{scope:?}");
        let kept = match scope {
            RewindScope::Code => all.len(),
            _ => 0,
        };
        assert_eq!(shown(&agent)[..kept], all[..kept], "{scope:?}");
        assert_eq!(agent.turns().await.unwrap().len(), kept.min(3));
        drop(agent);
        let (mut agent, _) = bench.agent().await;
        let report = agent.undo_rewind(ASIDE).await.unwrap();
        assert_eq!(report.conflicts, [], "{scope:?}");
        assert_eq!(files(&bench), some(["three\n", "b\n", "c\n"]), "{scope:?}");
        assert_eq!(shown(&agent)[..all.len() - 1], all[..all.len() - 1]);
        assert_eq!(agent.turns().await.unwrap().len(), 3);
        let again = agent.undo_rewind(ASIDE).await;
        assert!(
            matches!(again, Err(RewindError::NothingToUndo)),
            "{again:?}"
        );
    }
}

#[tokio::test]
async fn undoing_twice_takes_back_two_rewinds() {
    let (bench, mut agent) = after_three_turns().await;
    let all = shown(&agent);
    agent
        .rewind(before(3, RewindScope::Both), ASIDE)
        .await
        .unwrap();
    agent
        .rewind(before(1, RewindScope::Both), ASIDE)
        .await
        .unwrap();
    assert_eq!(files(&bench), some(["one\n", "", "c\n"]));
    agent.undo_rewind(ASIDE).await.unwrap();
    assert_eq!(files(&bench), some(["two\n", "b\n", "c\n"]));
    assert_eq!(agent.turns().await.unwrap().len(), 2);
    agent.undo_rewind(ASIDE).await.unwrap();
    assert_eq!(files(&bench), some(["three\n", "b\n", "c\n"]));
    assert_eq!(shown(&agent), all);
}

#[tokio::test]
async fn after_restored_files_the_model_is_told_and_must_read_them_again() {
    let (bench, mut agent) = after_three_turns().await;
    agent
        .rewind(before(3, RewindScope::Code), ASIDE)
        .await
        .unwrap();
    assert_eq!(files(&bench), some(["two\n", "b\n", "c\n"]));
    let last = shown(&agent).pop().unwrap();
    assert!(
        last.contains("put files back to an earlier state: a.txt."),
        "{last}"
    );
    let context = bench.context.as_ref().unwrap();
    let path = bench.root.join("a.txt");
    let metadata = fs::metadata(&path).unwrap();
    let seen = context.ledger().check(&path, &metadata, b"two\n");
    assert!(seen.is_err());
    // It is one message of the user with what comes next.
    say(&mut agent, "go on").await;
    let request = bench.server.last_request().unwrap();
    let newest = request.messages().last().unwrap().to_string();
    assert!(
        newest.contains("put files back") && newest.contains("go on"),
        "{newest}"
    );
}

#[tokio::test]
async fn the_preview_shows_changes_conflicts_and_what_is_not_covered() {
    let (bench, agent) = after_three_turns().await;
    fs::write(bench.root.join("new/b.txt"), "mine\n").unwrap();
    let request = before(2, RewindScope::Both);
    let preview = agent.preview_rewind(request, ASIDE).await.unwrap();
    let RewindPreview {
        files,
        conflicts,
        not_covered,
        messages_dropped,
        messages_back,
    } = preview;
    let [a] = files.as_slice() else {
        panic!("{files:?}");
    };
    assert_eq!((a.effect, a.added, a.removed), (FileEffect::Changed, 1, 1));
    assert_eq!(
        a.diff.as_deref().unwrap(),
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-three\n+two\n"
    );
    let [b] = conflicts.as_slice() else {
        panic!("{conflicts:?}");
    };
    assert_eq!(b.path, bench.root.join("new/b.txt"));
    assert_eq!(b.reason, "it was changed since, by a command or by hand");
    assert_eq!(not_covered, ["echo c > c.txt"]);
    assert_eq!((messages_dropped, messages_back), (6, 0));
    // Nothing was done.
    assert_eq!(text(&bench, "a.txt").unwrap(), "three\n");
    assert_eq!(agent.turns().await.unwrap().len(), 3);
    let forced = agent.preview_rewind(request, OnConflict::Overwrite).await;
    let forced = forced.unwrap();
    let effects: Vec<FileEffect> = forced.files.iter().map(|file| file.effect).collect();
    assert_eq!(effects, [FileEffect::Removed, FileEffect::Changed]);
}

#[tokio::test]
async fn one_turn_is_taken_back_where_nothing_was_built_on_it() {
    let (bench, mut agent) = after_three_turns().await;
    let all = shown(&agent);
    let report = agent
        .rewind(RewindRequest::OneTurn { turn: 2 }, ASIDE)
        .await;
    assert_eq!(report.unwrap().restored, [bench.root.join("new/b.txt")]);
    assert_eq!(files(&bench), some(["three\n", "", "c\n"]));
    assert_eq!(shown(&agent)[..all.len()], all);
    // The third turn changed the same file after the first.
    let report = agent
        .rewind(RewindRequest::OneTurn { turn: 1 }, ASIDE)
        .await;
    let report = report.unwrap();
    assert_eq!((report.restored.len(), report.conflicts.len()), (0, 1));
    agent.undo_rewind(ASIDE).await.unwrap();
    assert_eq!(files(&bench), some(["three\n", "b\n", "c\n"]));
    let missing = agent
        .rewind(RewindRequest::OneTurn { turn: 4 }, ASIDE)
        .await;
    assert_eq!(
        missing.unwrap_err().to_string(),
        "there is no turn 4: the conversation has 3 of them"
    );
}

#[tokio::test]
async fn a_file_that_was_seen_before_the_turn_may_be_edited_after_the_rewind() {
    let mut bench = Bench::new(Script::of([
        Turn::tool("Read", &json!({"file_path": "a.txt"})),
        Turn::text("Read."),
        edit("a.txt", "o", "0"),
        Turn::text("Edited."),
    ]))
    .await;
    // Not unique: it can be edited only by who has read it.
    fs::write(bench.root.join("a.txt"), "o\n").unwrap();
    let (mut agent, _) = bench.agent().await;
    say(&mut agent, "read").await;
    say(&mut agent, "edit").await;
    let rewound = agent.rewind(before(2, RewindScope::Both), ASIDE).await;
    rewound.unwrap();
    let path = bench.root.join("a.txt");
    let ledger = bench.context.as_ref().unwrap().ledger().clone();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(ledger.check(&path, &metadata, b"o\n"), Ok(()));
    // To before it was read.
    let rewound = agent.rewind(before(1, RewindScope::Both), ASIDE).await;
    rewound.unwrap();
    assert!(!ledger.has_read(&path));
}

#[tokio::test]
async fn a_rewind_to_before_a_summary_brings_the_whole_turns_back() {
    let summary = Conversation::new("summary", Matcher::system_contains("You keep the memory"))
        .turn(Turn::text("SUMMARY"));
    let script = Script::of(["One.", "Two.", "Three."].map(Turn::text));
    let mut bench = Bench::new(script.conversation(summary)).await;
    let (mut agent, _) = bench.agent().await;
    for prompt in ["first", "second", "third"] {
        say(&mut agent, prompt).await;
    }
    let whole = shown(&agent);
    let compacted = agent.compact_now(&CancellationToken::new()).await;
    assert!(compacted.unwrap());
    let short = shown(&agent);
    assert!(short[0].contains("SUMMARY"), "{short:?}");
    // What is before the summary is part of the conversation and can be gone back to.
    let rewound = agent.rewind(before(2, RewindScope::Conversation), ASIDE);
    rewound.await.unwrap();
    assert_eq!(shown(&agent), whole[..2]);
    drop(agent);
    let (mut agent, _) = bench.agent().await;
    assert_eq!(shown(&agent), whole[..2]);
    agent.undo_rewind(ASIDE).await.unwrap();
    assert_eq!(shown(&agent), short);
}

#[tokio::test]
async fn a_rewind_that_was_killed_is_made_again_or_undone() {
    for goes_on in [true, false] {
        let (mut bench, agent) = after_three_turns().await;
        let all = shown(&agent);
        // What a process does that is killed after its first file.
        let store = bench.checkpoints();
        let steps = RestoreStep::all(&store.records().unwrap());
        let place = agent.transcript().last_seq();
        drop(agent);
        let cause = ChangeCause::Rewind { place };
        let restore = Restore { store, cause };
        restore.run(&steps[0], ASIDE).unwrap();
        assert_eq!(files(&bench), some(["one\n", "b\n", "c\n"]));
        let (mut agent, _) = bench.agent().await;
        assert_eq!(shown(&agent), all);
        if goes_on {
            let rewound = agent.rewind(before(1, RewindScope::Both), ASIDE).await;
            assert_eq!(rewound.unwrap().conflicts, []);
            assert_eq!(files(&bench), some(["one\n", "", "c\n"]));
            assert_eq!(shown(&agent), [""; 0]);
        }
        agent.undo_rewind(ASIDE).await.unwrap();
        assert_eq!(files(&bench), some(["three\n", "b\n", "c\n"]), "{goes_on}");
        assert_eq!(agent.turns().await.unwrap().len(), 3);
        let again = agent.undo_rewind(ASIDE).await;
        assert!(
            matches!(again, Err(RewindError::NothingToUndo)),
            "{again:?}"
        );
    }
}

#[tokio::test]
async fn every_call_keeps_its_result_wherever_the_conversation_goes() {
    let (bench, mut agent) = after_three_turns().await;
    for turn in [3, 2, 1] {
        let request = before(turn, RewindScope::Conversation);
        agent.rewind(request, ASIDE).await.unwrap();
        let entries = bench.store.entries(bench.session, 0).await.unwrap();
        let mut open = std::collections::HashSet::new();
        for entry in conversation(&entries) {
            match &entry.body {
                EntryBody::Assistant { message, .. } => {
                    assert!(open.is_empty(), "{open:?}");
                    open.extend(message.tool_uses().map(|call| call.id.clone()));
                }
                EntryBody::ToolResult {
                    result: ContentBlock::ToolResult(result),
                    ..
                } => assert!(open.remove(&result.tool_use_id)),
                _ => {}
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}

/// Changes a file as the Write tool of an agent would.
async fn write(context: &codespar_tools::Context, path: PathBuf, content: &str) {
    let input = json!({"file_path": path, "content": content});
    let call = Call {
        text: None,
        id: "call".into(),
        input: to_raw_value(&input).unwrap(),
        access: vec![Access::Write(path)],
        cancel: CancellationToken::new(),
        approval: Approval::Rules,
    };
    let write = standard_tools().get("Write").unwrap();
    let output = write.run(call, context).await;
    assert!(!output.is_error, "{}", output.content.text());
}

#[tokio::test]
async fn what_a_subagent_changed_belongs_to_the_turn_of_that_time() {
    let mut bench = Bench::new(Script::of([Turn::text("One."), Turn::text("Two.")])).await;
    let path = bench.root.join("by_subagent.txt");
    let (mut agent, _) = bench.agent().await;
    say(&mut agent, "first").await;
    let context = codespar_tools::Context::new(codespar_tools::ContextParts {
        root: bench.root.clone(),
        cwd: bench.root.clone(),
        extra_dirs: Vec::new(),
        temp_dir: bench.root.clone(),
        output_dir: bench.root.clone(),
        child_env: Vec::new(),
        sandbox: Arc::new(codespar_tools::sandbox::Sandbox::unsandboxed()),
        skills: Arc::default(),
        page_reader: None,
        hidden: codespar_tools::Hidden::default(),
        redactor: Arc::new(codespar_policy::Redactor::by_shape()),
    });
    let context = context.with_checkpoints(Checkpoints::new(
        bench.checkpoints(),
        ChangeAuthor::Subagent,
    ));
    write(&context, path.clone(), "one\n").await;
    say(&mut agent, "second").await;
    write(&context, path.clone(), "two\n").await;
    let turns = agent.turns().await.unwrap();
    assert_eq!((turns[0].files.len(), turns[1].files.len()), (1, 1));
    let rewound = agent.rewind(before(2, RewindScope::Code), ASIDE).await;
    rewound.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
    let rewound = agent.rewind(before(1, RewindScope::Code), ASIDE).await;
    rewound.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn a_session_of_two_hundred_turns_goes_back_to_any_of_them() {
    let mut bench = Bench::new(Script::new()).await;
    let (agent, _) = bench.agent().await;
    drop(agent);
    let context = bench.context.clone().unwrap();
    let store: Arc<dyn Store> = bench.store.clone();
    let (mut transcript, _) = Transcript::open(store, bench.session).await.unwrap();
    for turn in 1..=200 {
        let body = EntryBody::User {
            message: Message::user(format!("turn {turn}")),
            synthetic: false,
        };
        let entry = transcript.append(body).await.unwrap();
        context.checkpoints().unwrap().set_turn(entry.seq);
        for name in ["a.txt", &format!("{turn}.txt")] {
            write(&context, bench.root.join(name), &format!("{turn}\n")).await;
        }
    }
    let rewinder = Rewinder {
        checkpoints: Some(bench.checkpoints()),
        root: bench.root.clone(),
    };
    assert_eq!(rewinder.turns(&transcript).await.unwrap().len(), 200);
    for turn in [199, 100, 2] {
        let request = before(turn, RewindScope::Code);
        let preview = rewinder.preview(&transcript, request, ASIDE).await.unwrap();
        assert_eq!(preview.conflicts, []);
        rewinder
            .rewind(&mut transcript, request, ASIDE)
            .await
            .unwrap();
        assert_eq!(text(&bench, "a.txt").unwrap(), format!("{}\n", turn - 1));
        let left = fs::read_dir(&bench.root).unwrap().count();
        assert_eq!(left, turn, "turn {turn}");
    }
}
