//! What the tests of decisions share: rules, scopes, shorthands.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::path::PathBuf;

use codespar_policy::{
    Access, AccessRequest, Decision, Lifetime, Mode, RepositoryScope, Rule, RuleKind, RuleSet,
    RuleSource, SandboxState, Scope, decide,
};

/// A project in `/w`, with the shell in `/w/sub`.
pub fn scope() -> Scope {
    Scope {
        root: PathBuf::from("/w"),
        cwd: PathBuf::from("/w/sub"),
        home: Some(PathBuf::from("/home/ann")),
        workspace: vec![PathBuf::from("/w"), PathBuf::from("/added")],
        free: vec![PathBuf::from("/tmp/scratch")],
        sandbox_state: SandboxState::Sandboxed,
        repository: RepositoryScope::Project,
        lifetime: Lifetime::Kept,
    }
}

/// Rules from texts such as `allow Bash(ls *)`, one a line.
pub fn rules(lines: &[&str]) -> RuleSet {
    let source = RuleSource::named("settings.json");
    let mut set = RuleSet::default();
    for line in lines {
        let (kind, rule) = line.split_once(' ').unwrap();
        let kind = match kind {
            "allow" => RuleKind::Allow,
            "ask" => RuleKind::Ask,
            "deny" => RuleKind::Deny,
            other => panic!("{other} is no list"),
        };
        set.add(kind, Rule::parse(rule).unwrap(), &source);
    }
    set
}

pub fn command(text: &str) -> Access {
    Access::Command(text.to_owned())
}

/// Without a sandbox, the rules alone decide.
pub fn run(text: &str, rules: &RuleSet, mode: Mode) -> Decision {
    let scope = Scope {
        sandbox_state: SandboxState::SwitchedOff,
        ..scope()
    };
    run_in(text, rules, mode, &scope)
}

/// In a sandbox, what only reads is free.
pub fn run_sandboxed(text: &str, rules: &RuleSet, mode: Mode) -> Decision {
    run_in(text, rules, mode, &scope())
}

pub fn run_in(text: &str, rules: &RuleSet, mode: Mode, scope: &Scope) -> Decision {
    let request = AccessRequest {
        tool: "Bash",
        read_only: false,
        access: &[command(text)],
    };
    decide(&request, rules, mode, scope)
}

pub fn decide_one(tool: &str, access: Access, rules: &RuleSet, mode: Mode) -> Decision {
    let read_only = matches!(access, Access::Read(_));
    let request = AccessRequest {
        tool,
        read_only,
        access: &[access],
    };
    decide(&request, rules, mode, &scope())
}

/// The decision in one word.
pub fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow { .. } => "allow",
        Decision::Ask { .. } => "ask",
        Decision::Deny { .. } => "deny",
    }
}

pub fn reason(decision: &Decision) -> &str {
    match decision {
        Decision::Allow { reason } | Decision::Ask { reason, .. } | Decision::Deny { reason } => {
            reason
        }
    }
}

pub fn suggested(decision: &Decision) -> Vec<String> {
    match decision {
        Decision::Ask { suggested, .. } => suggested.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}
