//! Deciding a shell command: every part and every redirection must be allowed.
//!
//! A command is decided in two passes that err in opposite directions.
//!
//! 1. `forbidden` compares deny and ask rules with everything the text may reach: commands behind
//!    wrappers, in `sh -c`, in pieces of text that was not understood, and files by name. A rule
//!    catches too much rather than too little.
//! 2. `judge` compares allow rules with the parsed parts only. Each simple command needs a rule of
//!    its own (or must be one that only reads), and each redirection is decided like a call of
//!    `Read` or `Write`. If parsing left an obstacle, the command is asked about.
//!
//! ```text
//! git log -1 | sort > out.txt
//!   part      git log -1     free reader, or a rule such as Bash(git log *)
//!   part      sort           free reader, or a rule such as Bash(sort *)
//!   redirect  > out.txt      decided as Write(<cwd>/out.txt)
//! ```
//!
//! The directory matters for relative paths. After a `cd`, `pushd` or `popd` anywhere in the line,
//! a relative target is treated as unknown.

use std::path::{Component, Path, PathBuf};

use crate::{
    Lifetime, RepositoryScope, RuleKind, SandboxState, Scope,
    decide::{Case, Verdict},
    free,
    options::{hazards, runs_git},
    paths::{is_inside, normalise, resolve},
    rule_set::Verb,
    shell::{Direction, Part, Redirect, Script, Word, tidy},
    suggest,
    touch::Reached,
};

/// A command line and what was found in it. It is parsed once and then asked several questions
/// (denied, only reads, allowed), so that all of them see the same parts.
pub(crate) struct Command<'a> {
    text: &'a str,
    script: Script,
}

/// Where a redirection leads.
enum Target {
    /// Nowhere that matters: `/dev/null`.
    Harmless,
    Path(PathBuf),
    /// Known only when it runs. A relative path after a `cd`, an expansion, or a device below
    /// `/dev` other than the standard streams. It is asked about unless a rule allows every
    /// command.
    Unknown,
}

impl<'a> Command<'a> {
    pub(crate) fn read(text: &'a str) -> Self {
        Self {
            text,
            script: Script::read(text),
        }
    }

    /// Why a rule of this kind catches the command, looking through every disguise. The rule may
    /// name the tool (`Bash`), a command in any of its forms, or a file that the command reads or
    /// writes. `None` means that no rule of this kind applies, not that the command is allowed.
    pub(crate) fn forbidden(&self, case: &Case<'_>, kind: RuleKind) -> Option<String> {
        let verb = match kind {
            RuleKind::Deny => "denied by",
            RuleKind::Ask | RuleKind::Allow => "asked about because of",
        };
        let bare = case
            .rules
            .about_tool(kind, "Bash")
            .or_else(|| case.rules.about_tool(kind, case.tool));
        if let Some(entry) = bare {
            return Some(format!("{verb} {entry}"));
        }
        let reached = Reached::by(self.text, &self.script);
        let entry = case.rules.about_command(kind, |pattern| {
            pattern.matches(&tidy(self.text))
                || reached.texts.iter().any(|text| pattern.matches(text))
        });
        if let Some(entry) = entry {
            return Some(format!("{verb} {entry}"));
        }
        reached.paths.iter().find_map(|(touch, word)| {
            let path = literal_path(word, case.scope)?;
            let tool = match touch {
                Verb::Read => "Read",
                Verb::Write => "Write",
            };
            let entry = case
                .rules
                .about_path(kind, tool, *touch, &path, case.scope)?;
            Some(format!("{verb} {entry} (`{word}`)"))
        })
    }

    /// What ask and allow rules, the sandbox and the parsed parts say about the whole line. Deny
    /// rules and the mode have been dealt with by the caller.
    ///
    /// The order is part of the meaning: ask rules come first, then a missing sandbox, then the
    /// throw-away tree, then a bare `Bash` rule, and only then the parts. A bare rule needs no
    /// parsing, so it also allows commands that cannot be analysed.
    pub(crate) fn judge(&self, case: &Case<'_>) -> Verdict {
        if let Some(reason) = self.forbidden(case, RuleKind::Ask) {
            return Verdict::ask(reason);
        }
        if case.scope.sandbox_state == SandboxState::Unavailable {
            return Verdict::ask("no sandbox works here, so the command would run unsandboxed");
        }
        if case.scope.lifetime == Lifetime::ThrowAway
            && case.scope.sandbox_state == SandboxState::Sandboxed
        {
            return Verdict::allow("what the sandbox confines is free in a throw-away tree");
        }
        let bare = case
            .rules
            .about_tool(RuleKind::Allow, "Bash")
            .or_else(|| case.rules.about_tool(RuleKind::Allow, case.tool));
        if let Some(entry) = bare {
            return self.judge_freely(case, Verdict::allow(format!("allowed by {entry}")));
        }
        if let Some(obstacle) = &self.script.obstacle {
            return Verdict::ask(format!("the command cannot be analysed: {obstacle}"));
        }
        let mut verdict = Verdict::allow(String::new());
        for part in &self.script.parts {
            verdict = verdict.and(self.judge_part(case, part));
        }
        for redirect in &self.script.redirects {
            verdict = verdict.and(self.judge_redirect(case, redirect));
        }
        match verdict {
            Verdict::Allow(reason) if reason.is_empty() => {
                Verdict::ask("there is no command in it")
            }
            verdict => verdict,
        }
    }

    /// Every command is allowed: only writes that the rule cannot have meant are left. Redirections
    /// out of the workspace and to protected paths are decided as writes. Targets that are known
    /// only at run time are let through here, because the rule allows every command anyway.
    fn judge_freely(&self, case: &Case<'_>, mut verdict: Verdict) -> Verdict {
        for redirect in &self.script.redirects {
            let Target::Path(path) = self.target(case, &redirect.target) else {
                continue;
            };
            let guarded = case.protection(&path).is_some();
            let inside = case.in_workspace(&path) && !guarded;
            if redirect.direction == Direction::Out && !inside {
                verdict = verdict.and(case.judge_write("Write", &path));
            }
        }
        verdict
    }

    /// Decides one simple command: a free `cd`, git in a foreign repository, a free reader, then
    /// allow rules.
    ///
    /// An allow rule counts only if its literal text before the first `*` covers two things: every
    /// assignment in front of the command (`LD_PRELOAD=x git log` is not `git log`) and every
    /// hazardous word. `Bash(git log *)` therefore does not allow `git log --output=x`, while
    /// `Bash(git log --output=x *)` does.
    fn judge_part(&self, case: &Case<'_>, part: &Part) -> Verdict {
        if part.words.is_empty() {
            return Verdict::ask("it changes variables that commands may depend on");
        }
        let assigned: String = part
            .assignments
            .iter()
            .map(|word| format!("{} ", word.source))
            .collect();
        let text = part.text();
        if self.is_free_cd(case, part) {
            return Verdict::allow("changing directory within the workspace is free");
        }
        if runs_git(&part.words) && self.is_elsewhere(case) {
            return Verdict::ask(
                "git would obey the configuration of whatever repository is in that directory",
            );
        }
        let reading = self.judge_reading(case, part);
        if let Some(Verdict::Allow(reason)) = reading {
            return Verdict::Allow(reason);
        }
        let hazards = hazards(&part.words);
        // What the rule has to spell out: assignments, and words that do more than the name says.
        let spelled_out = hazards.iter().map(|hazard| end_of(part, hazard.word)).max();
        let about = |least: usize| {
            case.rules.about_command(RuleKind::Allow, |pattern| {
                let head = pattern.head();
                head.starts_with(&assigned) && head.len() >= least && pattern.matches(&text)
            })
        };
        if let Some(entry) = about(spelled_out.unwrap_or(0)) {
            return Verdict::allow(format!("allowed by {entry}"));
        }
        if let Some(asked) = reading {
            return asked;
        }
        match (hazards.first(), about(0)) {
            (Some(hazard), Some(entry)) => Verdict::offer(
                format!(
                    "{entry} does not spell it out, and {}",
                    shorten(&hazard.reason)
                ),
                suggest::very_command(part),
            ),
            (Some(_), None) => Verdict::offer(
                format!("no rule allows `{}`", shorten(&text)),
                suggest::very_command(part),
            ),
            (None, _) => Verdict::offer(
                format!("no rule allows `{}`", shorten(&text)),
                suggest::command(part),
            ),
        }
    }

    /// Whether the whole line does nothing but read, and a sandbox sees to it. Used by plan mode,
    /// where such commands are the only ones allowed. It says nothing about which files: those are
    /// decided by `judge` afterwards.
    pub(crate) fn only_reads(&self, case: &Case<'_>) -> bool {
        let harmless = |redirect: &Redirect| {
            redirect.direction == Direction::In
                || matches!(self.target(case, &redirect.target), Target::Harmless)
        };
        case.scope.sandbox_state == SandboxState::Sandboxed
            && self.script.obstacle.is_none()
            && !self.script.parts.is_empty()
            && self.script.redirects.iter().all(harmless)
            && self.script.parts.iter().all(|part| {
                let elsewhere = runs_git(&part.words) && self.is_elsewhere(case);
                self.is_free_cd(case, part)
                    || (!elsewhere && self.judge_reading(case, part).is_some())
            })
    }

    /// The verdict on a command that only reads; `None` when it may do more, or when rules about
    /// files could not be kept to. `Some` is not yet permission: files outside the workspace are
    /// decided as for the `Read` tool and may turn it into a question. If any rule restricts files,
    /// commands that choose files by themselves (globs, recursion, history) are not free, because
    /// the names they will open cannot be compared with the rule.
    fn judge_reading(&self, case: &Case<'_>, part: &Part) -> Option<Verdict> {
        if case.scope.sandbox_state != SandboxState::Sandboxed {
            return None;
        }
        let reads = free::reads(part)?;
        if case.rules.restricts_reading() && (reads.more || self.moves() > 0) {
            return None;
        }
        let moved = |part: &Part| is_move(part) && !self.is_free_cd(case, part);
        if self.script.parts.iter().any(moved) {
            return None;
        }
        let mut verdict = Verdict::allow("commands that only read are free in the sandbox");
        for file in &reads.files {
            let path = Path::new(file);
            let climbs = path.components().any(|part| part == Component::ParentDir);
            if climbs && self.moves() > 0 {
                let file = shorten(file);
                let reason = format!("where `{file}` leads depends on `cd` before it");
                verdict = verdict.and(Verdict::ask(reason));
            }
            let path = resolve(path, &case.scope.cwd);
            let harmless = matches!(path.to_str(), Some("/dev/null" | "/dev/stdin"));
            if !harmless && !case.in_workspace(&path) {
                verdict = verdict.and(case.judge_read("Read", &path));
            }
        }
        Some(verdict)
    }

    /// Whether git may find another repository than that of the project. Such a repository may
    /// configure a pager or an external diff, which git would run. With no change of directory the
    /// scope tells; otherwise every `cd` must lead to a root of the workspace.
    fn is_elsewhere(&self, case: &Case<'_>) -> bool {
        let leads_home = |part: &Part| {
            let target = match part.words.as_slice() {
                [name, dir] if name.source == "cd" => dir.value(),
                _ => None,
            };
            target.is_some_and(|dir| {
                let path = resolve(Path::new(dir), &case.scope.cwd);
                case.scope.workspace.contains(&path)
            })
        };
        let mut moves = self
            .script
            .parts
            .iter()
            .filter(|part| is_move(part))
            .peekable();
        match moves.peek() {
            None => case.scope.repository == RepositoryScope::Nested,
            Some(_) => !moves.all(leads_home),
        }
    }

    /// A plain `cd` to a directory of the workspace.
    fn is_free_cd(&self, case: &Case<'_>, part: &Part) -> bool {
        let [name, dir] = part.words.as_slice() else {
            return false;
        };
        let Some(dir) = dir.value() else {
            return false;
        };
        if name.source != "cd"
            || !part.assignments.is_empty()
            || dir.starts_with('-')
            || dir.is_empty()
        {
            return false;
        }
        let relative = !Path::new(dir).is_absolute();
        // Where a second or repeated relative step leads depends on the first.
        let adrift = relative && (self.moves() > 1 || (self.script.repeats && dir.contains("..")));
        let path = resolve(Path::new(dir), &case.scope.cwd);
        !adrift && case.in_workspace(&path)
    }

    /// How often it changes the directory.
    fn moves(&self) -> usize {
        self.script
            .parts
            .iter()
            .filter(|part| is_move(part))
            .count()
    }

    /// Uses the same functions as the tools `Write` and `Read`, so one rule covers both ways to
    /// change a file.
    fn judge_redirect(&self, case: &Case<'_>, redirect: &Redirect) -> Verdict {
        match (self.target(case, &redirect.target), redirect.direction) {
            (Target::Harmless, _) => Verdict::allow("redirections to nowhere are free"),
            (Target::Unknown, _) => Verdict::ask(format!(
                "where the redirection to `{}` leads is known only when it runs",
                shorten(&redirect.target.source)
            )),
            (Target::Path(path), Direction::Out) => case.judge_write("Write", &path),
            (Target::Path(path), Direction::In) => case.judge_read("Read", &path),
        }
    }

    /// Resolves the word of a redirection. Only literal words and `~/` with a literal rest are
    /// resolved. Below `/dev`, everything but the standard streams and `/dev/null` is unknown.
    fn target(&self, case: &Case<'_>, word: &Word) -> Target {
        let path = match (word.value(), case.scope.home.as_deref()) {
            (Some(value), _) if !value.is_empty() => PathBuf::from(value),
            (None, Some(home)) => match word.source.strip_prefix("~/").map(Word::new) {
                Some(rest) if rest.literal => home.join(rest.bare),
                _ => return Target::Unknown,
            },
            _ => return Target::Unknown,
        };
        if path.is_relative() && self.moves() > 0 {
            return Target::Unknown;
        }
        let path = resolve(&path, &case.scope.cwd);
        match path.to_str() {
            Some("/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr") => Target::Harmless,
            // These open connections.
            Some(path) if is_inside(Path::new(path), Path::new("/dev")) => Target::Unknown,
            _ => Target::Path(path),
        }
    }
}

/// Whether a simple command may change the directory. Any word counts, not only the command word:
/// `command cd x` is found too, and a false hit only makes the decision stricter.
fn is_move(part: &Part) -> bool {
    part.words
        .iter()
        .any(|word| matches!(word.bare.as_str(), "cd" | "pushd" | "popd" | "chdir"))
}

/// Where a word ends in the text of the command. In bytes, in the form that [`Part::text`]
/// produces. For a word past the end the result is longer than the text itself, so that no rule
/// reaches it.
fn end_of(part: &Part, word: usize) -> usize {
    let words = part.assignments.iter().chain(&part.words);
    let lengths = words.map(|word| word.source.len());
    let count = part.assignments.len() + word + 1;
    // A word past the end is in no rule that leaves anything open.
    let beyond = usize::from(word >= part.words.len());
    lengths.take(count).sum::<usize>() + count.saturating_sub(1) + beyond
}

/// The path a word names, as far as text tells. Expansions are kept as ordinary characters, so
/// `$HOME/x` becomes a name below the current directory. This is used only with rules that forbid.
/// `None` only for `~/` without a known home.
fn literal_path(word: &str, scope: &Scope) -> Option<PathBuf> {
    let path = match (word.strip_prefix("~/"), &scope.home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_), None) => return None,
        (None, _) => PathBuf::from(word),
    };
    Some(normalise(&scope.cwd.join(path)))
}

/// Text fit for a reason: one line, not too long.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 200;
    let line: String = text.chars().take(LONGEST).collect();
    let line = line.replace('\n', "⏎");
    if text.chars().nth(LONGEST).is_some() {
        format!("{line}…")
    } else {
        line
    }
}
