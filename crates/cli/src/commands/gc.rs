//! `codespar gc`, and the same once a day by itself.
//!
//! ```text
//! sessions, tasks            in the database, by their last use
//! objects                    of tasks that are gone
//! outputs, tmp, scratchpads,
//! checkpoints                of sessions that are gone
//! tmp, dev/runs              of tasks that are over, or that a kill left behind
//! dev/index, before, deps,
//! clones                     not written to for as long; made again when needed
//! ```
//!
//! Everything is safe beside other processes: what is held by one is skipped. A file that cannot be
//! removed is left for the next time, without an error.

mod daily;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use codespar_protocol::{SessionId, TaskId, TaskStatus};
use codespar_store::{Database, SessionFilter, StoreError};
use jiff::{Timestamp, ToSpan};
use serde_json::json;

pub(crate) use self::daily::{daily, for_as_long};
use crate::{error::CommandError, progress::Progress};
use codespar_runtime::{ProjectDir, SessionDirs, Settings};

const DEFAULT_DAYS: u32 = 30;

/// Remove old sessions, tasks and outputs.
///
/// Removes what has not been used for 30 days (`cleanupPeriodDays` in your settings), including
/// indexes, clones, installed dependencies and test results of the dev agent. A session in use is left alone. Sessions and
/// workers do the same once a day.
///
/// Example: codespar gc --days 7
#[derive(Args)]
pub(crate) struct GcArgs {
    /// Remove what was last used more than this many days ago.
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// Show what would be removed; remove nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: `sessions` (ids), `bytes` (freed; null with --dry-run) and `dry_run`.
    #[arg(long)]
    json: bool,
}

/// A dry run counts sessions only: sizes are known when things are removed.
pub(crate) async fn run(args: &GcArgs, project_dir: &ProjectDir) -> Result<ExitCode, CommandError> {
    let settings = Settings::load(project_dir)?;
    let days = args.days.unwrap_or_else(|| days_of(&settings));
    let store = project_dir.environment.open_database().await?;
    if args.dry_run {
        let before = limit(days);
        let all = store.sessions(SessionFilter::default()).await?;
        let old: Vec<SessionId> = all
            .iter()
            .filter(|session| session.updated_at < before)
            .map(|session| session.id)
            .collect();
        return report(args, &old, None, days);
    }
    let progress = match args.json {
        true => Progress::nowhere(),
        false => Progress::beside_result().until_signal(),
    };
    let collected = collect(&store, project_dir, days, &progress).await;
    progress.rest();
    let (sessions, bytes) = collected?;
    store.close().await?;
    daily::note(project_dir);
    report(args, &sessions, Some(bytes), days)
}

fn days_of(settings: &Settings) -> u32 {
    settings.cleanup_period_days.unwrap_or(DEFAULT_DAYS)
}

fn limit(days: u32) -> Timestamp {
    Timestamp::now() - (24 * i64::from(days)).hours()
}

/// Removes what is older; gives the sessions that are gone and the bytes they and the rest took.
///
/// The database comes first. If the process is killed in between, directories without session are
/// found by the next run.
async fn collect(
    store: &Arc<dyn Database>,
    project_dir: &ProjectDir,
    days: u32,
    progress: &Progress,
) -> Result<(Vec<SessionId>, u64), CommandError> {
    let before = limit(days);
    progress.doing("Removing old sessions");
    let removed = store.remove_sessions_before(before).await?;
    let mut bytes = removed.bytes;
    progress.doing("Removing old tasks");
    let tasks = store.remove_tasks_before(before).await?;
    progress.doing("Removing outputs");
    bytes += remove_outputs(&project_dir.environment.output_dir(), &tasks);
    if let Some(shared) = project_dir.environment.shared_outputs(store)?
        && let Err(error) = shared.remove_objects().await
    {
        tracing::warn!(%error, "objects of removed tasks are left for the next time");
    }
    // Listed before the sessions are: a directory of a session that begins now is not taken for
    // one whose session is gone.
    let dirs: Vec<PathBuf> = ["outputs", "tmp", "scratchpads", "checkpoints"]
        .iter()
        .flat_map(|name| entries(&project_dir.state().join(name)))
        .collect();
    let known: Vec<SessionId> = store
        .sessions(SessionFilter::default())
        .await?
        .iter()
        .map(|session| session.id)
        .collect();
    bytes += remove_strays(&dirs, &known);
    progress.doing("Removing temporary files");
    bytes += remove_dead_temps(project_dir, &**store, &known).await;
    let is_over = |status: TaskStatus| status.is_final();
    bytes += remove_task_temps(&project_dir.state().join("tmp"), &**store, is_over).await;
    // One that failed can be resumed as long as it is on record.
    let is_completed = |status: TaskStatus| status == TaskStatus::Completed;
    let runs = project_dir.state().join("dev/runs");
    bytes += remove_task_temps(&runs, &**store, is_completed).await;
    progress.doing("Removing caches");
    for name in ["dev/before", "dev/deps", "dev/index", "clones"] {
        bytes += remove_older(&project_dir.state().join(name), days);
    }
    // Of test runs that were killed; a living one is never that old.
    bytes += remove_verify_temps(&project_dir.state().join("tmp"));
    Ok((removed.sessions, bytes))
}

fn report(
    args: &GcArgs,
    sessions: &[SessionId],
    bytes: Option<u64>,
    days: u32,
) -> Result<ExitCode, CommandError> {
    if args.json {
        super::print_json(
            &json!({ "sessions": sessions, "bytes": bytes, "dry_run": args.dry_run }),
        )?;
    } else {
        let word = if args.dry_run {
            "would remove"
        } else {
            "removed"
        };
        let count = sessions.len();
        super::print(format_args!(
            "{word} {count} sessions last used more than {days} days ago"
        ))?;
        match bytes {
            Some(bytes) => super::print(format_args!(", {} KiB freed\n", bytes / 1024))?,
            None => super::print(format_args!("\n"))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Empty for a directory that does not exist.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect()
}

/// Outputs of tasks, in the directories of their trees and, of earlier versions, beside them. A
/// directory of a tree is removed when its last output is.
fn remove_outputs(dir: &Path, tasks: &[TaskId]) -> u64 {
    let names: HashSet<String> = tasks.iter().map(|id| format!("{id}.txt")).collect();
    if names.is_empty() {
        return 0;
    }
    let is_old = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        names.contains(&*name)
    };
    let remove_from = |dir: &Path| -> u64 {
        let old = entries(dir).into_iter().filter(is_old);
        old.map(|path| remove_file(&path)).sum()
    };
    let mut bytes = remove_from(dir);
    for tree in entries(dir).into_iter().filter(|path| path.is_dir()) {
        let freed = remove_from(&tree);
        if freed > 0 {
            // One that still has outputs stays.
            std::fs::remove_dir(&tree).ok();
        }
        bytes += freed;
    }
    bytes
}

/// Directories of sessions that are no longer there. A name that is no session id is not ours to
/// remove.
fn remove_strays(dirs: &[PathBuf], known: &[SessionId]) -> u64 {
    let strays = dirs.iter().filter(|dir| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        name.parse::<SessionId>()
            .is_ok_and(|id| !known.contains(&id))
    });
    strays.map(|dir| remove_dir(dir)).sum()
}

/// Temporary files of sessions that no process holds: left by a kill. Holding the session proves
/// that no process uses it, and keeps one from starting meanwhile.
async fn remove_dead_temps(
    project_dir: &ProjectDir,
    store: &dyn Database,
    known: &[SessionId],
) -> u64 {
    let mut bytes = 0;
    for id in known {
        let temp = SessionDirs::of(project_dir.state(), *id).temp;
        if temp.exists()
            && let Ok(_hold) = store.hold_session(*id).await
        {
            bytes += remove_dir(&temp);
        }
    }
    bytes
}

/// The same of tasks that are not needed any more or forgotten. A task that the store cannot tell
/// of, busy or broken, keeps its files.
async fn remove_task_temps(
    dir: &Path,
    store: &dyn Database,
    is_done: impl Fn(TaskStatus) -> bool,
) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    let mut bytes = 0;
    for entry in entries.filter_map(Result::ok) {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<TaskId>() else {
            continue;
        };
        let is_needed = match store.task(&id).await {
            Ok(task) => !is_done(task.status),
            Err(StoreError::NoSuchTask(_)) => false,
            Err(_) => true,
        };
        if !is_needed {
            bytes += remove_dir(&entry.path());
        }
    }
    bytes
}

/// What was not written to for so long: it is made anew when it is needed.
fn remove_older(dir: &Path, days: u32) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    let limit = Duration::from_secs(24 * 3600 * u64::from(days));
    let mut bytes = 0;
    for entry in entries.filter_map(Result::ok) {
        // Fetching writes into a clone, not to its directory.
        let touched = [entry.path(), entry.path().join("FETCH_HEAD")]
            .iter()
            .filter_map(|path| path.metadata().ok()?.modified().ok()?.elapsed().ok())
            .min();
        if touched.is_some_and(|age| age > limit) {
            bytes += match entry.path().is_dir() {
                true => remove_dir(&entry.path()),
                false => remove_file(&entry.path()),
            };
        }
    }
    bytes
}

/// By age alone: such a directory belongs to a test run and has no record.
fn remove_verify_temps(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    let is_old = |entry: &std::fs::DirEntry| {
        let age = entry.metadata().ok()?.modified().ok()?.elapsed().ok()?;
        Some(age > Duration::from_secs(24 * 3600))
    };
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("verify-"))
        .filter(|entry| is_old(entry) == Some(true))
        .map(|entry| remove_dir(&entry.path()))
        .sum()
}

fn remove_file(path: &Path) -> u64 {
    let bytes = std::fs::metadata(path).map_or(0, |meta| meta.len());
    match std::fs::remove_file(path) {
        Ok(()) => bytes,
        Err(_) => 0,
    }
}

/// The bytes that were freed; 0 if it could not be removed completely.
fn remove_dir(dir: &Path) -> u64 {
    let bytes = size(dir);
    let removed = std::fs::remove_dir_all(dir).or_else(|_| {
        open_up(dir);
        std::fs::remove_dir_all(dir)
    });
    match removed {
        Ok(()) => bytes,
        Err(_) => 0,
    }
}

/// Overlays and package managers leave directories that not even their owner may enter or change.
fn open_up(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// Bytes of all files below. Links are not followed; what cannot be read counts as nothing.
fn size(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    entries
        .filter_map(Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}
