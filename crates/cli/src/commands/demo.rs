//! `codespar demo`.
//!
//! The demo goes through the same functions as the commands it shows; only the model is a
//! recording. State, settings and keys of the user are kept out by an environment of its own in a
//! temporary directory, which is removed at the end unless `--keep` is given.

use std::{io::Write, path::Path, process::ExitCode, sync::Arc};

use clap::Args;
use codespar_agent::Stop;
use codespar_dev::{
    Consent, DevLimits, DevOrder, DevPurpose, Engine, Linker, OnFailure, RepositoryRef,
    VerifyChoice,
};
use codespar_forge::Forge;
use codespar_git::{GitError, Repository, RepositoryKind, Trust};
use codespar_protocol::{SessionId, TaskId, TaskSpec, TaskStatus, TaskType};
use codespar_pulls::{Reviewer, UnknownChecks, merge};
use codespar_store::Notify;
use codespar_tasks::{Attendance, Caller, TaskExtra, Waited};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::{error::CommandError, progress::Progress, signals::Signals, style};
use codespar_runtime::{
    Environment, ProcessRole, Project, ProjectConfig, ProjectDir, ProjectOptions, RepositoryLinker,
    Runtime,
};

/// A program in shell script with a wrong median and a test that shows it. Shell needs nothing
/// installed.
const FILES: [(&str, &str); 5] = [
    ("README.md", include_str!("../demo/sample/README.md")),
    ("csv.sh", include_str!("../demo/sample/csv.sh")),
    ("report.sh", include_str!("../demo/sample/report.sh")),
    ("stats.sh", include_str!("../demo/sample/stats.sh")),
    ("test.sh", include_str!("../demo/sample/test.sh")),
];
/// A cassette that is matched by turn, not by the text of the request.
const ANSWERS: &str = include_str!("../demo/answers.jsonl");
/// Does not name the file, so that locating it is part of the demo.
const INSTRUCTION: &str = "the median is wrong for some numbers, find out why and fix it";
/// Run by the dev agent in the sandbox, before and after the change.
const TESTS: &str = "sh test.sh";

/// Run an offline demo: an instruction becomes a verified, reviewed and merged change.
///
/// It works on a sample repository in a temporary directory with a failing test. The model's
/// answers are a recording; everything else (locate, apply, sandboxed test runs, git, pull
/// request, review, merge) is real.
///
/// Example: codespar demo --keep
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Keep the sample repository and say where it is.
    #[arg(long)]
    keep: bool,
}

/// The runtime is closed before an error is reported: the directory can then be removed. Nobody is
/// asked anything, whether or not there is a terminal.
pub(crate) async fn run(
    args: &DemoArgs,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let cancel = CancellationToken::new();
    let signals = Signals::watch(cancel.clone())?;
    let dir = tempfile::Builder::new()
        .prefix("codespar-demo-")
        .tempdir()?;
    let repo = dir.path().canonicalize()?.join("sample");
    write_sample(&repo)?;
    let answers = dir.path().join("answers.jsonl");
    std::fs::write(&answers, ANSWERS)?;

    let demo = demo_dir(project_dir, dir.path(), &repo, &answers)?;
    let config = ProjectConfig::load(demo, ProjectOptions::default())?;
    let (runtime, project) =
        Runtime::with_project(config, Attendance::Nobody, ProcessRole::Session).await?;
    let told = tell(&project, &repo, &cancel).await;
    let closed = runtime.close().await;
    if let Some(code) = signals.exit_code() {
        return Ok(ExitCode::from(code));
    }
    told?;
    closed?;
    super::print(format_args!("{}\n", closing(args, &repo)))?;
    if args.keep {
        let _ = dir.keep();
    }
    Ok(ExitCode::SUCCESS)
}

/// From the failing test to the merged change. Each heading is the command that a user would type.
async fn tell(
    project: &Arc<Project>,
    repo: &Path,
    cancel: &CancellationToken,
) -> Result<(), CommandError> {
    let failed = |error: &dyn std::fmt::Display| CommandError::Failed(error.to_string());
    let progress = Progress::for_people();
    head("1. A repository with a failing test")?;
    let before = progress.during(TESTS, outcome_of_tests(repo)).await?;
    super::print(format_args!("$ {TESTS}\n{before}\n"))?;

    head(&format!("2. $ codespar dev \"{INSTRUCTION}\""))?;
    change(project, repo, &progress, cancel).await?;

    let linker = RepositoryLinker::of(project);
    let repository = RepositoryRef::Local {
        path: repo.to_path_buf(),
    };
    let link = linker
        .link(&repository)
        .await
        .map_err(|error| failed(&error))?;
    let forge = &*link.forge;
    head("3. $ codespar pr diff 1")?;
    let diff = forge.diff(1).await.map_err(|error| failed(&error))?;
    super::print(format_args!("{}\n", super::pr::coloured(&diff)))?;

    head("4. $ codespar review 1")?;
    let provider = &project.provider;
    let reviewer = Reviewer {
        model: Some(&provider.model),
        provider_choice: &provider.why,
        catalogue: &provider.catalogue,
        model_id: provider.choice.id.clone(),
        max_budget: None,
        redactor: &project.redactor,
    };
    let stop = Stop::new(cancel, None);
    let review = reviewer.review(forge, 1, &stop);
    let reviewed = progress
        .during("Reviewing", review)
        .await
        .map_err(|error| failed(&error))?;
    super::review::show(&reviewed)?;

    head("5. $ codespar merge 1 --squash")?;
    let squash = Some(codespar_protocol::MergeStrategy::Squash);
    let merged = progress
        .during(
            "Merging",
            merge(forge, 1, squash, "demo", UnknownChecks::Refuse),
        )
        .await
        .map_err(|error| failed(&error))?;
    let after = progress.during(TESTS, outcome_of_tests(repo)).await?;
    super::print(format_args!(
        "merged #{} into {} by {}: {}\n\n$ git log --oneline\n{}\n$ {TESTS}\n{after}\n",
        merged.number,
        merged.base,
        merged.strategy,
        merged.commit.short(),
        history(repo)?,
    ))
}

fn head(text: &str) -> Result<(), CommandError> {
    super::print(format_args!("{}\n", style::strong(text)))
}

/// The dev agent's run, as `codespar dev` makes it. Listening begins before the task exists, so
/// that no step is missed. The order is written out in full instead of read from settings, so that
/// the demo is the same everywhere.
async fn change(
    project: &Arc<Project>,
    repo: &Path,
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<(), CommandError> {
    let id = TaskId::new(TaskType::LocalWorkflow);
    let order = DevOrder {
        instruction: INSTRUCTION.to_owned(),
        repository: RepositoryRef::Local {
            path: repo.to_path_buf(),
        },
        base: None,
        pull_request: None,
        images: Vec::new(),
        verify: VerifyChoice::Command(TESTS.to_owned()),
        setup: None,
        on_failure: OnFailure::Draft,
        draft: Consent::Withheld,
        protected: Consent::Withheld,
        simulation: Consent::Withheld,
        protected_globs: None,
        max_budget: None,
        requested_by: "demo".to_owned(),
        engine: Engine::Generate,
        task_model: "sonnet".to_owned(),
        picker_model: "haiku".to_owned(),
        limits: DevLimits::default(),
        resumes: Vec::new(),
        purpose: DevPurpose::Change,
    };
    let shown = progress.clone();
    let session = SessionId::new();
    let show = Arc::new(move |event| shown.event(&event));
    project.hub.follow(&id, session, show);
    let caller = Caller {
        session,
        name: "the user".to_owned(),
        task: None,
        depth: 0,
        sink: Arc::new(|_| {}),
        root: repo.to_path_buf(),
        authority: project.authority(session),
    };
    let failed = |error: codespar_tasks::HubError| CommandError::Failed(error.to_string());
    project
        .hub
        .create_builtin(
            &caller,
            id.clone(),
            order.subject(),
            TaskSpec::Dev(Box::new(order.clone())),
            TaskExtra::default(),
            Notify::Nobody,
        )
        .await
        .map_err(failed)?;
    let waited = project.hub.wait(&id, cancel).await;
    progress.rest();
    match waited.map_err(failed)? {
        Waited::Ended(record) if record.status == TaskStatus::Completed => {
            super::print(format_args!("\n"))
        }
        Waited::Ended(record) => Err(CommandError::Failed(format!(
            "the demo did not come to its end: {}",
            record.error.unwrap_or_default()
        ))),
        Waited::GaveUp => Err(CommandError::Failed("the demo was stopped".to_owned())),
    }
}

/// Says what was scripted and what was real, so that nobody takes the recording for a model. It
/// ends with what to do on a repository of one's own.
fn closing(args: &DemoArgs, repo: &Path) -> String {
    let kept = if args.keep {
        format!("\nThe sample is in {}", repo.display())
    } else {
        String::new()
    };
    format!(
        "{}\nScripted: the model's three answers (which files, the fix, the review) and their token \
         counts; a recording shipped with this program.\nReal: locating the files, applying the edit, the \
         test runs before and after in the sandbox, git, the pull request and its checks, the review's \
         place on the diff, the merge, the durable task in SQLite.\n\nOn your own repository: set \
         ANTHROPIC_API_KEY (or OPENAI_API_KEY / OPENAI_BASE_URL and --model), then run `codespar dev \"…\"` \
         in it. Pull requests go to GitHub when its origin is there and GITHUB_TOKEN is set. `codespar` \
         alone opens a session; `codespar doctor` shows the configuration.{kept}",
        style::strong("What you saw"),
    )
}

/// Runs outside of the sandbox: the script and the change to it are part of this program.
async fn outcome_of_tests(repo: &Path) -> Result<String, CommandError> {
    let output = Command::new("sh")
        .arg("test.sh")
        .current_dir(repo)
        .output()
        .await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The commits of the demo have an author of their own.
pub(super) fn write_sample(repo: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(repo)?;
    for (name, text) in FILES {
        std::fs::write(repo.join(name), text)?;
    }
    let repository = codespar_git::init(repo, RepositoryKind::WorkTree).map_err(failed)?;
    let config = repository.location().git_dir.join("config");
    let mut config = std::fs::OpenOptions::new().append(true).open(config)?;
    config.write_all(b"[user]\n\tname = demo\n\temail = demo@codespar.invalid\n")?;
    let git = repository.git_with_files().map_err(failed)?;
    git.run(["add", "."]).map_err(failed)?;
    let commit = ["commit", "--quiet", "-m", "Sample"];
    git.run(commit).map_err(failed)?;
    Ok(())
}

/// Read as untrusted, as any repository would be.
fn history(repo: &Path) -> Result<String, CommandError> {
    let repository = Repository::find(repo, Trust::Untrusted).map_err(failed)?;
    let git = repository.git().map_err(failed)?;
    let log = git.run(["log", "--oneline"]).map_err(failed)?;
    Ok(String::from_utf8_lossy(&log.out).into_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "a function for `map_err`")]
fn failed(error: GitError) -> CommandError {
    CommandError::Failed(format!("the demo needs git: {error}"))
}

/// A world of its own: no settings, no state and no key of the user's. `PATH` and the like stay:
/// git and the shell are those of the machine.
pub(super) fn demo_dir(
    project_dir: &ProjectDir,
    dir: &Path,
    repo: &Path,
    answers: &Path,
) -> Result<ProjectDir, CommandError> {
    let theirs = [
        "CODESPAR_",
        "ANTHROPIC_",
        "OPENAI_",
        "GITHUB_",
        "GH_",
        "TEMPORAL_",
    ];
    let environment = &project_dir.environment;
    let mut vars: Vec<_> = environment
        .vars
        .iter()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            !theirs.iter().any(|start| name.starts_with(start))
        })
        .cloned()
        .collect();
    vars.push((
        "CODESPAR_CASSETTE".into(),
        format!("replay:{}", answers.display()).into(),
    ));
    let demo = Environment {
        home: None,
        state: dir.join("state"),
        vars,
        program: environment.program.clone(),
    };
    Ok(ProjectDir::find(Arc::new(demo), repo)?)
}
