//! The words of a pull request.
//!
//! The body has fixed sections in the order in which a reviewer asks: what changed, for which
//! instruction, in which files, how it was tested, how much care it needs. What tests print is
//! never part of it, only names that consist of plain words and counts: output may hold anything.

use std::fmt::Write as _;

use codespar_change::verify::{Evidence, NewTests};
use codespar_protocol::{ChangeSet, Cost, DevOrder, FileChange, TaskId};

use crate::{
    Risk, Touched,
    markdown::{self, code},
};

/// Where CodeSpar is described, for whoever meets one of its pull requests.
const HOME: &str = env!("CARGO_PKG_REPOSITORY");
/// In characters, as for the subject line of a commit.
const MOST_TITLE: usize = 72;
/// An instruction of more characters or lines is folded.
const LONG_TASK: (usize, usize) = (600, 10);
/// Files that are listed.
const MOST_FILES: usize = 200;
/// Changed functions that are named for each of them.
const MOST_PARTS: usize = 5;

/// How the change was proved, for the text.
pub enum Verified<'a> {
    /// By this.
    By(&'a Evidence),
    /// Not at all, for this reason.
    Not(&'a str),
}

/// What a pull request is written from.
pub struct PullText<'a> {
    pub order: &'a DevOrder,
    pub task: &'a TaskId,
    pub summary: &'a str,
    pub changes: &'a ChangeSet,
    /// How many lines of each file change, in the order of `changes`.
    pub touched: &'a [Touched],
    pub verified: Verified<'a>,
    pub risk: &'a Risk,
    pub model: &'a str,
    pub cost: Cost,
    /// Why no model was asked, in simulation.
    pub simulated: Option<&'a str>,
    /// Files that were read.
    pub located: &'a [String],
}

/// At most 72 characters, cut between words. If the last word would leave less than half of the
/// line, it is cut within the word. White space is made single, so the result is one line.
pub fn shorten(title: &str) -> String {
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

/// The first line of an instruction, short enough for a list.
pub fn headline(order: &DevOrder) -> String {
    shorten(order.subject())
}

/// Cuts anywhere, at most `most` characters with the ellipsis. `most` must not be zero unless the
/// text is empty.
fn shorten_to(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Functions and classes for the line of their file.
fn named(parts: &[String]) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let shown = parts.iter().take(MOST_PARTS);
    let shown: Vec<String> = shown.map(|part| format!("`{}`", code(part))).collect();
    let more = match parts.len().saturating_sub(MOST_PARTS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(": {}{more}", shown.join(", "))
}

impl PullText<'_> {
    /// The body, at most this many characters. First without a limit, which is nearly always
    /// enough. Otherwise the instruction, the summary and the list of files get a quarter each, so
    /// that the sections after them are not what is lost. The forge refuses a longer body, after
    /// the commit was made.
    pub fn body(&self, most: usize) -> String {
        let whole = self.render(usize::MAX);
        if whole.chars().count() <= most {
            return whole;
        }
        // The instruction, the summary and the files can be long; the facts are short.
        let cut = self.render((most / 4).saturating_sub(200));
        shorten_to(&cut, most)
    }

    fn render(&self, text_limit: usize) -> String {
        let mut out = String::new();
        self.render_into(&mut out, text_limit).unwrap_or_default();
        out
    }

    /// `text_limit` is in characters, for each of the long parts.
    fn render_into(&self, out: &mut String, text_limit: usize) -> std::fmt::Result {
        if let Some(reason) = self.simulated {
            writeln!(
                out,
                "> **Simulated**: no model was asked, so no file was changed ({}). The files below \
                 are those that were found and read.\n",
                markdown::line(reason)
            )?;
        }
        // What a reviewer wants to know first.
        writeln!(
            out,
            "## Changes\n\n{}\n",
            markdown::foreign(&shorten_to(self.summary.trim(), text_limit))
        )?;
        self.task(out, text_limit)?;
        writeln!(out, "\n## Files Modified\n")?;
        if self.changes.is_empty() {
            writeln!(out, "None is changed.")?;
        }
        for path in self.located.iter().filter(|_| self.simulated.is_some()) {
            writeln!(out, "- `{}` (read)", code(path))?;
        }
        self.files(out, text_limit)?;
        writeln!(out, "\n## Verification\n")?;
        self.verification(out)?;
        writeln!(out, "\n## Risk\n\nLevel: **{}**\n", self.risk.level)?;
        for reason in &self.risk.reasons {
            writeln!(out, "- {}", markdown::line(reason))?;
        }
        let cost = match self.cost {
            Cost::Known(usd) => usd.to_string(),
            Cost::Unknown(usd) => format!("at least {usd} (a model without a known price)"),
        };
        writeln!(
            out,
            "\n---\nMade by [CodeSpar]({HOME}) for {} · task `{}` · {} · {cost}",
            markdown::line(&self.order.requested_by),
            self.task,
            markdown::line(self.model)
        )
    }

    /// The instruction as a quote; a long one below a line that opens it.
    fn task(&self, out: &mut String, text_limit: usize) -> std::fmt::Result {
        writeln!(out, "## Task\n")?;
        let instruction = self.order.instruction.trim();
        let quoted: Vec<String> = markdown::foreign(instruction)
            .lines()
            .map(|line| format!("> {line}"))
            .collect();
        let quoted = shorten_to(&quoted.join("\n"), text_limit);
        let (chars, lines) = LONG_TASK;
        if instruction.chars().count() <= chars && instruction.lines().count() <= lines {
            return writeln!(out, "{quoted}");
        }
        let subject = markdown::line(&shorten(self.order.subject()));
        let subject = subject.replace('<', "&lt;");
        // Without blank lines around it, the quote would be read as HTML.
        writeln!(
            out,
            "<details>\n<summary>{subject}</summary>\n\n{quoted}\n\n</details>"
        )
    }

    /// Not more than fits: what comes after it matters more.
    fn files(&self, out: &mut String, text_limit: usize) -> std::fmt::Result {
        let mut room = text_limit;
        for (index, change) in self.changes.0.iter().enumerate() {
            let line = match change {
                FileChange::Moved { from, to, .. } => {
                    format!(
                        "- `{}` → `{}` (moved",
                        code(from.as_str()),
                        code(to.as_str())
                    )
                }
                _ => format!("- `{}` ({}", code(change.path().as_str()), change.word()),
            };
            let touched = self.touched.get(index);
            let lines = touched.map(Touched::lines);
            let line = match lines {
                Some(lines) if !lines.is_empty() => format!("{line}, {lines})"),
                _ => format!("{line})"),
            };
            let parts = touched.map(|touched| touched.parts.as_slice());
            let line = format!("{line}{}", named(parts.unwrap_or_default()));
            room = room.saturating_sub(line.chars().count() + 1);
            if index == MOST_FILES || room == 0 {
                return writeln!(out, "- and {} more", self.changes.0.len() - index);
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Both runs as a table. If tests fail with the change their names follow, those that failed
    /// before it marked. Where the output is, is told by the command that shows it.
    fn verification(&self, out: &mut String) -> std::fmt::Result {
        let evidence = match self.verified {
            Verified::By(evidence) => evidence,
            Verified::Not(reason) => {
                return writeln!(out, "Not verified: {}", markdown::line(reason));
            }
        };
        writeln!(out, "`{}`\n", code(&evidence.command))?;
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
                run.summary(),
                run.duration_ms as f64 / 1000.0
            )?;
        }
        let blocked = evidence.blocked();
        if !blocked.is_empty() {
            writeln!(out, "\nHosts that the tests were refused:\n")?;
            for host in blocked {
                writeln!(out, "- blocked: `{}`", code(host))?;
            }
        }
        for hook in &evidence.hooks {
            let name = code(&hook.name);
            writeln!(out, "\nHook `{name}` of the repository: {}", hook.summary())?;
        }
        if let Some(tests) = &evidence.new_tests {
            new_tests(out, tests)?;
        }
        if !evidence.after.passed() {
            writeln!(
                out,
                "\n**The tests do not pass with this change.**{}",
                match evidence.after.failed_like(&evidence.before) {
                    true => " They failed in the same way before it.",
                    false => "",
                },
            )?;
            if !evidence.after.failing.is_empty() {
                writeln!(out, "\nFailing tests:\n")?;
                for name in &evidence.after.failing {
                    let too = if evidence.before.failing.contains(name) {
                        " (failed before, too)"
                    } else {
                        ""
                    };
                    writeln!(out, "- `{}`{too}", code(name))?;
                }
                let named = evidence.after.failing.len();
                if let Some(more) = evidence.after.failures.len().checked_sub(named)
                    && more > 0
                {
                    writeln!(out, "- and {more} more")?;
                }
            }
            // What a test prints can be anything, a private key too.
            writeln!(
                out,
                "\nTheir output stays where they ran: `codespar task output {}`",
                self.task
            )?;
        }
        Ok(())
    }
}

/// What the tests of the change prove, and which do.
fn new_tests(out: &mut String, tests: &NewTests) -> std::fmt::Result {
    writeln!(out, "\n{}", markdown::line(&tests.sentence()))?;
    if tests.names.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    for name in &tests.names {
        writeln!(out, "- `{}`", code(name))?;
    }
    match tests.count.saturating_sub(tests.names.len()) {
        0 => Ok(()),
        more => writeln!(out, "- and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use codespar_protocol::{RepoPath, TaskType, Usd};

    use super::*;
    use crate::RiskLevel;
    use codespar_change::verify::{NewTestsVerdict, TestRun};
    use codespar_protocol::{
        Consent, DevLimits, DevPurpose, Engine, OnFailure, RepositoryRef, VerifyChoice,
    };

    fn run(exit_code: i32) -> TestRun {
        TestRun {
            exit_code: Some(exit_code),
            failing: vec!["tests::adds".to_owned()],
            duration_ms: 1,
            tail: "x".repeat(6_000),
            missing: Vec::new(),
            blocked: vec!["evil.example".to_owned()],
            ..TestRun::default()
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
            setup: None,
            on_failure: OnFailure::Draft,
            draft: Consent::Withheld,
            protected: Consent::Withheld,
            simulation: Consent::Withheld,
            protected_globs: None,
            max_budget: None,
            requested_by: "Ada".to_owned(),
            engine: Engine::Generate,
            task_model: "m".to_owned(),
            picker_model: "m".to_owned(),
            limits: DevLimits::default(),
            resumes: Vec::new(),
            purpose: DevPurpose::Change,
        };
        let changes = (0..300).map(|number| FileChange::Deleted {
            path: RepoPath::new(&format!("{}/{number}", "ä".repeat(400))).unwrap(),
        });
        let evidence = Evidence {
            command: "make test".to_owned(),
            before: run(0),
            after: run(1),
            new_tests: Some(NewTests {
                verdict: NewTestsVerdict::Proved,
                files: vec!["tests/a.rs".to_owned()],
                count: 2,
                names: vec!["tests::new".to_owned()],
                without: None,
            }),
            hooks: Vec::new(),
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
            touched: &[],
            verified: Verified::By(&evidence),
            risk: &risk,
            model: "m",
            cost: Cost::Known(Usd::ZERO),
            simulated: None,
            located: &[],
        };
        let body = text.body(65_536);
        assert!(!body.contains("xxxx"), "raw output is published");
        assert!(body.chars().count() <= 65_536);
        for expected in [
            "…\n\n## Task\n\n<details>\n<summary>.</summary>\n\n>",
            "…\n\n</details>\n\n## Files Modified",
            " more\n",
            "- blocked: `evil.example`",
            "- `tests::adds` (failed before, too)",
            "2 tests fail without this change and pass with it.\n\n- `tests::new`\n- and 1 more\n",
            "**The tests do not pass with this change.**",
            "## Files Modified",
            "## Risk\n\nLevel: **high**\n\n- the tests fail",
            "Made by [CodeSpar](https://github.com/codespar/codespar) for Ada",
        ] {
            assert!(body.contains(expected), "{expected}");
        }
    }
}
