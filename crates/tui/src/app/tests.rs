//! The main screens, and what keys do, on an emulator.

mod allocated;
mod permissions;
mod screens;
mod streaming;
mod tasks;
mod vim;

use std::{
    cell::RefCell,
    io::{self, Write},
    rc::Rc,
    str::FromStr,
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_policy::Redactor;
use codespar_protocol::{
    Answer, ClarificationRequest, Confinement, Event, PermissionRequest, QuestionRequest,
};
use codespar_terminal::{
    Size,
    history::History,
    keys::{Input, Key},
    painter::{Painter, Reflow},
    theme::Theme,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{App, AppParts, Effect};
use crate::{
    CompletionSource, Keymap, Status, Suggestion, UserAction,
    activity::Motion,
    composer::Composer,
    draft::DraftFile,
    handle::{Message, QuestionReply},
    question::QuestionNumber,
    text::Cleaner,
};

struct NoCompletion;

impl CompletionSource for NoCompletion {
    fn commands(&self) -> Vec<Suggestion> {
        let command = |text: &str, help: &str| Suggestion {
            text: text.to_owned(),
            help: help.to_owned(),
        };
        vec![
            command("help", "show this"),
            command("model", "show or change the model"),
            command("mode", "show or change the permission mode"),
        ]
    }

    fn paths(&self) -> Arc<[String]> {
        Arc::from(["src/main.rs".to_owned()])
    }

    fn agents(&self) -> Vec<Suggestion> {
        Vec::new()
    }
}

/// What the painter wrote.
#[derive(Clone, Default)]
struct Written(Rc<RefCell<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The state with an emulator to show it, and a clock that the test moves.
struct Stage {
    app: App,
    painter: Painter<Written>,
    written: Written,
    screen: vt100::Parser,
    size: Size,
    now: Instant,
    directory: tempfile::TempDir,
}

impl Stage {
    fn new(columns: u16, rows: u16) -> Self {
        Self::in_directory(columns, rows, tempfile::tempdir().unwrap())
    }

    fn moving(mut self) -> Self {
        self.app.motion = Motion::Full;
        self
    }

    fn in_directory(columns: u16, rows: u16, directory: tempfile::TempDir) -> Self {
        let size = Size::new(columns, rows);
        let history = History::open(&directory.path().join("history.jsonl"));
        let draft = DraftFile::new(directory.path().join("draft.json"));
        let mut app = App::new(AppParts {
            theme: Theme::default(),
            motion: Motion::Reduced,
            keymap: Keymap::default(),
            cleaner: Cleaner::new(Arc::new(Redactor::by_shape())),
            composer: Composer::new(history, Some(draft), Arc::new(NoCompletion)),
            size,
        });
        let now = Instant::now();
        let status = Status {
            model: "sonnet".into(),
            mode: "default".into(),
            branch: Some("main".into()),
            context: Some((24_000, 200_000)),
            cost: "$0.04".into(),
            ..Status::default()
        };
        app.message(Message::Status(Box::new(status)), now);
        let written = Written::default();
        Self {
            app,
            painter: Painter::new(written.clone(), size, Reflow::No),
            written,
            screen: vt100::Parser::new(
                rows.try_into().unwrap(),
                columns.try_into().unwrap(),
                10_000,
            ),
            size,
            now,
            directory,
        }
    }

    fn message(&mut self, message: Message) {
        self.app.message(message, self.now);
    }

    fn event(&mut self, event: Event) {
        self.message(Message::Event(event));
    }

    /// From the form in which events are documented.
    fn text(&mut self, text: &str) {
        self.event(Event::TextDelta {
            text: text.to_owned(),
        });
    }

    fn call(&mut self, id: &str, tool: &str, summary: &str, input: Value) {
        self.event(Event::ToolStarted {
            tool_use_id: serde_json::from_value(json!(id)).unwrap(),
            tool: tool.to_owned(),
            summary: summary.to_owned(),
            input,
        });
    }

    fn result(&mut self, id: &str, tool: &str, is_error: bool, result: &str) {
        self.event(Event::ToolFinished {
            tool_use_id: serde_json::from_value(json!(id)).unwrap(),
            tool: tool.to_owned(),
            is_error,
            duration_ms: 1_200,
            result: codespar_protocol::ToolResultContent::Text(result.to_owned()),
        });
    }

    fn ask(&mut self, request: QuestionRequest) -> oneshot::Receiver<QuestionReply> {
        let (reply, answer) = oneshot::channel();
        self.message(Message::Ask {
            number: QuestionNumber::next(),
            request: Box::new(request),
            from: None,
            reply,
        });
        answer
    }

    fn wait(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
        self.app.on_time(self.now);
    }

    fn keys(&mut self, names: &[&str]) {
        for name in names {
            let key = Key::from_str(name).unwrap();
            self.app.input(Input::Key(key), self.now);
        }
    }

    fn typed(&mut self, text: &str) {
        for c in text.chars() {
            self.app.input(Input::Key(Key::char(c)), self.now);
        }
    }

    fn actions(&mut self) -> Vec<UserAction> {
        let effects = self.app.take_effects().into_iter();
        let actions = effects.filter_map(|effect| match effect {
            Effect::Action(action) => Some(action),
            _ => None,
        });
        actions.collect()
    }

    fn paint(&mut self) {
        let bytes = self.paint_unseen();
        self.screen.process(&bytes);
    }

    /// Without the emulator.
    fn paint_unseen(&mut self) -> Vec<u8> {
        let output = self.app.take_output();
        self.painter.commit(&output);
        let frame = self.app.frame(self.size, self.now);
        self.painter.draw(&frame.buffer, frame.cursor).unwrap();
        std::mem::take(&mut *self.written.0.borrow_mut())
    }

    /// The screen as a user sees it, without blank rows at its end.
    fn shown(&mut self) -> String {
        self.paint();
        let rows = self.screen.screen().rows(0, self.size.width);
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }
}

fn command(command: &str) -> QuestionRequest {
    QuestionRequest::Permission(PermissionRequest {
        tool_use_id: serde_json::from_value(json!("t1")).unwrap(),
        tool: "Bash".to_owned(),
        summary: command.to_owned(),
        input: json!({"command": command}),
        preview: None,
        change: None,
        confinement: Some(Confinement::Sandboxed),
        reason: "no rule allows this command".to_owned(),
        suggested_rules: vec!["Bash(rm *)".to_owned()],
    })
}

#[test]
fn enter_sends_a_prompt_and_steers_while_the_agent_works() {
    let mut stage = Stage::new(60, 20);
    stage.typed("hello");
    stage.keys(&["enter"]);
    assert_eq!(stage.actions(), [UserAction::Submit("hello".into())]);
    stage.message(Message::TurnStarted);
    stage.typed("use tabs");
    stage.keys(&["enter"]);
    assert_eq!(stage.actions(), [UserAction::Steer("use tabs".into())]);
    stage.typed("/tasks");
    stage.keys(&["enter"]);
    assert_eq!(stage.actions(), [UserAction::Submit("/tasks".into())]);
}

#[test]
fn tab_queues_for_after_the_turn() {
    let mut stage = Stage::new(60, 20);
    stage.message(Message::TurnStarted);
    stage.typed("then test");
    stage.keys(&["tab"]);
    assert!(stage.shown().contains("queued 1: then test"));
    stage.message(Message::TurnEnded);
    assert_eq!(stage.actions(), [UserAction::Submit("then test".into())]);
}

/// A turn under way and three messages that wait for its end.
fn three_queued() -> Stage {
    let mut stage = Stage::new(60, 30);
    stage.message(Message::TurnStarted);
    for text in ["one", "two", "three"] {
        stage.typed(text);
        stage.keys(&["tab"]);
    }
    stage
}

#[test]
fn a_queued_message_is_edited_in_the_composer_and_goes_back_to_its_place() {
    let mut stage = three_queued();
    stage.keys(&["up", "up", "enter"]);
    let shown = stage.shown();
    assert!(shown.contains("› two"), "{shown}");
    assert!(shown.contains("queued 2: three"), "{shown}");
    stage.typed(" words");
    stage.keys(&["tab"]);
    assert!(stage.shown().contains("queued 2: two words"));
    stage.message(Message::TurnEnded);
    stage.message(Message::TurnEnded);
    let sent = ["one", "two words"].map(|text| UserAction::Submit(text.into()));
    assert_eq!(stage.actions(), sent);
}

#[test]
fn a_message_that_was_edited_and_sent_leaves_no_place_behind() {
    let mut stage = three_queued();
    stage.keys(&["up", "up", "up", "enter", "enter"]);
    assert_eq!(stage.actions(), [UserAction::Steer("one".into())]);
    stage.typed("four");
    stage.keys(&["tab"]);
    assert!(stage.shown().contains("queued 3: four"));
}

#[test]
fn keys_for_the_queue_neither_interrupt_nor_answer() {
    let mut stage = three_queued();
    stage.keys(&["up"]);
    let mut answer = stage.ask(command("rm -rf build"));
    stage.wait(5_000);
    assert!(stage.shown().contains("› queued 3: three"));
    stage.keys(&["esc"]);
    assert!(answer.try_recv().is_err());
    assert_eq!(stage.actions(), []);
    assert!(stage.shown().contains("  queued 3: three"));
}

#[test]
fn a_long_paste_in_a_queued_message_is_a_chip_when_it_is_edited() {
    let mut stage = Stage::new(60, 20);
    stage.message(Message::TurnStarted);
    let long = "x".repeat(5_000);
    stage.app.input(Input::Paste(long.clone()), stage.now);
    stage.keys(&["tab", "up", "enter"]);
    assert!(stage.shown().contains("› [pasted 5000 characters]"));
    stage.keys(&["enter"]);
    assert_eq!(stage.actions(), [UserAction::Steer(long)]);
}

#[test]
fn esc_interrupts_and_keeps_the_text() {
    let mut stage = Stage::new(60, 20);
    stage.typed("a draft");
    stage.keys(&["esc"]);
    assert_eq!(stage.actions(), []);
    stage.message(Message::TurnStarted);
    stage.keys(&["esc"]);
    assert_eq!(stage.actions(), [UserAction::Interrupt]);
    assert!(stage.shown().contains("› a draft"));
}

#[test]
fn ctrl_c_keeps_the_text_in_the_history_then_interrupts_then_leaves() {
    let mut stage = Stage::new(60, 20);
    stage.message(Message::TurnStarted);
    stage.typed("a draft");
    stage.keys(&["ctrl-c"]);
    assert_eq!(stage.actions(), []);
    stage.keys(&["ctrl-c"]);
    assert_eq!(stage.actions(), [UserAction::Interrupt]);
    stage.message(Message::TurnEnded);
    stage.keys(&["ctrl-c"]);
    assert!(stage.shown().contains("ctrl-c again leaves"));
    stage.keys(&["ctrl-c"]);
    assert_eq!(stage.actions(), [UserAction::Leave]);
    stage.keys(&["up"]);
    assert!(stage.shown().contains("› a draft"));
}

#[test]
fn typing_at_the_moment_a_question_appears_answers_nothing() {
    let mut stage = Stage::new(60, 20);
    stage.message(Message::TurnStarted);
    let mut answer = stage.ask(command("rm -rf build"));
    for _ in 0..40 {
        stage.typed("y");
        stage.wait(60);
    }
    stage.keys(&["enter"]);
    assert!(answer.try_recv().is_err());
    assert!(matches!(stage.actions()[..], [UserAction::Steer(_)]));
}

#[test]
fn a_question_does_not_take_keys_while_there_is_text() {
    let mut stage = Stage::new(60, 20);
    stage.message(Message::TurnStarted);
    stage.typed("maybe ");
    stage.wait(5_000);
    let mut answer = stage.ask(command("rm -rf build"));
    stage.wait(5_000);
    stage.typed("y");
    assert!(answer.try_recv().is_err());
    assert!(stage.shown().contains("tab answers this question"));
    stage.keys(&["tab"]);
    stage.typed("y");
    assert_eq!(answer.try_recv(), Ok(QuestionReply::Answer(Answer::Once)));
    assert!(stage.shown().contains("› maybe y"));
}

#[test]
fn a_question_that_was_seen_is_answered_by_a_letter() {
    for (key, wanted) in [
        ("y", QuestionReply::Answer(Answer::Once)),
        ("s", QuestionReply::ForSession),
        ("esc", QuestionReply::Answer(Answer::No { reason: None })),
        ("ctrl-c", QuestionReply::Interrupted),
    ] {
        let mut stage = Stage::new(60, 20);
        stage.message(Message::TurnStarted);
        let mut answer = stage.ask(command("rm -rf build"));
        stage.wait(1_000);
        stage.keys(&[key]);
        assert_eq!(answer.try_recv(), Ok(wanted), "{key}");
    }
}

#[test]
fn a_no_can_have_a_reason() {
    let mut stage = Stage::new(60, 20);
    let mut answer = stage.ask(command("rm -rf build"));
    stage.wait(1_000);
    stage.typed("n");
    stage.typed("use make clean");
    stage.keys(&["enter"]);
    let reason = Some("the user says: use make clean".to_owned());
    assert_eq!(
        answer.try_recv(),
        Ok(QuestionReply::Answer(Answer::No { reason }))
    );
}

#[test]
fn a_paste_never_answers_a_question() {
    let mut stage = Stage::new(60, 20);
    let mut answer = stage.ask(command("rm -rf build"));
    stage.wait(1_000);
    stage.app.input(Input::Paste("y\ny\n".into()), stage.now);
    assert!(answer.try_recv().is_err());
    assert!(stage.shown().contains("› y"));
}

#[test]
fn questions_wait_in_line_and_a_withdrawn_one_goes_away() {
    let mut stage = Stage::new(60, 20);
    let first = stage.ask(command("first"));
    let mut second = stage.ask(QuestionRequest::Clarification(ClarificationRequest {
        text: "Which branch?".into(),
    }));
    assert!(!stage.shown().contains("Which branch?"));
    drop(first);
    stage.app.next_question(stage.now);
    assert!(stage.shown().contains("Which branch?"));
    stage.wait(1_000);
    stage.typed("main");
    stage.keys(&["enter"]);
    let text = Answer::Text {
        text: "main".into(),
    };
    assert_eq!(second.try_recv(), Ok(QuestionReply::Answer(text)));
}

#[test]
fn a_draft_comes_back_after_a_crash() {
    let mut stage = Stage::new(60, 20);
    stage.typed("half a thought");
    stage.wait(1_000);
    // The process is gone; the directory is not.
    let Stage { directory, app, .. } = stage;
    drop(app);
    let mut stage = Stage::in_directory(60, 20, directory);
    assert!(stage.shown().contains("› half a thought"));
    stage.keys(&["enter"]);
    assert_eq!(
        stage.actions(),
        [UserAction::Submit("half a thought".into())]
    );
    let Stage { directory, .. } = stage;
    let mut stage = Stage::in_directory(60, 20, directory);
    assert!(!stage.shown().contains("half a thought"));
}

#[test]
fn a_search_finds_what_was_typed_before() {
    let mut stage = Stage::new(60, 20);
    for text in ["fix the parser", "run the tests", "write docs"] {
        stage.typed(text);
        stage.keys(&["enter"]);
    }
    stage.actions();
    stage.keys(&["ctrl-r"]);
    stage.typed("the");
    assert!(stage.shown().contains("› run the tests"));
    stage.keys(&["ctrl-r"]);
    assert!(stage.shown().contains("› fix the parser"));
    stage.keys(&["right", "enter"]);
    assert_eq!(
        stage.actions(),
        [UserAction::Submit("fix the parser".into())]
    );
}

#[test]
fn a_long_paste_is_a_chip_and_is_sent_whole() {
    let mut stage = Stage::new(60, 20);
    let long = "x".repeat(100_000);
    stage.app.input(Input::Paste(long.clone()), stage.now);
    assert!(stage.shown().contains("[pasted 100000 characters]"));
    stage.keys(&["enter"]);
    assert_eq!(stage.actions(), [UserAction::Submit(long)]);
    let lines = "line\r\n".repeat(2_000).replace("\r\n", "\n");
    stage.app.input(Input::Paste(lines.clone()), stage.now);
    stage.keys(&["enter"]);
    assert_eq!(stage.actions(), [UserAction::Submit(lines)]);
}

#[test]
fn text_of_a_model_cannot_obey_the_terminal() {
    let mut stage = Stage::new(60, 20);
    stage.message(Message::TurnStarted);
    stage.text("before \u{1b}[2J\u{1b}]0;owned\u{7} after\n\n");
    stage.call("t1", "Bash", "echo \u{1b}[31mred", json!({}));
    stage.result("t1", "Bash", false, "\u{1b}[2Jgone\r\n");
    let shown = stage.shown();
    assert!(shown.contains("before \\u{1b}[2J"), "{shown}");
    assert!(shown.contains("echo \\u{1b}[31mred"), "{shown}");
    let bytes = stage.app.frame(stage.size, stage.now);
    let cells = bytes.buffer.content().iter();
    assert!(
        cells
            .clone()
            .all(|cell| !cell.symbol().contains(char::is_control))
    );
}
