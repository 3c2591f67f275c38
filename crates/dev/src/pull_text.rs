//! The words of a commit and a pull request.

use std::fmt::Write as _;

use codespar_protocol::{ChangeSet, Cost, FileChange, TaskId};

use crate::{DevOrder, Evidence, Risk};

const MOST_TITLE: usize = 72;
/// Files that are listed.
const MOST_FILES: usize = 200;

/// How the change was proved, for the text.
pub(crate) enum Verified<'a> {
    /// By this.
    By(&'a Evidence),
    /// Not at all, for this reason.
    Not(&'a str),
}

/// What a pull request is written from.
pub(crate) struct PullText<'a> {
    pub(crate) order: &'a DevOrder,
    pub(crate) task: &'a TaskId,
    pub(crate) summary: &'a str,
    pub(crate) changes: &'a ChangeSet,
    pub(crate) verified: Verified<'a>,
    pub(crate) risk: &'a Risk,
    pub(crate) model: &'a str,
    pub(crate) cost: Cost,
    pub(crate) is_simulated: bool,
    /// Files that were read.
    pub(crate) located: &'a [String],
}

/// At most 72 characters, cut between words.
pub(crate) fn shorten(title: &str) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.chars().count() <= MOST_TITLE {
        return title;
    }
    let head: String = title.chars().take(MOST_TITLE - 1).collect();
    let cut = head
        .rfind(' ')
        .filter(|at| *at > MOST_TITLE / 2)
        .unwrap_or(head.len());
    format!("{}…", head[..cut].trim_end_matches([',', ';', ':', ' ']))
}

/// The commit's message with its trailers.
/// The first line of an instruction, short enough for a list.
pub fn headline(order: &DevOrder) -> String {
    shorten(order.subject())
}

pub(crate) fn commit_message(order: &DevOrder, task: &TaskId, key: &str) -> String {
    // A trailer is one line, whatever a name is made of.
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "codespar: {}\n\nCodeSpar-Task: {task}\nRequested-by: {}\nCodeSpar-Key: {key}\n",
        shorten_to(order.subject(), 200),
        line(&order.requested_by),
    )
}

fn shorten_to(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

impl PullText<'_> {
    /// The body, at most this many characters.
    pub(crate) fn body(&self, most: usize) -> String {
        let whole = self.render(usize::MAX, usize::MAX);
        if whole.chars().count() <= most {
            return whole;
        }
        // The instruction, the summary and the output can be long; the facts are short.
        let parts = most / 4;
        let cut = self.render(parts.saturating_sub(200), parts / 2);
        shorten_to(&cut, most)
    }

    fn render(&self, text_limit: usize, output_limit: usize) -> String {
        let mut out = String::new();
        self.render_into(&mut out, text_limit, output_limit)
            .unwrap_or_default();
        out
    }

    fn render_into(
        &self,
        out: &mut String,
        text_limit: usize,
        output_limit: usize,
    ) -> std::fmt::Result {
        if self.is_simulated {
            writeln!(
                out,
                "> **Simulated**: no model is configured, so no file was changed. The files below \
                 are those that were found and read.\n"
            )?;
        }
        writeln!(out, "## Task\n")?;
        let task: Vec<String> = self
            .order
            .instruction
            .trim()
            .lines()
            .map(|line| format!("> {line}"))
            .collect();
        writeln!(out, "{}", shorten_to(&task.join("\n"), text_limit))?;
        writeln!(
            out,
            "\n## Changes\n\n{}\n",
            shorten_to(self.summary.trim(), text_limit)
        )?;
        writeln!(out, "## Files\n")?;
        if self.changes.is_empty() {
            writeln!(out, "None is changed.")?;
        }
        for path in self.located.iter().filter(|_| self.is_simulated) {
            writeln!(out, "- `{path}` (read)")?;
        }
        self.files(out, text_limit)?;
        writeln!(out, "\n## Verification\n")?;
        self.verification(out, output_limit)?;
        writeln!(out, "\n## Risk: {}\n", self.risk.level)?;
        for reason in &self.risk.reasons {
            writeln!(out, "- {reason}")?;
        }
        let cost = match self.cost {
            Cost::Known(usd) => usd.to_string(),
            Cost::Unknown(usd) => format!("at least {usd} (a model without a known price)"),
        };
        writeln!(
            out,
            "\n---\nMade by CodeSpar for {} · task `{}` · {} · {cost}",
            self.order.requested_by, self.task, self.model
        )
    }

    /// Not more than fits: what comes after it matters more.
    fn files(&self, out: &mut String, text_limit: usize) -> std::fmt::Result {
        let mut room = text_limit;
        for (index, change) in self.changes.0.iter().enumerate() {
            let line = match change {
                FileChange::Moved { from, to, .. } => format!("- `{from}` → `{to}` (moved)"),
                _ => format!("- `{}` ({})", change.path(), change.word()),
            };
            room = room.saturating_sub(line.chars().count() + 1);
            if index == MOST_FILES || room == 0 {
                return writeln!(out, "- and {} more", self.changes.0.len() - index);
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn verification(&self, out: &mut String, output_limit: usize) -> std::fmt::Result {
        let evidence = match self.verified {
            Verified::By(evidence) => evidence,
            Verified::Not(reason) => return writeln!(out, "Not verified: {reason}"),
        };
        writeln!(out, "`{}`\n", evidence.command)?;
        writeln!(out, "| | result | duration |\n|---|---|---|")?;
        for (name, run) in [("before", &evidence.before), ("after", &evidence.after)] {
            let mark = if run.passed() { "✅" } else { "❌" };
            let cached = if run.from_cache {
                " (known from an earlier run)"
            } else {
                ""
            };
            writeln!(
                out,
                "| {name} | {mark} {}{cached} | {:.1} s |",
                run.words(),
                run.duration_ms as f64 / 1000.0
            )?;
        }
        let blocked = evidence.blocked();
        if !blocked.is_empty() {
            writeln!(out, "\nHosts that the tests were refused:\n")?;
            for host in blocked {
                writeln!(out, "- blocked: `{host}`")?;
            }
        }
        if !evidence.after.passed() {
            let tail = &evidence.after.tail;
            let from = tail.ceil_char_boundary(tail.len().saturating_sub(output_limit));
            // A fence that the output cannot close.
            writeln!(
                out,
                "\n**The tests do not pass with this change.**{}\n\n~~~~~~~~\n{}\n~~~~~~~~",
                match evidence.after.failed_like(&evidence.before) {
                    true => " They failed in the same way before it.",
                    false => "",
                },
                &tail[from..]
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use codespar_protocol::{RepoPath, TaskType, Usd};

    use super::*;
    use crate::{
        DevLimits, Engine, Leave, OnFailure, RepositoryRef, RiskLevel, TestRun, VerifyChoice,
    };

    fn run(exit_code: i32) -> TestRun {
        TestRun {
            exit_code: Some(exit_code),
            problem: None,
            counts: None,
            duration_ms: 1,
            tail: "x".repeat(6_000),
            blocked: vec!["evil.example".to_owned()],
            from_cache: false,
        }
    }

    #[test]
    fn a_body_that_is_too_long_loses_words_and_no_facts() {
        let order = DevOrder {
            instruction: "\n.".repeat(60_000),
            repository: RepositoryRef::Local { path: "/r".into() },
            base: None,
            pull_request: None,
            images: Vec::new(),
            verify: VerifyChoice::Detect,
            on_failure: OnFailure::Draft,
            draft: Leave::Withheld,
            protected: Leave::Withheld,
            protected_globs: None,
            max_budget: None,
            requested_by: "Ada".to_owned(),
            engine: Engine::Generate,
            task_model: "m".to_owned(),
            picker_model: "m".to_owned(),
            limits: DevLimits::default(),
            resumes: Vec::new(),
        };
        let changes = (0..300).map(|number| FileChange::Deleted {
            path: RepoPath::new(&format!("{}/{number}", "ä".repeat(400))).unwrap(),
        });
        let evidence = Evidence {
            command: "make test".to_owned(),
            before: run(0),
            after: run(1),
        };
        let risk = Risk {
            level: RiskLevel::High,
            reasons: vec!["the tests fail".to_owned()],
        };
        let text = PullText {
            order: &order,
            task: &TaskId::new(TaskType::LocalWorkflow),
            summary: &"long words ".repeat(10_000),
            changes: &ChangeSet(changes.collect()),
            verified: Verified::By(&evidence),
            risk: &risk,
            model: "m",
            cost: Cost::Known(Usd::ZERO),
            is_simulated: false,
            located: &[],
        };
        let body = text.body(65_536);
        assert!(body.chars().count() <= 65_536);
        for words in [
            "## Task",
            "## Changes",
            " more\n",
            "- blocked: `evil.example`",
            "**The tests do not pass with this change.**",
            "## Risk: high\n\n- the tests fail",
            "Made by CodeSpar for Ada",
        ] {
            assert!(body.contains(words), "{words}");
        }
    }
}
