//! `codespar pr checkout`.

use std::process::ExitCode;

use codespar_runtime::{CheckedOut, ProjectDir, RepositoryLinker, Settings, which};
use serde_json::json;

use super::{pr::failed, pull_words::PullTarget};
use crate::{error::CommandError, printer::plain, style};

/// Switches the work tree, and says how to go back.
pub(super) async fn checkout(
    target: PullTarget,
    project_dir: &ProjectDir,
) -> Result<ExitCode, CommandError> {
    let PullTarget { number, at, .. } = target;
    let settings = Settings::load(project_dir)?;
    let repository = which(project_dir, &settings, at.repo.as_deref())?;
    let here = which(project_dir, &settings, None).ok();
    let store = project_dir.environment.open_database().await?;
    let linker = RepositoryLinker {
        project_dir: project_dir.clone(),
        store: store.clone(),
    };
    let outcome = linker.check_out(&repository, here.as_ref(), number).await;
    let closed = store.close().await;
    let done = outcome.map_err(failed)?;
    closed?;
    let back = back(&done);
    if at.json {
        super::print_json(&json!({
            "number": number,
            "branch": done.branch,
            "commit": done.commit,
            "from": done.from,
            "back": back,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    super::print(format_args!(
        "{} {} at {} (#{number}: {})\n",
        style::good(match done.from.as_ref() == Some(&done.branch) {
            true => "on",
            false => "switched to",
        }),
        plain(&done.branch),
        done.commit.short(),
        plain(&done.title)
    ))?;
    if done.from.as_ref() != Some(&done.branch) {
        super::print(format_args!("Go back with: {}\n", plain(&back)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The command that undoes it.
fn back(done: &CheckedOut) -> String {
    match &done.from {
        Some(branch) => format!("git switch {}", quoted(branch)),
        None => format!("git switch --detach {}", done.from_commit.short()),
    }
}

/// A name for a shell. Git allows most characters in the name of a branch.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.-+=@".contains(c);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_name_of_a_branch_is_one_word_for_a_shell() {
        assert_eq!(quoted("codespar/task-1"), "codespar/task-1");
        assert_eq!(quoted("a;$(x)'b"), r"'a;$(x)'\''b'");
    }
}
