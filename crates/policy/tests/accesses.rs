//! Decisions about files, addresses, names and tools.
#![allow(clippy::unwrap_used)]

mod common;

use codespar_policy::{
    Access, AccessRequest, Decision, Mode, Rule, RuleKind, RuleSet, RuleSource, decide,
};
use common::{decide_one, reason, rules, scope, suggested, word};
use proptest::prelude::*;
use rstest::rstest;
use url::Url;

fn read(path: &str) -> Access {
    Access::Read(path.into())
}

fn write(path: &str) -> Access {
    Access::Write(path.into())
}

fn fetch(url: &str) -> Access {
    Access::Fetch(Url::parse(url).unwrap())
}

#[rstest]
#[case(Mode::Default, "Read", read("/w/a"), "allow")]
#[case(Mode::Default, "Read", read("/added/a"), "allow")]
#[case(Mode::Default, "Read", read("/tmp/scratch/a"), "allow")]
#[case(Mode::Default, "Read", read("/etc/passwd"), "ask")]
#[case(Mode::Default, "Read", read("/w/../etc/passwd"), "ask")]
#[case(Mode::Default, "Grep", read("/w"), "allow")]
#[case(Mode::Default, "Write", write("/w/a"), "ask")]
#[case(Mode::Default, "Write", write("/tmp/scratch/a"), "allow")]
#[case(Mode::Default, "WebFetch", fetch("https://example.com/"), "ask")]
#[case(Mode::Default, "TodoWrite", Access::Nothing, "allow")]
#[case(Mode::Default, "Skill", Access::Named("x".into()), "allow")]
#[case(Mode::Default, "Agent", Access::Named("Explore".into()), "allow")]
#[case(Mode::Default, "Other", Access::Named("x".into()), "ask")]
#[case(Mode::Default, "mcp__a__b", Access::Nothing, "ask")]
#[case(Mode::AcceptEdits, "Edit", write("/w/a"), "allow")]
#[case(Mode::AcceptEdits, "Edit", write("/etc/a"), "ask")]
#[case(Mode::AcceptEdits, "WebFetch", fetch("https://example.com/"), "ask")]
#[case(Mode::Plan, "Read", read("/w/a"), "allow")]
#[case(Mode::Plan, "Read", read("/etc/passwd"), "ask")]
#[case(Mode::Plan, "Write", write("/w/a"), "deny")]
#[case(Mode::Plan, "Write", write("/tmp/scratch/a"), "deny")]
#[case(Mode::Plan, "Bash", Access::Command("ls".into()), "allow")]
#[case(Mode::Plan, "Bash", Access::Command("make".into()), "deny")]
#[case(Mode::Plan, "TodoWrite", Access::Nothing, "allow")]
#[case(Mode::Plan, "mcp__a__b", Access::Nothing, "deny")]
#[case(Mode::DontAsk, "Read", read("/w/a"), "allow")]
#[case(Mode::DontAsk, "Write", write("/w/a"), "deny")]
#[case(Mode::DontAsk, "WebFetch", fetch("https://example.com/"), "deny")]
#[case(Mode::BypassPermissions, "Write", write("/etc/a"), "allow")]
#[case(Mode::BypassPermissions, "Write", write("/w/.git/config"), "allow")]
#[case(Mode::BypassPermissions, "Bash", Access::Command("rm -rf /".into()), "allow")]
#[case(Mode::BypassPermissions, "mcp__a__b", Access::Nothing, "allow")]
fn without_rules_the_mode_decides(
    #[case] mode: Mode,
    #[case] tool: &str,
    #[case] access: Access,
    #[case] expected: &str,
) {
    let decision = decide_one(tool, access, &RuleSet::default(), mode);
    assert_eq!(word(&decision), expected, "{decision:?}");
}

#[test]
fn plan_mode_says_that_it_is_read_only() {
    let decision = decide_one("Write", write("/w/a"), &rules(&["allow Edit"]), Mode::Plan);
    assert_eq!(
        reason(&decision),
        "plan mode is read-only and Write may change things; leave plan mode to use it"
    );
}

#[rstest]
// Editing rules cover every tool that edits, and imply reading.
#[case("allow Edit(src/**)", "Edit", write("/w/src/a"), "allow")]
#[case("allow Edit(src/**)", "Write", write("/w/src/a"), "allow")]
#[case("allow Edit(/src/**)", "Write", write("/w/src/a"), "allow")]
#[case("allow Edit(src/**)", "Write", write("/w/lib/a"), "ask")]
#[case("allow Edit(src/**)", "Write", write("/w/src/../lib/a"), "ask")]
#[case("allow Edit(//opt/x/**)", "Read", read("/opt/x/a"), "allow")]
#[case("allow Write(//opt/x/**)", "Read", read("/opt/x/a"), "allow")]
#[case("allow Write(src/**)", "Write", write("/w/src/a"), "allow")]
#[case("allow Write(src/**)", "Edit", write("/w/src/a"), "ask")]
#[case("allow Edit", "Write", write("/w/a"), "allow")]
#[case("deny Write", "Edit", write("/w/a"), "ask")]
#[case("deny Write", "Write", write("/w/a"), "deny")]
#[case("deny Edit", "Write", write("/w/a"), "deny")]
#[case("deny Edit", "Read", read("/w/a"), "allow")]
// Reading rules cover every tool that reads, and forbid editing.
#[case("allow Read(~/notes/**)", "Read", read("/home/ann/notes/a"), "allow")]
#[case("allow Read(~/notes/**)", "Grep", read("/home/ann/notes"), "allow")]
#[case("allow Read(~/notes/**)", "Edit", write("/home/ann/notes/a"), "ask")]
#[case("allow Read(//etc/**)", "LS", read("/etc/x"), "allow")]
#[case("deny Read(./secrets/**)", "Read", read("/w/secrets/a"), "deny")]
#[case("deny Read(./secrets/**)", "LS", read("/w/secrets"), "deny")]
#[case("deny Read(./secrets/**)", "Glob", read("/w/secrets/x"), "deny")]
#[case("deny Read(./secrets/**)", "Edit", write("/w/secrets/a"), "deny")]
#[case("deny Read(./secrets/**)", "Write", write("/w/x/../secrets/a"), "deny")]
#[case("deny Read(./secrets/**)", "Read", read("/w/other"), "allow")]
#[case("deny Read(*.env)", "Read", read("/w/deep/er/x.env"), "deny")]
#[case("deny Read(~/.ssh/**)", "Read", read("/home/ann/.ssh/id"), "deny")]
#[case("deny Grep", "Grep", read("/w"), "deny")]
#[case("deny Grep", "Read", read("/w"), "allow")]
#[case("ask Read(./private/**)", "Read", read("/w/private/a"), "ask")]
#[case("ask Edit(src/**)", "Write", write("/w/src/a"), "ask")]
// Protected paths are asked about whatever the rules allow.
#[case("allow Edit", "Edit", write("/w/.git/config"), "ask")]
#[case("allow Edit(.git/**)", "Edit", write("/w/.git/config"), "ask")]
#[case("allow *", "Edit", write("/w/.codespar/settings.json"), "ask")]
#[case("allow Edit(~/**)", "Edit", write("/home/ann/.zshrc"), "ask")]
#[case("deny Edit(.git/**)", "Edit", write("/w/.git/config"), "deny")]
#[case("allow Read", "Read", read("/w/.git/config"), "allow")]
// Addresses.
#[case("allow WebFetch", "WebFetch", fetch("https://a.b/"), "allow")]
#[case(
    "allow WebFetch(domain:example.com)",
    "WebFetch",
    fetch("https://EXAMPLE.com:8443/x"),
    "allow"
)]
#[case(
    "allow WebFetch(domain:example.com)",
    "WebFetch",
    fetch("https://example.com./x"),
    "allow"
)]
#[case(
    "allow WebFetch(domain:example.com)",
    "WebFetch",
    fetch("https://a.example.com/"),
    "ask"
)]
#[case(
    "allow WebFetch(domain:example.com)",
    "WebFetch",
    fetch("https://example.com.evil.net/"),
    "ask"
)]
#[case(
    "allow WebFetch(domain:example.com)",
    "WebFetch",
    fetch("https://example.com@evil.net/"),
    "ask"
)]
#[case(
    "allow WebFetch(domain:*.example.com)",
    "WebFetch",
    fetch("https://a.b.example.com/"),
    "allow"
)]
#[case(
    "allow WebFetch(domain:*.example.com)",
    "WebFetch",
    fetch("https://example.com/"),
    "ask"
)]
#[case(
    "allow WebFetch(domain:*.example.com)",
    "WebFetch",
    fetch("https://evilexample.com/"),
    "ask"
)]
#[case(
    "deny WebFetch(domain:example.com)",
    "WebFetch",
    fetch("http://example.com/"),
    "deny"
)]
#[case("ask WebFetch", "WebFetch", fetch("http://example.com/"), "ask")]
// Names and tools.
#[case("deny Agent(Explore)", "Task", Access::Named("Explore".into()), "deny")]
#[case("deny Task(Explore)", "Agent", Access::Named("Explore".into()), "deny")]
#[case("deny Agent(Explore)", "Agent", Access::Named("Plan".into()), "allow")]
#[case("ask Skill(deploy)", "Skill", Access::Named("deploy".into()), "ask")]
#[case("deny Skill(deploy*)", "Skill", Access::Named("deploy-all".into()), "deny")]
#[case("allow mcp__a__b", "mcp__a__b", Access::Nothing, "allow")]
#[case("allow mcp__a", "mcp__a__b", Access::Nothing, "allow")]
#[case("allow mcp__a__*", "mcp__a__b", Access::Nothing, "allow")]
#[case("allow mcp__a", "mcp__ab__c", Access::Nothing, "ask")]
#[case("deny mcp__a", "mcp__a__b", Access::Nothing, "deny")]
#[case("allow Read", "mcp__a__b", read("/w/a"), "ask")]
#[case("deny *", "TodoWrite", Access::Nothing, "deny")]
#[case("allow *", "mcp__a__b", Access::Nothing, "allow")]
fn a_rule_decides_what_it_speaks_of(
    #[case] rule: &str,
    #[case] tool: &str,
    #[case] access: Access,
    #[case] expected: &str,
) {
    let decision = decide_one(tool, access, &rules(&[rule]), Mode::Default);
    assert_eq!(word(&decision), expected, "{decision:?}");
}

#[test]
fn a_reason_names_the_rule_and_its_source() {
    let mut rules = RuleSet::default();
    rules.add(
        RuleKind::Deny,
        Rule::parse("Read(./secrets/**)").unwrap(),
        &RuleSource::named(".codespar/settings.json"),
    );
    assert_eq!(
        decide_one(
            "Edit",
            write("/w/secrets/a"),
            &rules,
            Mode::BypassPermissions
        ),
        Decision::Deny {
            reason: "denied by `Read(./secrets/**)` in .codespar/settings.json".to_owned()
        }
    );
    assert_eq!(
        rules
            .read_denied("/w/secrets/a".as_ref(), &scope())
            .as_deref(),
        Some("denied by `Read(./secrets/**)` in .codespar/settings.json")
    );
    assert_eq!(rules.read_denied("/w/a".as_ref(), &scope()), None);
}

#[test]
fn relative_paths_start_at_the_base_of_their_source() {
    let mut rules = RuleSet::default();
    let source = RuleSource {
        name: "--allowedTools".to_owned(),
        base: Some("/w/sub".into()),
    };
    rules.add(
        RuleKind::Allow,
        Rule::parse("Edit(src/**)").unwrap(),
        &source,
    );
    let decided = |path| word(&decide_one("Edit", write(path), &rules, Mode::Default));
    assert_eq!(decided("/w/sub/src/a"), "allow");
    assert_eq!(decided("/w/src/a"), "ask");
}

#[test]
fn the_strictest_access_wins() {
    let rules = rules(&["allow Edit(src/**)", "deny Edit(secret)"]);
    let decided = |access: &[Access]| {
        let request = AccessRequest {
            tool: "MultiEdit",
            read_only: false,
            access,
        };
        decide(&request, &rules, Mode::Default, &scope())
    };
    assert_eq!(
        word(&decided(&[write("/w/src/a"), write("/w/src/b")])),
        "allow"
    );
    let asked = decided(&[write("/w/src/a"), write("/w/lib/b"), write("/w/doc/c")]);
    assert_eq!(suggested(&asked), ["Edit(lib/**)", "Edit(doc/**)"]);
    assert_eq!(
        reason(&asked),
        "no rule allows writing /w/lib/b; no rule allows writing /w/doc/c"
    );
    let guarded = decided(&[write("/w/lib/b"), write("/w/.git/x")]);
    assert_eq!(suggested(&guarded), Vec::<String>::new());
    assert_eq!(
        word(&decided(&[write("/w/lib/b"), write("/w/secret")])),
        "deny"
    );
}

#[test]
fn a_call_that_names_nothing_is_decided_by_its_tool() {
    let request = AccessRequest {
        tool: "mcp__a__b",
        read_only: true,
        access: &[],
    };
    let decision = decide(&request, &RuleSet::default(), Mode::Default, &scope());
    assert_eq!(suggested(&decision), ["mcp__a__b"]);
}

#[test]
fn a_tool_of_a_server_is_not_read_only_in_plan_mode_because_it_says_so() {
    for access in [&[][..], &[read("/w/a")][..]] {
        let request = AccessRequest {
            tool: "mcp__a__b",
            read_only: true,
            access,
        };
        let decision = decide(&request, &rules(&["allow mcp__a"]), Mode::Plan, &scope());
        assert_eq!(word(&decision), "deny", "{decision:?}");
    }
}

#[rstest]
#[case("Write", write("/w/src/deep/a.rs"), "Edit(src/deep/**)")]
#[case("Write", write("/w/README.md"), "Edit(/README.md)")]
#[case("Write", write("/w/app/[id]/page.tsx"), "Edit(app/[[]id[]]/**)")]
#[case("Write", write("/opt/x/a"), "Edit(//opt/x/**)")]
#[case("Write", write("/home/ann/a"), "Edit(//home/ann/a)")]
#[case("Read", read("/etc/ssl/a"), "Read(//etc/ssl/**)")]
#[case("Grep", read("/usr/include"), "Read(//usr/include/**)")]
#[case("Read", read("/home/ann/a"), "Read(//home/ann/a)")]
#[case(
    "WebFetch",
    fetch("https://docs.example.com/a"),
    "WebFetch(domain:docs.example.com)"
)]
#[case("WebFetch", fetch("http://10.0.0.1:80/a"), "WebFetch(domain:10.0.0.1)")]
#[case("mcp__a__b", Access::Nothing, "mcp__a__b")]
#[case("Other", Access::Named("x".into()), "Other(x)")]
fn what_is_offered_permits_it_from_then_on(
    #[case] tool: &str,
    #[case] access: Access,
    #[case] expected: &str,
) {
    let asked = decide_one(tool, access.clone(), &RuleSet::default(), Mode::Default);
    assert_eq!(suggested(&asked), [expected]);
    let rules = rules(&[&format!("allow {expected}")]);
    assert_eq!(
        word(&decide_one(tool, access, &rules, Mode::Default)),
        "allow"
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_offered_path_rule_permits_the_path(path in "/[a-z\\[\\]{}*?~ ()!.,\\\\/-]{1,30}") {
        for (tool, access) in [("Write", write(&path)), ("Read", read(&path))] {
            let mut set = RuleSet::default();
            if let Decision::Ask { suggested, .. } = decide_one(tool, access.clone(), &set, Mode::Default) {
                let offered = !suggested.is_empty();
                for rule in suggested {
                    set.add(RuleKind::Allow, rule, &RuleSource::named("always"));
                }
                if offered {
                    let again = decide_one(tool, access, &set, Mode::Default);
                    prop_assert_eq!(word(&again), "allow");
                }
            }
        }
    }

    #[test]
    fn any_text_is_a_rule_or_an_error_that_quotes_it(text in any::<String>()) {
        match Rule::parse(&text) {
            Ok(rule) => prop_assert_eq!(rule.to_string(), text.trim()),
            Err(error) => prop_assert_eq!(error.text, text.trim()),
        }
    }
}
