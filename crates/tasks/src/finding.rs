//! Tasks by id, or by the beginning of one.
//!
//! A prefix is looked for only if the text has the form of one, so that the name of an agent, such
//! as `a-team`, is not taken for an id.

use std::collections::HashSet;

use codespar_protocol::{SessionId, TaskId, TaskRecord, TaskType};
use codespar_store::{StoreError, TaskFilter, TaskStore};

use crate::HubError;

/// How many candidates an error names.
const NAMED: usize = 8;

/// A task by its id or a beginning that only one id has, among those that `within` takes. `None` if
/// the text is neither.
///
/// A whole id that no task has is the error of the store; a prefix that no id has is `None`, so
/// that the caller can try the text as a name. A whole id is not checked against `within`: callers
/// that care look at the authority of the task.
pub async fn find_task(
    store: &dyn TaskStore,
    text: &str,
    within: TaskFilter,
) -> Result<Option<TaskId>, HubError> {
    if let Ok(id) = text.parse::<TaskId>() {
        return Ok(Some(store.task(&id).await?.task_id));
    }
    if !is_beginning(text) {
        return Ok(None);
    }
    let filter = TaskFilter {
        id_prefix: Some(text.to_owned()),
        ..within
    };
    let tasks = store.tasks(filter).await?;
    only_one(text, &tasks)
}

fn only_one(text: &str, tasks: &[TaskRecord]) -> Result<Option<TaskId>, HubError> {
    match tasks {
        [] => Ok(None),
        [only] => Ok(Some(only.task_id.clone())),
        many => {
            let mut lines: Vec<String> = many
                .iter()
                .rev()
                .take(NAMED)
                .map(|task| format!("{} ({})", task.task_id, task.subject))
                .collect();
            if many.len() > NAMED {
                lines.push(format!("{} more", many.len() - NAMED));
            }
            Err(HubError::Refused(format!(
                "`{text}` begins several ids: {}",
                lines.join(", ")
            )))
        }
    }
}

/// The same for what a user types: also in capitals, and without the letter of the type.
///
/// Not for agents, whose names (`cafe`) may look like digits of an id.
pub async fn find_typed_task(
    store: &dyn TaskStore,
    text: &str,
) -> Result<Option<TaskId>, HubError> {
    let text = text.trim().to_lowercase();
    let is_digits = (1..=8).contains(&text.len()) && text.bytes().all(is_digit);
    if !is_digits {
        return find_task(store, &text, TaskFilter::default()).await;
    }
    let mut found: Vec<TaskRecord> = Vec::new();
    for kind in TaskType::ALL {
        let filter = TaskFilter {
            id_prefix: Some(format!("{}-{text}", kind.prefix())),
            ..TaskFilter::default()
        };
        found.extend(store.tasks(filter).await?);
    }
    only_one(&text, &found)
}

/// A letter of a type, `-`, and one to seven hexadecimal digits in lower case. Eight are a whole
/// id.
fn is_beginning(text: &str) -> bool {
    let is_letter = |letter: &str| {
        TaskType::ALL
            .iter()
            .any(|kind| letter.chars().eq([kind.prefix()]))
    };
    text.split_once('-').is_some_and(|(letter, digits)| {
        is_letter(letter) && !digits.is_empty() && digits.len() < 8 && digits.bytes().all(is_digit)
    })
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// Conversations of agents. They are in the same directories as those that a user began, and
/// nobody means them by "the last session": their results are in the session that started them.
pub async fn agent_sessions(tasks: &dyn TaskStore) -> Result<HashSet<SessionId>, StoreError> {
    let mut found = HashSet::new();
    for task_type in TaskType::ALL.into_iter().filter(|kind| kind.is_agent()) {
        let filter = TaskFilter {
            task_type: Some(task_type),
            ..TaskFilter::default()
        };
        for task in tasks.tasks(filter).await? {
            if let Some(agent) = task.agent() {
                found.insert(agent.agent_session);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::is_beginning;

    #[test]
    fn beginnings_of_ids_are_told_from_names() {
        for text in ["a-1", "b-00ff000"] {
            assert!(is_beginning(text), "{text}");
        }
        for text in ["a", "a-", "x-1", "a-1f3c2b8a", "a-xyz", "ann-1", "a-1F"] {
            assert!(!is_beginning(text), "{text}");
        }
    }
}
