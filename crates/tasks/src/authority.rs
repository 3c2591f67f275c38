//! Authority as plain data, and the rules and modes it stands for.
//!
//! An authority is stored with its task as strings, because it is read by later versions and other
//! processes. A process that runs a task of another one combines both sides: allow rules and the
//! mode come from the task, deny and ask rules from both, and of the two modes the stricter counts.
//! So a task can lose permissions on its way to a worker and never gain any.

use codespar_policy::{Mode, Rule, RuleKind, RuleSet, RuleSource};
use codespar_protocol::{Authority, RuleList, RuleText};

/// Rules as they are kept with a task.
pub fn rule_texts(rules: &RuleSet) -> Vec<RuleText> {
    let text = |(kind, rule, source): (RuleKind, &Rule, &RuleSource)| RuleText {
        list: match kind {
            RuleKind::Allow => RuleList::Allow,
            RuleKind::Ask => RuleList::Ask,
            RuleKind::Deny => RuleList::Deny,
        },
        rule: rule.to_string(),
        source: source.name.clone(),
        base: source.base.clone(),
    };
    rules.iter().map(text).collect()
}

/// The rules of a task that another process made: its own, and what the running process forbids or
/// asks about. What the running process allows does not count. A rule that cannot be parsed is an
/// error and fails the task: leaving out a deny rule would widen it.
pub fn narrowed_rules(authority: &Authority, process: &RuleSet) -> Result<RuleSet, String> {
    let mut rules = RuleSet::default();
    for text in &authority.rules {
        let rule = Rule::parse(&text.rule)
            .map_err(|error| format!("a rule of the task's authority cannot be read: {error}"))?;
        let kind = match text.list {
            RuleList::Allow => RuleKind::Allow,
            RuleList::Ask => RuleKind::Ask,
            RuleList::Deny => RuleKind::Deny,
        };
        let source = RuleSource {
            name: text.source.clone(),
            base: text.base.clone(),
        };
        rules.add(kind, rule, &source);
    }
    for (kind, rule, source) in process.iter() {
        if kind != RuleKind::Allow {
            rules.add(kind, rule.clone(), source);
        }
    }
    Ok(rules)
}

/// The mode of a task: that of its maker or that of the running process, whichever is stricter.
pub fn narrowed_mode(authority: &Authority, process: Mode) -> Result<Mode, String> {
    let own: Mode = authority
        .mode
        .parse()
        .map_err(|error| format!("the task's authority cannot be read: {error}"))?;
    Ok(own.stricter(process))
}

#[cfg(test)]
mod tests {
    use codespar_protocol::SessionId;

    use super::*;

    fn rules(all: &[(RuleKind, &str)]) -> RuleSet {
        let mut rules = RuleSet::default();
        for (kind, text) in all {
            let source = RuleSource {
                name: "settings".into(),
                base: Some("/p".into()),
            };
            rules.add(*kind, Rule::parse(text).unwrap(), &source);
        }
        rules
    }

    fn authority(mode: &str, rules: Vec<RuleText>) -> Authority {
        Authority {
            session: None,
            tree: SessionId::new(),
            project_root: "/p".into(),
            mode: mode.into(),
            rules,
            extra_dirs: Vec::new(),
            max_budget_usd: None,
            repository: None,
            remote: None,
            user: None,
            trace: None,
        }
    }

    #[test]
    fn a_running_process_adds_what_it_forbids_and_not_what_it_allows() {
        let own = [
            (RuleKind::Allow, "Bash(git log *)"),
            (RuleKind::Deny, "Read(.env)"),
        ];
        let task = authority("default", rule_texts(&rules(&own)));
        let process = rules(&[
            (RuleKind::Allow, "Bash"),
            (RuleKind::Ask, "Edit"),
            (RuleKind::Deny, "WebFetch"),
        ]);
        let expected = rules(&[
            own[0],
            own[1],
            (RuleKind::Ask, "Edit"),
            (RuleKind::Deny, "WebFetch"),
        ]);
        let narrowed = narrowed_rules(&task, &process).unwrap();
        assert_eq!(rule_texts(&narrowed), rule_texts(&expected));
    }

    #[test]
    fn the_mode_of_a_task_is_never_widened() {
        let mode = |own: &str, process| narrowed_mode(&authority(own, Vec::new()), process);
        assert_eq!(mode("default", Mode::BypassPermissions), Ok(Mode::Default));
        assert_eq!(mode("plan", Mode::AcceptEdits), Ok(Mode::Plan));
        assert_eq!(mode("bypassPermissions", Mode::Plan), Ok(Mode::Plan));
        assert!(mode("anything", Mode::Default).is_err());
    }
}
