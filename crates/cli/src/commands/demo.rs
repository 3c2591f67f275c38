//! `codespar demo`.

use std::{
    path::Path,
    process::{Command, ExitCode},
    sync::Arc,
};

use async_trait::async_trait;
use clap::Args;
use codespar_agent::Approver;
use codespar_protocol::{Answer, Message, Outcome, Question};
use codespar_tasks::AtEnd;
use tokio_util::sync::CancellationToken;

use crate::{
    args::SessionArgs,
    assemble::{Company, Ground},
    error::CommandError,
    interactive::Screen,
    place::Place,
    style,
    works::{Role, Works},
};

const STATS: &str = include_str!("../demo/stats.sh");
const TEST: &str = include_str!("../demo/test.sh");
const ANSWERS: &str = include_str!("../demo/answers.jsonl");
const PROMPT: &str = "The median is wrong for some inputs. Find out why, fix it, and prove it.";

/// Show the agent at work, offline, on a sample repository in a temporary directory.
///
/// The model's answers are a recording; everything else (search, edit, sandboxed commands, git)
/// is real.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Keep the sample repository and say where it is.
    #[arg(long)]
    keep: bool,
}

/// The demo's own commands are known and harmless.
struct Yes;

#[async_trait]
impl Approver for Yes {
    async fn ask(&self, _question: Question) -> Answer {
        Answer::Once
    }
}

/// Runs it.
pub(crate) async fn run(args: &DemoArgs, place: &Place) -> Result<ExitCode, CommandError> {
    let dir = tempfile::Builder::new()
        .prefix("codespar-demo-")
        .tempdir()?;
    let repo = dir.path().canonicalize()?.join("sample");
    write_sample(&repo)?;
    let answers = dir.path().join("answers.jsonl");
    std::fs::write(&answers, ANSWERS)?;

    let screen = Arc::new(Screen::default());
    screen.say(&format!("{} {PROMPT}\n", style::good("›")));
    let ground =
        Ground::prepare(demo_place(place, dir.path(), &repo, &answers), plain_args()).await?;
    let works = Works::open(ground, Arc::new(Yes), Role::Session);
    let session = works.ground.open_session().await?;
    let events = screen.clone();
    let company = Company {
        sink: Arc::new(move |event| events.event(&event)),
        approver: Arc::new(Yes),
        note: None,
    };
    let mut agent = works.main_agent(session, company, AtEnd::Wait)?;
    let result = agent
        .run(Some(Message::user(PROMPT)), CancellationToken::new())
        .await;
    drop(agent);
    works.close().await;
    screen.end_of_turn(&result);
    if result.outcome != Outcome::Success {
        return Err(CommandError::Failed(
            "the demo did not come to its end".to_owned(),
        ));
    }
    screen.say(&format!(
        "\n{}\n{}",
        style::strong("What changed (git diff)"),
        git(&repo, &["diff"])?
    ));
    screen.say(&closing(args, &repo));
    if args.keep {
        let _ = dir.keep();
    }
    Ok(ExitCode::SUCCESS)
}

fn closing(args: &DemoArgs, repo: &Path) -> String {
    let kept = if args.keep {
        format!("\nThe sample is in {}", repo.display())
    } else {
        String::new()
    };
    format!(
        "{}\nScripted: the model's answers and their token counts (a recording shipped with this \
         program).\nReal: the search, the edit, the test runs in the sandbox, the session in SQLite, \
         git.\n\nOn your own repository: set ANTHROPIC_API_KEY (or OPENAI_API_KEY / OPENAI_BASE_URL \
         and --model), then run `codespar` in it, or `codespar -p \"…\"` from a script.{kept}",
        style::strong("What you saw"),
    )
}

fn write_sample(repo: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(repo)?;
    std::fs::write(repo.join("stats.sh"), STATS)?;
    std::fs::write(repo.join("test.sh"), TEST)?;
    git(repo, &["init", "--quiet"])?;
    git(repo, &["add", "."])?;
    let who = [
        "-c",
        "user.name=CodeSpar demo",
        "-c",
        "user.email=demo@codespar.invalid",
    ];
    git(
        repo,
        &[
            &who[..],
            &["commit", "--quiet", "--no-gpg-sign", "-m", "Sample"],
        ]
        .concat(),
    )?;
    Ok(())
}

fn git(repo: &Path, args: &[&str]) -> Result<String, CommandError> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repo)
        .args(args)
        .output()
        .map_err(|error| {
            CommandError::Failed(format!(
                "the demo needs git, which could not be run: {error}"
            ))
        })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(CommandError::Failed(format!(
            "git {}: {}",
            args.join(" "),
            words.trim()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A world of its own: no settings, no state and no key of the person's.
fn demo_place(place: &Place, dir: &Path, repo: &Path, answers: &Path) -> Place {
    let ours = |name: &str| {
        name.starts_with("CODESPAR_")
            || name.starts_with("ANTHROPIC_")
            || name.starts_with("OPENAI_")
    };
    let mut vars: Vec<_> = place
        .vars
        .iter()
        .filter(|(name, _)| !name.to_str().is_some_and(ours))
        .cloned()
        .collect();
    vars.push((
        "CODESPAR_CASSETTE".into(),
        format!("replay:{}", answers.display()).into(),
    ));
    Place {
        home: None,
        state: dir.join("state"),
        root: repo.to_path_buf(),
        cwd: repo.to_path_buf(),
        vars,
    }
}

fn plain_args() -> SessionArgs {
    SessionArgs {
        model: None,
        max_turns: Some(10),
        max_budget_usd: None,
        allowed_tools: vec!["Bash(sh test.sh),Edit".to_owned()],
        disallowed_tools: Vec::new(),
        permission_mode: None,
        dangerously_skip_permissions: false,
        append_system_prompt: None,
        add_dir: Vec::new(),
        resume: None,
        continue_last: false,
        coordinator: false,
        cwd: None,
    }
}
