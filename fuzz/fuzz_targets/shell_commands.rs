//! Shell commands without rules: what is free in a sandbox only reads, and stays free or not free
//! behind another free command.
#![no_main]

use codespar_policy::{
    Access, Decision, Lifetime, Mode, RepositoryScope, AccessRequest, RuleSet, Scope, SandboxState, decide,
};

/// Options and operators that write or run something, in a text without quotes.
const HAZARDS: &[&str] = &[
    "-exec", "-execdir", "-ok", "-delete", "-fprintf", "-fprint", "-fls", "--output", "--pre",
    "--ext-diff", "--open-files-in-pager", "--compress-program", "-okdir", "--hostname-bin",
];

libfuzzer_sys::fuzz_target!(|command: &str| {
    if !is_free(command) {
        let starts_plain = command.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        assert!(!starts_plain || !is_free(&format!("ls; {command}")), "{command:?}");
        return;
    }
    if command.contains(['\'', '"', '\\', '#']) {
        return;
    }
    assert!(!command.contains('`') && !command.contains("$(") && !command.contains("<("));
    let words = || command.split(|c: char| c.is_whitespace() || "|;&".contains(c));
    for word in words() {
        let name = word.split('=').next().unwrap_or_default();
        let is_hazard = HAZARDS.contains(&name);
        // Behind `--` it is the name of a file.
        assert!(!is_hazard || words().any(|word| word == "--"), "{command:?}");
    }
    for (at, _) in command.match_indices('>') {
        let to = command[at + 1..].trim_start_matches(['>', '|']).trim_start();
        assert!(to.starts_with('&') || to.starts_with("/dev/null"), "{command:?}");
    }
});

fn is_free(command: &str) -> bool {
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
    let decision = decide(&request, &RuleSet::default(), Mode::Default, &scope);
    matches!(decision, Decision::Allow { .. })
}
