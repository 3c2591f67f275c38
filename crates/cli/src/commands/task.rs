//! `codespar task`: the tasks of all processes, through their records in the database.
//!
//! Nothing runs here. A task is created as a record that a worker claims; `stop` asks the process
//! that holds the lease and waits for the record to say so; `output` and `watch` read the file, and
//! wait for changes of the store instead of asking it again and again. So each verb works the same
//! whichever host runs the task.

use std::{process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use codespar_policy::Mode;
use codespar_protocol::{Labels, OnDependencyFailure, TaskId, TaskRecord, TaskStatus, TaskType};
use codespar_store::{Database, NewTask, Notify, OwnerRule, TaskChange, TaskFilter};
use codespar_tasks::{HubError, OutputPart, TaskOutputs, find_typed_task};
use serde_json::{Value, json};

use super::{
    task_questions::{self, AnswerArgs, QuestionsArgs},
    task_runner::{Vigil, WaitFor, start_runner_if_none},
    task_spec,
    task_text::{details, line},
};
use crate::{args::mode, error::CommandError, style};
use codespar_runtime::{ProjectDir, Settings, engine_page, tasks_disabled};

/// A runner out of sight counts as silent after ten heartbeats, about ten seconds; only then
/// another one acts on the stop.
const STOP_PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of output that `watch` reads at a time.
const OUTPUT_LIMIT: usize = 1 << 20;

/// Create, watch and stop background tasks.
///
/// A task is run by a codespar process of the same project or by a worker; if no worker is running,
/// one is started in the background and exits when no task is left. The permissions of a task are
/// fixed when it is created, by the settings and the options; no process that runs it can widen them.
///
/// Example: codespar task create --type local_bash --subject "build" --command "cargo build"
#[derive(Args)]
pub(crate) struct TaskCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Create(CreateArgs),
    /// Show a task.
    Get {
        /// The id of the task, or a unique prefix of it.
        id: String,
        /// Print JSON: the record, with `task_id`, `task_type`, `status`, `subject`, `error`,
        /// `exit_code`, `usage`, `cost_usd` and others; times as RFC 3339 and, with `_unix` added to
        /// the name, in seconds since 1970; fields may be added, never renamed.
        #[arg(long)]
        json: bool,
    },
    /// List tasks, oldest first.
    List {
        /// Only pending, running, completed, failed or killed ones.
        #[arg(long)]
        status: Option<TaskStatus>,
        /// Show only the newest N tasks.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
        limit: u32,
        /// Print JSON: `tasks`, each with the fields of `task get`.
        #[arg(long)]
        json: bool,
    },
    Update(UpdateArgs),
    /// Stop a task with all its processes.
    Stop {
        /// The id of the task, or a unique prefix of it.
        id: String,
        /// The reason that the record and the notification give
        #[arg(long, default_value = "stopped by user")]
        reason: String,
        /// Print the record as JSON, with the fields of `task get`.
        #[arg(long)]
        json: bool,
    },
    Output(OutputArgs),
    /// Follow a task's output until it is over; exit 1 if it did not complete.
    Watch {
        /// The id of the task, or a unique prefix of it.
        id: String,
    },
    Questions(QuestionsArgs),
    Answer(AnswerArgs),
}

/// Create a task.
#[derive(Args)]
pub(super) struct CreateArgs {
    /// local_bash, local_agent, remote_agent (taken by `codespar worker`), local_workflow, dream or
    /// monitor_mcp.
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) task_type: TaskType,
    /// A one-line description.
    #[arg(long)]
    subject: String,
    /// A longer description.
    #[arg(long)]
    description: Option<String>,
    /// What to show while the task runs, such as "Building".
    #[arg(long)]
    active_form: Option<String>,
    /// The command of a local_bash task.
    #[arg(long)]
    pub(super) command: Option<String>,
    /// The prompt of an agent.
    #[arg(long)]
    pub(super) prompt: Option<String>,
    /// The workflow of a local_workflow task: a name in .codespar/workflows, or a path.
    #[arg(long, value_name = "NAME|PATH")]
    pub(super) workflow: Option<String>,
    /// Ids of tasks that must complete first.
    #[arg(long, value_name = "ID", num_args = 1..)]
    blocked_by: Vec<String>,
    /// When one of these does not complete: fail with it, or run all the same.
    #[arg(long, value_name = "fail|run", default_value = "fail")]
    on_dependency_failure: OnDependencyFailure,
    /// End a command or an agent after this many seconds. Default: no limit for a command,
    /// `maxWallSeconds` of the settings for an agent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_wall_seconds: Option<u64>,
    /// The most permissive mode the task may run in, whichever process runs it: default,
    /// acceptEdits, plan, dontAsk or bypassPermissions. Default: the mode in the settings.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(super) permission_mode: Option<Mode>,
    /// Allow an agent these tools without asking: `"Bash(git log *),Read"`. May be repeated.
    #[arg(
        long = "allowedTools",
        visible_alias = "allowed-tools",
        value_name = "RULES",
        num_args = 1
    )]
    pub(super) allowed_tools: Vec<String>,
    /// Metadata to store with the task; `subagent_type=Explore` chooses an agent's kind, `server=NAME` what
    /// a monitor_mcp task watches.
    #[arg(long, value_name = "K=V", num_args = 1.., value_parser = key_value)]
    pub(super) metadata: Vec<(String, Value)>,
    /// Run it only where this label is offered (`codespar worker --label`). May be repeated: all of
    /// them must be.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Print the record as JSON, with the fields of `task get`.
    #[arg(long)]
    json: bool,
}

/// Change a task's record.
#[derive(Args)]
struct UpdateArgs {
    /// The id of the task, or a unique prefix of it.
    id: String,
    /// The new status.
    #[arg(long)]
    status: Option<TaskStatus>,
    /// A one-line description.
    #[arg(long)]
    subject: Option<String>,
    /// A longer description.
    #[arg(long)]
    description: Option<String>,
    /// What to show while the task runs, such as "Building".
    #[arg(long)]
    active_form: Option<String>,
    /// Metadata to store with the task.
    #[arg(long, value_name = "K=V", num_args = 1.., value_parser = key_value)]
    metadata: Vec<(String, Value)>,
    /// Ids of further tasks that must complete first.
    #[arg(long, value_name = "ID", num_args = 1..)]
    add_blocked_by: Vec<String>,
    /// Assign the task to this owner; refused if it has one. An empty value releases it.
    #[arg(long)]
    owner: Option<String>,
    /// Print the record as JSON, with the fields of `task get`.
    #[arg(long)]
    json: bool,
}

/// Print a task's output.
#[derive(Args)]
struct OutputArgs {
    /// The id of the task, or a unique prefix of it.
    id: String,
    /// Start at this byte.
    #[arg(long, default_value_t = 0)]
    offset: u64,
    /// Print at most this many bytes.
    #[arg(long, default_value_t = OUTPUT_LIMIT)]
    limit: usize,
    /// Wait until the task has ended.
    #[arg(long)]
    block: bool,
    /// How long to wait, with --block.
    #[arg(long, default_value_t = 600_000)]
    timeout_ms: u64,
    /// Print JSON: `task_id`, `status`, `output`, and `next_offset` for the next --offset.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(
    args: TaskCommand,
    project_dir: ProjectDir,
) -> Result<ExitCode, CommandError> {
    let store = project_dir.environment.open_database().await?;
    let outputs = || project_dir.environment.task_outputs(&store);
    let code = match args.verb {
        Verb::Create(args) => create(args, &project_dir, &*store).await?,
        Verb::Get { id, json } => {
            let record = store.task(&find(&*store, &id).await?).await?;
            let page = engine_page(&project_dir.environment, &record.task_id);
            get(&record, page, json)?
        }
        Verb::List {
            status,
            limit,
            json,
        } => {
            let filter = TaskFilter {
                status,
                limit: Some(limit),
                ..TaskFilter::default()
            };
            list(&store.tasks(filter).await?, json)?
        }
        Verb::Update(args) => update(args, &*store).await?,
        Verb::Stop { id, reason, json } => {
            stop(
                &find(&*store, &id).await?,
                &reason,
                json,
                (&project_dir, &*store),
            )
            .await?
        }
        Verb::Output(args) => output(&args, &outputs()?, &project_dir, &*store).await?,
        Verb::Questions(args) => task_questions::list(&args, &*store).await?,
        Verb::Answer(args) => task_questions::answer(&args, &project_dir, &*store).await?,
        Verb::Watch { id } => {
            let id = find(&*store, &id).await?;
            watch(&id, &outputs()?, &project_dir, &*store).await?
        }
    };
    store.close().await?;
    Ok(code)
}

/// A task by its id, or by a beginning that only one id has.
pub(crate) async fn find(store: &dyn Database, text: &str) -> Result<TaskId, CommandError> {
    match find_typed_task(store, text).await {
        Ok(Some(id)) => Ok(id),
        Ok(None) => Err(CommandError::Usage(format!(
            "`{text}` is not a task id or a prefix of one; `codespar task list` shows those \
             there are"
        ))),
        Err(HubError::Store(error)) => Err(error.into()),
        Err(HubError::Refused(message)) => Err(CommandError::Usage(message)),
    }
}

/// In the order that was given. The first that is not found is the error.
async fn find_all(store: &dyn Database, texts: &[String]) -> Result<Vec<TaskId>, CommandError> {
    let mut ids = Vec::with_capacity(texts.len());
    for text in texts {
        ids.push(find(store, text).await?);
    }
    Ok(ids)
}

/// Nobody runs it in this process: a worker is started if none is there.
async fn create(
    args: CreateArgs,
    project_dir: &ProjectDir,
    store: &dyn Database,
) -> Result<ExitCode, CommandError> {
    let settings = Settings::load(project_dir)?;
    if let Some(reason) = tasks_disabled(project_dir, &settings) {
        return Err(CommandError::Failed(reason));
    }
    let labels = Labels::new(args.labels.iter().cloned())
        .map_err(|error| CommandError::Usage(format!("--label: {error}")))?;
    let id = TaskId::new(args.task_type);
    let outputs = TaskOutputs::new(project_dir.environment.output_dir());
    let spec = task_spec::of(&args, project_dir, store).await?;
    let authority = task_spec::authority(&args, &settings, project_dir)?;
    let new = NewTask {
        output_file: Some(outputs.new_file(authority.tree, &id)),
        id,
        spec,
        authority,
        reserved_for: None,
        labels,
        on_dependency_failure: args.on_dependency_failure,
        subject: args.subject,
        description: args.description,
        active_form: args.active_form,
        metadata: args.metadata.into_iter().collect(),
        blocked_by: find_all(store, &args.blocked_by).await?,
        session_id: None,
        parent_task_id: None,
        notify: Notify::Nobody,
        made_under: None,
        start_here: None,
    };
    let records = store.create_tasks(vec![new]).await?;
    start_runner_if_none(project_dir, store).await?;
    let Some(record) = records.into_iter().next() else {
        let message = "the store gave no record back";
        return Err(CommandError::Failed(message.to_owned()));
    };
    if args.json {
        super::print_json(&record.view())?;
    } else {
        let mut hint = format!("`codespar task watch {}` follows it", record.task_id);
        if record.task_type == TaskType::RemoteAgent {
            hint.push_str("; a `codespar worker` takes it");
        }
        super::print(format_args!("{}\n{}\n", line(&record), style::faint(hint)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// An owner is claimed only if there is none; an empty one gives the task back.
async fn update(args: UpdateArgs, store: &dyn Database) -> Result<ExitCode, CommandError> {
    let change = TaskChange {
        status: args.status,
        subject: args.subject,
        description: args.description,
        active_form: args.active_form,
        metadata: args.metadata.into_iter().collect(),
        add_blocked_by: find_all(store, &args.add_blocked_by).await?,
        owner_must_be_free: match args.owner.as_deref() {
            Some("") | None => OwnerRule::Replace,
            Some(_) => OwnerRule::ClaimFree,
        },
        owner: args
            .owner
            .map(|name| Some(name).filter(|name| !name.is_empty())),
    };
    show(
        &store
            .change_task(&find(store, &args.id).await?, change)
            .await?,
        args.json,
    )
}

/// Returns when the task has ended, or after the patience with the record as it is.
async fn stop(
    id: &TaskId,
    reason: &str,
    json: bool,
    (project_dir, store): (&ProjectDir, &dyn Database),
) -> Result<ExitCode, CommandError> {
    let mut vigil = Vigil::new(project_dir, store).await?;
    let mut record = store.stop_task(id, reason).await?;
    while !record.status.is_final() && vigil.began.elapsed() < STOP_PATIENCE {
        vigil.wait(WaitFor::Record).await?;
        record = store.task(id).await?;
    }
    show(&record, json)
}

/// With `--block` it waits for the end of the task, at most for the time limit; then it prints what
/// there is, whether or not the task has ended.
async fn output(
    args: &OutputArgs,
    outputs: &TaskOutputs,
    project_dir: &ProjectDir,
    store: &dyn Database,
) -> Result<ExitCode, CommandError> {
    let id = find(store, &args.id).await?;
    let mut vigil = Vigil::new(project_dir, store).await?;
    let mut record = store.task(&id).await?;
    while args.block
        && !record.status.is_final()
        && vigil.began.elapsed() < Duration::from_millis(args.timeout_ms)
    {
        vigil.wait(WaitFor::Record).await?;
        record = store.task(&id).await?;
    }
    let OutputPart { text, next } = outputs.read(&record, args.offset, args.limit).await?;
    if args.json {
        super::print_json(
            &json!({ "task_id": id, "status": record.status, "output": text, "next_offset": next }),
        )?;
    } else {
        super::print(format_args!("{text}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that was written before is shown first. Ctrl-C ends the watching, not the task.
async fn watch(
    id: &TaskId,
    outputs: &TaskOutputs,
    project_dir: &ProjectDir,
    store: &dyn Database,
) -> Result<ExitCode, CommandError> {
    let mut vigil = Vigil::new(project_dir, store).await?;
    let mut offset = 0;
    let (mut shown, mut asked) = (None, Vec::new());
    loop {
        let record = store.task(id).await?;
        if shown != Some(record.status) {
            crate::printer::err(format_args!("{}", line(&record)));
            shown = Some(record.status);
        }
        loop {
            let OutputPart { text, next } = outputs.read(&record, offset, OUTPUT_LIMIT).await?;
            if next == offset {
                break;
            }
            offset = next;
            super::print(format_args!("{text}"))?;
        }
        for question in task_questions::of_task(store, id).await? {
            if !asked.contains(&question.id) {
                crate::printer::err(format_args!("{}", task_questions::hint(&question)));
                asked.push(question.id);
            }
        }
        if record.status.is_final() {
            let is_done = record.status == TaskStatus::Completed;
            return Ok(if is_done {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        vigil.wait(WaitFor::RecordOrOutput).await?;
    }
}

/// The JSON has the whole records, the lines what is needed to choose one.
fn list(tasks: &[TaskRecord], json: bool) -> Result<ExitCode, CommandError> {
    if json {
        let tasks: Vec<_> = tasks.iter().map(TaskRecord::view).collect();
        super::print_json(&json!({ "tasks": tasks }))?;
    } else if tasks.is_empty() {
        super::print(format_args!("no tasks\n"))?;
    } else {
        for task in tasks {
            super::print(format_args!("{}\n", line(task)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// With the page on which an engine shows it, if there is one.
fn get(record: &TaskRecord, page: Option<String>, json: bool) -> Result<ExitCode, CommandError> {
    let Some(page) = page else {
        return show(record, json);
    };
    if json {
        let mut view = json!(record.view());
        view["engine_url"] = page.into();
        super::print_json(&view)?;
    } else {
        super::print(format_args!(
            "{}\n  {:<10} {page}\n",
            details(record),
            "engine"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The record after a change, so that whoever made it sees what is so now.
fn show(record: &TaskRecord, json: bool) -> Result<ExitCode, CommandError> {
    if json {
        super::print_json(&record.view())?;
    } else {
        super::print(format_args!("{}\n", details(record)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `count=3` is a number and `name=three` a text, as in the JSON that a program would write.
fn key_value(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    // JSON where it is JSON, else a plain word.
    let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
    Ok((key.to_owned(), value))
}
