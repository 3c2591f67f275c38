//! The names of queues: where runners look for ready tasks.
//!
//! ```text
//! TYPE[LABELS]@HOLD#ROOT
//!   [LABELS]   what a runner must offer, `[gpu,repo:acme/api]`; left out if nothing
//!   @RUNNER    only for this runner while it lives
//!   @MARK|REPOSITORY|USER   for everyone; MARK is `+` where limits do not count its tasks.
//!              Left out where all three are empty
//!   #ROOT      the root of the project; the rest of the name, whatever is in it
//! ```
//!
//! A queue has everything in its name that decides whether and when its tasks may be taken. So a
//! claim decides about whole queues, and never reads past tasks that must wait to find one that
//! need not: neither those of a repository that is at its limit, nor those in front of the steps of
//! a workflow that holds the only place.
//!
//! Processes of the version before take what follows `@` for the name of a runner, which is not
//! there: such a queue is open to them, as it was. One with labels is not, since `TYPE[LABELS]` is
//! no type that they know.

use std::borrow::Cow;

use codespar_protocol::{Labels, TaskType};

use super::{super::rows::path_text, row::list_of};
use crate::{NewTask, StoreError};

/// Marks a queue whose tasks limits do not count.
const UNCOUNTED: &str = "+";

/// What the name of a queue says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) task_type: TaskType,
    pub(super) labels: Labels,
    pub(super) reserved_for: Option<String>,
    /// Absent in queues of an early version, of which nobody knows the project.
    pub(super) root: Option<String>,
    /// Takes turns with others. That of a reserved queue is its root: the runner it is reserved
    /// for takes it from nobody.
    pub(super) repository: String,
    pub(super) user: Option<String>,
    /// Somebody asked for these tasks: they wait while a limit is reached. Others are admitted with
    /// the task that made them, or with the process that they are reserved for or were born in.
    pub(super) is_counted: bool,
}

impl Queue {
    /// `None` for the list of a team, which runners take nothing from.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (head, root) = match name.split_once('#') {
            Some((head, root)) => (head, Some(root)),
            None => (name, None),
        };
        let (kind, hold) = match head.split_once('@') {
            Some((kind, hold)) => (kind, Some(hold)),
            None => (head, None),
        };
        let (task_type, labels) = match kind.split_once('[') {
            Some((task_type, labels)) => (task_type, labels.strip_suffix(']')?),
            None => (kind, ""),
        };
        let mut parts = hold.unwrap_or_default().splitn(3, '|');
        let (first, repository, user) = (parts.next(), parts.next(), parts.next());
        let given = |text: Option<&str>| text.map(unescaped).filter(|text| !text.is_empty());
        Some(Self {
            task_type: task_type.parse().ok()?,
            labels: labels.parse().ok()?,
            reserved_for: hold.filter(|hold| !hold.contains('|')).map(str::to_owned),
            root: root.map(str::to_owned),
            repository: given(repository)
                .or(root.map(str::to_owned))
                .unwrap_or_default(),
            user: given(user),
            is_counted: hold.is_none() || repository.is_some() && first != Some(UNCOUNTED),
        })
    }
}

/// The name of the queue of a new task.
pub(super) fn name_of(task: &NewTask) -> Result<String, StoreError> {
    if let Some(team) = task.spec.team_list() {
        return Ok(list_of(team));
    }
    let task_type = task.spec.task_type();
    let labels = match task.labels.is_empty() {
        true => String::new(),
        false => format!("[{}]", task.labels),
    };
    let root = path_text(&task.authority.project_root)?;
    Ok(format!("{task_type}{labels}{}#{root}", hold_of(task, root)))
}

fn hold_of(task: &NewTask, root: &str) -> String {
    if let Some(runner) = &task.reserved_for {
        return format!("@{}", runner.0);
    }
    let is_admitted = task.parent_task_id.is_some() || task.start_here.is_some();
    let mark = if is_admitted { UNCOUNTED } else { "" };
    let repository = task.authority.repository.as_deref();
    let repository = escaped(repository.filter(|name| *name != root).unwrap_or_default());
    let user = escaped(task.authority.user.as_deref().unwrap_or_default());
    match (mark, &*repository, &*user) {
        ("", "", "") => String::new(),
        (mark, repository, user) => format!("@{mark}|{repository}|{user}"),
    }
}

/// What has a meaning in the name of a queue, and how it is written in a part of it. The first is
/// the one that the others are written with.
const ESCAPES: [(&str, &str); 3] = [("%", "%25"), ("#", "%23"), ("|", "%7C")];

fn escaped(text: &str) -> Cow<'_, str> {
    match text.contains(['%', '#', '|']) {
        true => ESCAPES
            .iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
            .into(),
        false => text.into(),
    }
}

fn unescaped(text: &str) -> String {
    let undo = |text: String, (to, from): &(&str, &str)| text.replace(from, to);
    ESCAPES.iter().rev().fold(text.to_owned(), undo)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(root: Option<&str>) -> Queue {
        Queue {
            task_type: TaskType::LocalAgent,
            labels: Labels::default(),
            reserved_for: None,
            root: root.map(str::to_owned),
            repository: root.unwrap_or_default().to_owned(),
            user: None,
            is_counted: true,
        }
    }

    #[test]
    fn the_name_of_a_queue_is_read_back() {
        let root = "/p/a#b@c|d[e]";
        let parsed = |name: &str| Queue::parse(name).unwrap();
        assert_eq!(parsed("local_agent"), plain(None));
        assert_eq!(parsed(&format!("local_agent#{root}")), plain(Some(root)));
        let reserved = Queue {
            reserved_for: Some("worker-1".to_owned()),
            is_counted: false,
            ..plain(Some("/p"))
        };
        assert_eq!(parsed("local_agent@worker-1#/p"), reserved);
        let whole = Queue {
            labels: "gpu,repo:acme/api".parse().unwrap(),
            repository: "github.com/acme/api".to_owned(),
            user: Some("ann#7%|x@y".to_owned()),
            ..plain(Some("/p"))
        };
        let name = "local_agent[gpu,repo:acme/api]@|github.com/acme/api|ann%237%25%7Cx@y#/p";
        assert_eq!(parsed(name), whole);
        let child = Queue {
            is_counted: false,
            ..plain(Some("/p"))
        };
        assert_eq!(parsed("local_agent@+||#/p"), child);
    }

    #[test]
    fn lists_of_teams_and_what_a_later_version_writes_are_open_to_nobody() {
        for name in [
            "team:red",
            "local_agent[#/p",
            "local_agent{x}#/p",
            "",
            "#/p",
        ] {
            assert_eq!(Queue::parse(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_escaped_is_read_back() {
        for text in ["", "plain", "%23", "a#b|c%d", "%25%7C#"] {
            let escaped = escaped(text);
            assert!(!escaped.contains(['#', '|']), "{escaped}");
            assert_eq!(unescaped(&escaped), text);
        }
    }
}
