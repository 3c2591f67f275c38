//! The grammar of commands: what people write, and what it means.

#![allow(clippy::panic, reason = "these are tests")]

use codespar_channels::{
    ChatCommand, ChatRequest, Names, NotACommand, PullRef, RequestOptions, StateFilter, Verb,
    mentioned, parse,
};
use codespar_protocol::MergeStrategy;
use proptest::prelude::*;

/// A repository with the branches `main` and `release/2`, and a directory `src/auth`.
struct Here;

impl Names for Here {
    fn is_branch(&self, name: &str) -> bool {
        ["main", "release/2"].contains(&name)
    }
    fn is_model(&self, name: &str) -> bool {
        ["haiku", "sonnet", "opus"].contains(&name)
    }
    fn is_path(&self, path: &str) -> bool {
        path == "src/auth"
    }
}

fn command(text: &str) -> ChatCommand {
    request(text).command
}

fn request(text: &str) -> ChatRequest {
    parse(text, &Here).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn mistake(text: &str) -> String {
    match parse(text, &Here) {
        Err(NotACommand::Malformed(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

fn is_prose(text: &str) -> bool {
    matches!(parse(text, &Here), Err(NotACommand::Prose { .. }))
}

fn pull(number: u64) -> PullRef {
    PullRef {
        number,
        repository: None,
        server: None,
    }
}

fn dev(instruction: &str) -> ChatCommand {
    ChatCommand::Dev {
        instruction: instruction.to_owned(),
    }
}

#[test]
fn a_pull_request_is_recognised_in_every_form_people_write() {
    for text in [
        "PR #42",
        "pr #42",
        "PR 42",
        "PR#42",
        "#42",
        "42",
        "pull 42",
        "pull request #42",
        "Pull-Request 42",
        "#42,",
    ] {
        assert_eq!(
            command(&format!("review {text}")),
            ChatCommand::Review { pull: pull(42) },
            "{text}"
        );
    }
    let url = "https://github.com/acme/api/pull/42";
    for text in [
        url.to_owned(),
        format!("<{url}>"),
        format!("{url}/files?w=1#diff-0"),
    ] {
        let expected = PullRef {
            number: 42,
            repository: Some("acme/api".into()),
            server: Some("https://github.com".into()),
        };
        assert_eq!(
            command(&format!("review {text}")),
            ChatCommand::Review { pull: expected },
            "{text}"
        );
    }
    let named = PullRef {
        repository: Some("acme/api".into()),
        ..pull(42)
    };
    assert_eq!(
        command("review acme/api#42"),
        ChatCommand::Review { pull: named }
    );
}

#[test]
fn merging_takes_a_strategy_as_a_word() {
    for (text, strategy) in [
        ("merge PR #1 squash", Some(MergeStrategy::Squash)),
        ("Merge pr 1 REBASE", Some(MergeStrategy::Rebase)),
        ("merge #1 merge", Some(MergeStrategy::Merge)),
        ("merge 1", None),
    ] {
        assert_eq!(
            command(text),
            ChatCommand::Merge {
                pull: pull(1),
                strategy
            },
            "{text}"
        );
    }
    assert!(mistake("merge PR #1 sqash").contains("`sqash` is no way to merge"));
    assert!(mistake("merge PR #1 squash now").contains("`now` is not expected here"));
    assert!(mistake("merge PR").contains("the number of the pull request is missing"));
    assert!(mistake("merge").contains("usage: merge PR #n [squash|rebase|merge]"));
    assert!(mistake("merge PR #x").contains("`#x` is not the number"));
    assert!(mistake("merge PR #0").contains("`#0` is not the number"));
    assert!(mistake("merge PR #1 with opus").contains("`merge` takes no model"));
    assert!(mistake("merge https://github.com/acme/api/issues/4").contains("is not the number"));
}

#[test]
fn instructions_keep_their_verb_but_for_instruct() {
    assert_eq!(
        command("fix the auth timeout in login.ts — sessions expire"),
        dev("fix the auth timeout in login.ts — sessions expire")
    );
    assert_eq!(command("Fix: the timeout"), dev("Fix the timeout"));
    assert_eq!(command("instruct use tabs"), dev("use tabs"));
    assert_eq!(
        command("add a health check\n  at /api/health"),
        dev("add a health check\n  at /api/health")
    );
    assert!(mistake("fix").contains("usage: fix <text>"));
    assert!(mistake("fix in acme/api").contains("usage: fix <text>"));
}

#[test]
fn options_are_read_at_the_ends_and_only_if_they_are_options() {
    let all = RequestOptions {
        repository: Some("acme/api".into()),
        branch: Some("release/2".into()),
        model: Some("opus".into()),
    };
    for text in [
        "fix the timeout in acme/api on release/2 with opus",
        "fix the timeout with opus on release/2 in acme/api.",
        "in acme/api, fix the timeout on release/2 with opus",
        "fix in acme/api on release/2: the timeout with opus",
        "with opus in acme/api fix on release/2 the timeout",
    ] {
        let expected = ChatRequest {
            command: dev("fix the timeout"),
            options: all.clone(),
        };
        assert_eq!(request(text), expected, "{text}");
    }
    for text in [
        "fix the crash on startup",
        "fix the timeout with care",
        "fix the timeout in src/auth",
        "fix the timeout in login.ts",
        "fix what happens in acme/api when it is slow",
        "fix the build on main again",
    ] {
        let expected = ChatRequest {
            command: dev(text),
            options: RequestOptions::default(),
        };
        assert_eq!(request(text), expected, "{text}");
    }
    let review = request("review PR #7 in acme/api with haiku");
    assert_eq!(review.options.repository.as_deref(), Some("acme/api"));
    assert_eq!(review.options.model.as_deref(), Some("haiku"));
    assert_eq!(
        request("prs all in acme/api").options.repository.as_deref(),
        Some("acme/api")
    );
    assert!(mistake("ask why in acme/api").contains("`ask` takes no repository"));
}

#[test]
fn the_other_commands_are_read() {
    let id = || "a-1f3c".to_owned();
    for (text, expected) in [
        (
            "ask what is a monad?",
            ChatCommand::Ask {
                question: "what is a monad?".into(),
            },
        ),
        (
            "plan single sign-on",
            ChatCommand::Plan {
                feature: "single sign-on".into(),
            },
        ),
        ("approve", ChatCommand::Approve { steps: vec![] }),
        (
            "approve 1, 3-5 and 2",
            ChatCommand::Approve {
                steps: vec![1, 2, 3, 4, 5],
            },
        ),
        ("watch PR #3", ChatCommand::Watch { pull: pull(3) }),
        ("watch PR #3 on", ChatCommand::Watch { pull: pull(3) }),
        ("watch #3 OFF", ChatCommand::Unwatch { pull: pull(3) }),
        ("resolve PR #3", ChatCommand::Resolve { pull: pull(3) }),
        ("schedules", ChatCommand::Schedules),
        ("unschedule s1", ChatCommand::Unschedule { id: "s1".into() }),
        ("prs", ChatCommand::PullRequests { state: None }),
        (
            "PRs Closed",
            ChatCommand::PullRequests {
                state: Some(StateFilter::Closed),
            },
        ),
        ("status", ChatCommand::Status { id: None }),
        ("status a-1f3c", ChatCommand::Status { id: Some(id()) }),
        ("logs a-1f3c", ChatCommand::Logs { id: id() }),
        ("cost", ChatCommand::Cost { id: None }),
        ("stop", ChatCommand::Stop { id: None }),
        ("stop a-1f3c", ChatCommand::Stop { id: Some(id()) }),
        ("retry a-1f3c", ChatCommand::Retry { id: id() }),
        (
            "link Acme/API",
            ChatCommand::Link {
                repository: "Acme/API".into(),
            },
        ),
        ("unlink", ChatCommand::Unlink),
        ("whoami", ChatCommand::Whoami),
        ("help", ChatCommand::Help { about: None }),
        (
            "help merge",
            ChatCommand::Help {
                about: Some(Verb::Merge),
            },
        ),
    ] {
        assert_eq!(command(text), expected, "{text}");
    }
    assert!(mistake("logs").contains("the id is missing"));
    assert!(mistake("link").contains("the repository is missing"));
    assert!(mistake("link api").contains("`api` is not owner/repo"));
    assert!(mistake("prs green").contains("`green` is no state"));
}

#[test]
fn a_schedule_has_a_time_and_a_command() {
    let expected = ChatCommand::Schedule {
        when: "every weekday at 9:00".into(),
        request: Box::new(ChatRequest {
            command: dev("fix the lint warnings"),
            options: RequestOptions {
                model: Some("haiku".into()),
                ..RequestOptions::default()
            },
        }),
        line: "fix the lint warnings with haiku".into(),
    };
    assert_eq!(
        command("schedule every weekday at 9:00 fix the lint warnings with haiku"),
        expected
    );
    assert!(mistake("schedule fix the lint").contains("a time and a command"));
    assert!(mistake("schedule every day").contains("a time and a command"));
    assert!(mistake("schedule daily schedule daily fix it").contains("cannot contain another"));
    assert!(mistake("schedule daily merge PR").contains("the number of the pull request"));
}

#[test]
fn sentences_are_not_commands() {
    for text in [
        "",
        "hello",
        "why does the build fail?",
        "merge the two functions in a.rs",
        "review my approach",
        "status of the build",
        "stop using tabs",
        "help me understand the parser",
        "approve of this?",
        "link the two pages",
        "watch out for races",
    ] {
        assert!(is_prose(text), "{text}: {:?}", parse(text, &Here));
    }
    let nearest = |text: &str| match parse(text, &Here) {
        Err(NotACommand::Prose { nearest }) => nearest,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(nearest("mrege PR #1"), Some(Verb::Merge));
    assert_eq!(nearest("reveiw PR #1"), Some(Verb::Review));
    assert_eq!(nearest("what is this?"), None);
}

#[test]
fn only_a_mention_at_the_beginning_counts() {
    assert_eq!(mentioned("@codespar merge PR #1"), Some("merge PR #1"));
    assert_eq!(mentioned("  @CodeSpar, help"), Some("help"));
    assert_eq!(mentioned("@codespar"), Some(""));
    assert_eq!(mentioned("@codespar: status"), Some("status"));
    for text in [
        "",
        "@",
        "@codesparrow fix",
        "@codespar-bot fix",
        "@codespar/x",
        "hi @codespar",
        "codespar fix",
        "@codespa\u{301}r",
    ] {
        assert_eq!(mentioned(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC{0,80}") {
        let _ = mentioned(&text);
        let _ = parse(&text, &Here);
    }

    #[test]
    fn words_of_the_grammar_in_any_order_are_read_without_a_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "fix", "merge", "PR", "#1", "1", "in", "on", "with", "acme/api", "main", "opus",
            "schedule", "daily", "squash", "watch", "off", "help", "approve", "1-3", ",", ":",
            "<https://github.com/a/b/pull/3>", "https://", "#", "status", "@codespar",
        ]), 0..9)
    ) {
        let _ = parse(&words.join(" "), &Here);
    }

    /// What is not an option stays, whatever it is.
    #[test]
    fn an_instruction_is_kept_as_it_was_written(text in "[a-zA-Z0-9,.'äé ]{1,60}[a-z]") {
        let text = text.trim();
        prop_assume!(!text.split_whitespace().any(|word| {
            ["in", "on", "with"].contains(&word.to_lowercase().as_str())
        }));
        prop_assert_eq!(command(&format!("fix {text}")), dev(&format!("fix {text}")));
    }

    #[test]
    fn case_does_not_matter(upper in any::<bool>(), index in 0..Verb::ALL.len()) {
        let verb = Verb::ALL[index].as_str();
        let typed = if upper { verb.to_uppercase() } else { verb.to_owned() };
        prop_assert_eq!(Verb::find(&typed), Some(Verb::ALL[index]));
    }
}
