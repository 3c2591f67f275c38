//! Rules and shell commands: the first line is a rule, the rest a command. A command that is denied
//! stays denied when a rule that allows it is added.
#![no_main]

use codespar_policy::{
    Access, Decision, Lifetime, Mode, RepositoryScope, AccessRequest, Rule, RuleKind, RuleSet, RuleSource,
    Scope, SandboxState, decide,
};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (rule, command) = text.split_once('\n').unwrap_or(("Bash", text));
    let Ok(rule) = Rule::parse(rule) else { return };
    let scope = Scope {
        root: "/project".into(),
        cwd: "/project".into(),
        home: Some("/home/person".into()),
        workspace: vec!["/project".into()],
        free: Vec::new(),
        sandbox_state: SandboxState::Sandboxed,
        repository: RepositoryScope::Project,
        lifetime: Lifetime::Kept,
    };
    let access = [Access::Command(command.to_owned())];
    let request = AccessRequest {
        tool: "Bash",
        read_only: false,
        access: &access,
    };
    let source = RuleSource::named("the fuzzer");
    let mut rules = RuleSet::default();
    rules.add(RuleKind::Deny, rule.clone(), &source);
    let denied = matches!(
        decide(&request, &rules, Mode::Default, &scope),
        Decision::Deny { .. }
    );
    rules.add(RuleKind::Allow, rule, &source);
    let still = matches!(
        decide(&request, &rules, Mode::Default, &scope),
        Decision::Deny { .. }
    );
    assert_eq!(denied, still);
});
