//! `codespar pr`, and `codespar merge`.
//!
//! The same commands for pull requests on GitHub and for local ones, which are records in the
//! database. All of them reach the forge through a publisher, so text that is written is checked
//! for secrets.

use std::{process::ExitCode, sync::Arc};

use clap::{Args, Subcommand, ValueEnum};
use codespar_forge::Forge;
use codespar_protocol::{MergeStrategy, PullRequest, PullRequestState};
use codespar_pulls::{CheckRule, UnknownChecks};
use codespar_store::Database;
use serde_json::json;

use super::{
    pr_checkout::checkout,
    pull_words::{PullTarget, PullWords},
};
use crate::{error::CommandError, printer::plain, style};
use codespar_runtime::{ProjectDir, Pulls, Settings, which};

/// List, show, check out, ready, merge and close pull requests, on GitHub or recorded locally.
///
/// Example: codespar pr list --state all
#[derive(Args)]
pub(crate) struct PrCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List pull requests, latest first.
    ///
    /// JSON: `pull_requests`, each with `number`, `title`, `state`, `draft`, `head`, `base` and
    /// others.
    List {
        /// Only pull requests in this state; merged ones are closed too.
        #[arg(long, value_enum, default_value_t = StateName::Open)]
        state: StateName,
        #[command(flatten)]
        at: At,
    },
    /// Show a pull request with its reviews and checks.
    ///
    /// JSON: `pull_request`, `reviews`, `checks` and `checks_unknown` (why there may be others).
    Show {
        #[command(flatten)]
        pull: PullWords,
        #[command(flatten)]
        at: At,
    },
    /// Show the diff of a pull request.
    ///
    /// JSON: `number` and `diff`.
    Diff {
        #[command(flatten)]
        pull: PullWords,
        #[command(flatten)]
        at: At,
    },
    /// Switch the work tree to the branch of a pull request.
    ///
    /// A branch on GitHub is fetched first. Refused if changes that are not committed would be
    /// overwritten, or if the branch has commits here that the pull request does not have. No hook
    /// runs.
    ///
    /// JSON: `number`, `branch`, `commit`, `from` (the branch before) and `back` (the command that
    /// goes back to it).
    Checkout {
        #[command(flatten)]
        pull: PullWords,
        #[command(flatten)]
        at: At,
    },
    Merge(MergeArgs),
    /// Make a draft ready to be merged, if its checks have passed.
    ///
    /// JSON: the pull request, with the fields of `pr list`.
    Ready {
        #[command(flatten)]
        pull: PullWords,
        /// Also if a check failed or is not over.
        #[arg(long)]
        anyway: bool,
        #[command(flatten)]
        at: At,
    },
    /// Close a pull request without merging it; a `codespar/…` branch is deleted.
    ///
    /// JSON: the pull request, with the fields of `pr list`, and `deleted_branch`.
    Close {
        #[command(flatten)]
        pull: PullWords,
        #[command(flatten)]
        at: At,
    },
}

/// Where, and how it is printed.
#[derive(Args, Clone)]
pub(crate) struct At {
    /// owner/name on GitHub, or a directory; the current one by default.
    #[arg(long, value_name = "REPO")]
    pub(crate) repo: Option<String>,
    /// Print JSON, with the fields that are named above.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StateName {
    Open,
    Merged,
    Closed,
    All,
}

/// Merge a pull request if nothing blocks it.
///
/// Refused, with all reasons, for a draft, an empty change, a check that failed or is still running,
/// checks that the token may not read, a conflict, a requester without write access, or a head that
/// changed since it was checked. A `codespar/…` branch is deleted after the merge.
///
/// JSON: `number`, `commit`, `strategy`, `base`, `unchecked` (no check has run on the head),
/// `checks_unknown` (why not all are known) and `deleted_branch` or `kept_branch`.
///
/// Examples:
///   codespar merge 12 --squash
///   codespar merge PR 12 squash
///   codespar merge acme/api#12
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    pull: PullWords,
    /// Squash into one commit.
    #[arg(long, conflicts_with_all = ["rebase", "merge"])]
    squash: bool,
    /// Rebase the commits onto the base.
    #[arg(long, conflicts_with = "merge")]
    rebase: bool,
    /// Create a merge commit.
    #[arg(long)]
    merge: bool,
    /// Merge although the token may not read all checks; one that is known to have failed still
    /// blocks it.
    #[arg(long)]
    without_checks: bool,
    #[command(flatten)]
    at: At,
}

pub(crate) async fn run(
    command: PrCommand,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    match command.verb {
        Verb::List { state, at } => list(state, &at, project_dir).await,
        Verb::Show { pull, at } => show(pull.alone(&at, project_dir)?, project_dir).await,
        Verb::Diff { pull, at } => diff(pull.alone(&at, project_dir)?, project_dir).await,
        Verb::Checkout { pull, at } => checkout(pull.alone(&at, project_dir)?, project_dir).await,
        Verb::Merge(args) => merge_one(&args, project_dir).await,
        Verb::Ready { pull, anyway, at } => {
            let rule = if anyway {
                CheckRule::Ignored
            } else {
                CheckRule::MustPass
            };
            ready(pull.alone(&at, project_dir)?, rule, project_dir).await
        }
        Verb::Close { pull, at } => close_one(pull.alone(&at, project_dir)?, project_dir).await,
    }
}

/// A forge, and the store that must be closed after. The database must be closed for what was
/// written to be safe.
pub(crate) struct Reached {
    pub(crate) pulls: Pulls,
    store: Arc<dyn Database>,
}

impl Reached {
    pub(crate) fn forge(&self) -> &dyn Forge {
        self.pulls.forge()
    }

    /// Fails when what was recorded is lost.
    pub(crate) async fn close(self) -> Result<(), CommandError> {
        Ok(self.store.close().await?)
    }
}

/// Reaches the repository that the arguments name.
pub(crate) async fn reach(at: &At, project_dir: &ProjectDir) -> Result<Reached, CommandError> {
    let settings = Settings::load(project_dir)?;
    let repository = which(project_dir, &settings, at.repo.as_deref())?;
    let store = project_dir.environment.open_database().await?;
    let pulls = Pulls::of(project_dir, store.clone(), &repository).await?;
    Ok(Reached { pulls, store })
}

/// An error of a forge says itself what to do.
pub(crate) fn failed(error: impl std::fmt::Display) -> CommandError {
    CommandError::Failed(error.to_string())
}

/// As the forge orders them. Nothing is filtered here but the state.
async fn list(
    state: StateName,
    at: &At,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let reached = reach(at, project_dir).await?;
    let wanted = match state {
        StateName::Open => Some(PullRequestState::Open),
        StateName::Merged => Some(PullRequestState::Merged),
        StateName::Closed | StateName::All => None,
    };
    let mut pulls = reached.pulls.list(wanted).await?;
    if state == StateName::Closed {
        pulls.retain(|pull| pull.state != PullRequestState::Open);
    }
    let place_of_pulls = reached.forge().describe();
    reached.close().await?;
    if at.json {
        super::print_json(&json!({"pull_requests": pulls}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if pulls.is_empty() {
        super::print(format_args!("no pull requests in {place_of_pulls}\n"))?;
    }
    for pull in &pulls {
        super::print(format_args!("{}\n", line(pull)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Title and branches come from others, so they are escaped before they are styled.
fn line(pull: &PullRequest) -> String {
    let state = match (pull.state, pull.draft) {
        (PullRequestState::Open, true) => style::warning("draft"),
        (PullRequestState::Open, false) => style::good("open"),
        (PullRequestState::Merged, _) => style::strong("merged"),
        (PullRequestState::Closed, _) => style::faint("closed"),
    };
    format!(
        "{:>5}  {state}  {}  {}",
        format!("#{}", pull.number),
        plain(&pull.title),
        style::faint(plain(&format!("{} → {}", pull.head, pull.base)))
    )
}

async fn show(target: PullTarget, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let PullTarget { number, at, .. } = target;
    let reached = reach(&at, project_dir).await?;
    let forge = reached.forge();
    let pull = reached.pulls.show(number).await?;
    let reviews = forge.reviews(number).await.map_err(failed)?;
    let checks = forge.checks(&pull.head_commit).await.map_err(failed)?;
    reached.close().await?;
    if at.json {
        super::print_json(&json!({
            "pull_request": pull,
            "reviews": reviews,
            "checks": checks.checks,
            "checks_unknown": checks.unknown,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    super::print(format_args!("{}\n", line(&pull)))?;
    super::print(format_args!(
        "{}\n\n{}\n",
        style::faint(format!(
            "by {}, head {}",
            pull.author,
            pull.head_commit.short()
        )),
        shown(&pull.body)
    ))?;
    if let Some(reason) = &checks.unknown {
        let unknown = style::warning("checks unknown");
        super::print(format_args!("\n{unknown}: {}", plain(reason)))?;
    }
    for check in &checks.checks {
        let state = serde_json::to_value(check.state).unwrap_or_default();
        super::print(format_args!(
            "\n{} {}: {}",
            style::strong("check"),
            check.name,
            state.as_str().unwrap_or_default()
        ))?;
        if let Some(summary) = &check.summary {
            super::print(format_args!(" ({summary})"))?;
        }
    }
    for review in &reviews {
        super::print(format_args!(
            "\n\n{} by {}\n{}",
            style::strong("review"),
            review.author,
            shown(&review.body)
        ))?;
        for comment in &review.comments {
            super::print(format_args!(
                "\n  {}:{}  {}",
                plain(&comment.path),
                comment.line,
                plain(&comment.body)
            ))?;
        }
    }
    super::print(format_args!("\n"))?;
    Ok(ExitCode::SUCCESS)
}

async fn diff(target: PullTarget, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let PullTarget { number, at, .. } = target;
    let reached = reach(&at, project_dir).await?;
    let diff = reached.pulls.diff(number).await?;
    reached.close().await?;
    if at.json {
        super::print_json(&json!({"number": number, "diff": diff}))?;
        return Ok(ExitCode::SUCCESS);
    }
    super::print(format_args!("{}", coloured(&diff)))?;
    Ok(ExitCode::SUCCESS)
}

/// A text from outside for a terminal: without notes to ourselves, and nothing in it is obeyed.
pub(crate) fn shown(text: &str) -> String {
    let lines = text.lines().filter(|line| {
        let line = line.trim();
        !(line.starts_with("<!-- codespar-") && line.ends_with("-->"))
    });
    plain(lines.collect::<Vec<_>>().join("\n").trim_end()).into_owned()
}

/// A diff in colours, which pipes do not get.
pub(crate) fn coloured(diff: &str) -> String {
    let mut out = String::new();
    for line in plain(diff).lines() {
        let shown = match line.as_bytes().first() {
            Some(b'+') => style::good(line),
            Some(b'-') => style::error(line),
            Some(b'@') => style::faint(line),
            _ if line.starts_with("diff --git") => style::strong(line),
            _ => line.to_owned(),
        };
        out.push_str(&shown);
        out.push('\n');
    }
    out
}

async fn ready(
    target: PullTarget,
    rule: CheckRule,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let PullTarget { number, at, .. } = target;
    let reached = reach(&at, project_dir).await?;
    let outcome = reached.pulls.make_ready(number, rule).await;
    let closed = reached.close().await;
    let pull = outcome?;
    closed?;
    if at.json {
        super::print_json(&pull)?;
    } else {
        super::print(format_args!("#{number} is ready: {}\n", pull.title))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn close_one(target: PullTarget, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let PullTarget { number, at, .. } = target;
    let reached = reach(&at, project_dir).await?;
    let outcome = reached.pulls.close(number).await;
    let stored = reached.close().await;
    let closed = outcome?;
    stored?;
    if at.json {
        let mut value = serde_json::to_value(&closed.pull).unwrap_or_default();
        value["deleted_branch"] = json!(closed.deleted_branch);
        super::print_json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    super::print(format_args!("closed #{number}: {}\n", closed.pull.title))?;
    if let Some(kept) = &closed.kept_branch {
        super::print(format_args!("kept {kept}\n"))?;
    }
    if let Some(branch) = &closed.deleted_branch {
        super::print(format_args!("deleted {branch}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl MergeArgs {
    /// By an option, or by a word after the pull request: `squash`, `rebase` or `merge`.
    fn strategy(&self, words: &[String]) -> Result<Option<MergeStrategy>, CommandError> {
        let by_option = match (self.squash, self.rebase, self.merge) {
            (true, _, _) => Some(MergeStrategy::Squash),
            (_, true, _) => Some(MergeStrategy::Rebase),
            (_, _, true) => Some(MergeStrategy::Merge),
            _ => None,
        };
        let by_word = match words {
            [] => return Ok(by_option),
            [word] => word.to_lowercase().parse().map_err(CommandError::Usage)?,
            [_, word, ..] => {
                return Err(CommandError::Usage(format!(
                    "`{word}` is not expected here"
                )));
            }
        };
        match by_option {
            Some(other) if other != by_word => Err(CommandError::Usage(format!(
                "both `--{other}` and `{by_word}` are given"
            ))),
            _ => Ok(Some(by_word)),
        }
    }
}

/// Runs `codespar merge` and `codespar pr merge`.
///
/// The database is closed before an error is reported. All reasons against a merge are given at
/// once.
pub(crate) async fn merge_one(
    args: &MergeArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let target = args.pull.target(&args.at, project_dir)?;
    let strategy = args.strategy(&target.rest)?;
    let reached = reach(&target.at, project_dir).await?;
    let unknown = match args.without_checks {
        true => UnknownChecks::Accept,
        false => UnknownChecks::Refuse,
    };
    let pulls = &reached.pulls;
    let outcome = pulls.merge_with(target.number, strategy, None, unknown);
    let outcome = outcome.await;
    let closed = reached.close().await;
    let merged = outcome?;
    closed?;
    if args.at.json {
        super::print_json(&merged)?;
        return Ok(ExitCode::SUCCESS);
    }
    super::print(format_args!(
        "{} #{} into {} by {}: {}\n",
        style::good("merged"),
        merged.number,
        merged.base,
        merged.strategy,
        merged.commit.short()
    ))?;
    if let Some(reason) = &merged.checks_unknown {
        let unknown = style::warning("merged with unknown checks");
        super::print(format_args!("{unknown}: {}\n", plain(reason)))?;
    } else if merged.unchecked {
        super::print(format_args!(
            "{}\n",
            style::warning("no check had looked at what was merged")
        ))?;
    }
    if let Some(reason) = &merged.not_signed {
        super::print(format_args!("not signed: {}\n", plain(reason)))?;
    }
    if let Some(kept) = &merged.kept_branch {
        super::print(format_args!("kept {kept}\n"))?;
    }
    if let Some(branch) = &merged.deleted_branch {
        super::print(format_args!("deleted {branch}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
