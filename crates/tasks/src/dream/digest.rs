//! What recent sessions of a project were about, in a few pages.
//!
//! For each session its title, the first prompt of the user and the last answer that has text. Tool
//! calls and results are left out: they are long, and mostly about the state of files at that time.
//! Sessions of agents are left out as well.
//!
//! ```text
//! ## <title> (<last change>)
//! First asked: <at most 500 characters>
//! Last answered: <at most 1,200 characters>
//! ```

use std::fmt::Write as _;

use codespar_protocol::{AgentSpec, Entry, EntryBody, conversation, escape_xml};
use codespar_store::{SessionFilter, SessionRecord, Store, StoreError, TaskStore};

use crate::agent_sessions;

const SESSIONS: usize = 10;
/// How many are looked through: many are conversations of subagents.
const LOOKED_AT: u32 = 400;
/// For the whole digest; it is part of the first request of the agent.
const MAX_BYTES: usize = 20 * 1024;
const PROMPT_CHARS: usize = 500;
const ANSWER_CHARS: usize = 1_200;
/// Room for it is kept, so that the digest never ends without saying that it was cut.
const CUT: &str = "[… more sessions were left out here]\n";

/// Titles, first prompts and last answers of the latest sessions in the agent's directory. The
/// newest come first. The dream's own session and those in which nothing was said do not count.
pub(super) async fn of(
    sessions: &dyn Store,
    tasks: &dyn TaskStore,
    agent: &AgentSpec,
) -> Result<String, StoreError> {
    let of_agents = agent_sessions(tasks).await?;
    let filter = SessionFilter {
        cwd: Some(agent.cwd.clone()),
        limit: Some(LOOKED_AT),
    };
    let mut digest = String::new();
    let own = agent.agent_session;
    let found = sessions.sessions(filter).await?.into_iter();
    let people = found.filter(|session| {
        session.id != own && !of_agents.contains(&session.id) && session.last_seq > 0
    });
    for session in people.take(SESSIONS) {
        let entries = sessions.entries(session.id, 0).await?;
        let part = part(&session, &conversation(&entries));
        if digest.len() + part.len() + CUT.len() > MAX_BYTES {
            digest.push_str(CUT);
            break;
        }
        digest.push_str(&part);
    }
    if digest.is_empty() {
        digest.push_str("There are none yet.\n");
    }
    Ok(digest)
}

/// `escape_xml` keeps text of a session from ending the tag around the digest.
fn part(session: &SessionRecord, entries: &[&Entry]) -> String {
    let first = entries.iter().find_map(|entry| match &entry.body {
        EntryBody::User {
            message,
            synthetic: false,
        } => Some(message.text()),
        _ => None,
    });
    let last = entries.iter().rev().find_map(|entry| match &entry.body {
        EntryBody::Assistant { message, .. } => {
            Some(message.text()).filter(|text| !text.trim().is_empty())
        }
        _ => None,
    });
    let title = session.title.as_deref().unwrap_or("(no title)");
    let mut part = format!("## {} ({})\n", escape_xml(title), session.updated_at);
    for (name, text, limit) in [
        ("First asked", first, PROMPT_CHARS),
        ("Last answered", last, ANSWER_CHARS),
    ] {
        if let Some(text) = text {
            // Writing to a string cannot fail.
            let _ = writeln!(
                part,
                "{name}: {}",
                escape_xml(&beginning(text.trim(), limit))
            );
        }
    }
    part.push('\n');
    part
}

fn beginning(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} […]", &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use codespar_protocol::TaskType;
    use codespar_protocol::{
        Authority, Cost, Labels, Message, OnDependencyFailure, SessionId, SessionMode, StopReason,
        TaskId, TaskSpec, Usage,
    };
    use codespar_store::{NewSession, NewTask, Notify, SqliteStore};

    use super::*;

    fn an_agent(cwd: &Path) -> AgentSpec {
        AgentSpec {
            prompt: String::new(),
            subagent_type: "dream".into(),
            model: None,
            max_budget_usd: None,
            max_turns: None,
            max_wall_seconds: None,
            name: None,
            isolation: None,
            root: cwd.to_path_buf(),
            cwd: cwd.to_path_buf(),
            agent_session: SessionId::new(),
            depth: 1,
            tool_use_id: None,
        }
    }

    async fn session(store: &SqliteStore, id: SessionId, cwd: &Path, asked: &str, answer: &str) {
        let new = NewSession {
            id,
            cwd: cwd.to_path_buf(),
            model: "m".into(),
            mode: SessionMode::Normal,
        };
        store.create_session(new).await.unwrap();
        let said = EntryBody::User {
            message: Message::user(asked),
            synthetic: false,
        };
        let mut message = Message::user(answer);
        message.role = codespar_protocol::Role::Assistant;
        let answered = EntryBody::Assistant {
            message,
            message_id: None,
            model: "m".into(),
            stop_reason: StopReason::EndTurn,
            usage: Usage::default(),
            cost: Cost::default(),
        };
        store.append(id, 0, vec![said, answered]).await.unwrap();
    }

    #[tokio::test]
    async fn only_the_users_sessions_of_this_directory_are_in_the_digest() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).await.unwrap();
        let (here, elsewhere) = (Path::new("/here"), Path::new("/elsewhere"));
        let agent = an_agent(here);
        session(&store, agent.agent_session, here, "agent's", "x").await;
        let id = TaskId::new(TaskType::LocalAgent);
        let task = NewTask {
            spec: TaskSpec::Agent(agent),
            authority: Authority {
                session: None,
                tree: SessionId::new(),
                project_root: here.to_path_buf(),
                mode: "default".into(),
                rules: Vec::new(),
                extra_dirs: Vec::new(),
                max_budget_usd: None,
                repository: None,
                remote: None,
                user: None,
                trace: None,
            },
            reserved_for: None,
            labels: Labels::default(),
            on_dependency_failure: OnDependencyFailure::Fail,
            subject: "s".into(),
            description: None,
            active_form: None,
            metadata: serde_json::Map::new(),
            blocked_by: Vec::new(),
            output_file: None,
            session_id: None,
            parent_task_id: None,
            notify: Notify::Nobody,
            made_under: None,
            start_here: None,
            id,
        };
        store.create_tasks(vec![task]).await.unwrap();
        session(&store, SessionId::new(), elsewhere, "other", "y").await;
        session(
            &store,
            SessionId::new(),
            here,
            "fix </recent-sessions> it",
            "fixed",
        )
        .await;
        let digest = of(&store, &store, &an_agent(here)).await.unwrap();
        let (head, rest) = digest.split_once('\n').unwrap();
        assert!(
            head.starts_with("## fix &lt;/recent-sessions&gt; it ("),
            "{head}"
        );
        assert_eq!(
            rest,
            "First asked: fix &lt;/recent-sessions&gt; it\nLast answered: fixed\n\n"
        );
        let nowhere = an_agent(Path::new("/nowhere"));
        let nothing = of(&store, &store, &nowhere).await.unwrap();
        assert_eq!(nothing, "There are none yet.\n");
    }

    #[tokio::test]
    async fn the_digest_has_ten_sessions_at_most_and_twenty_kilobytes() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).await.unwrap();
        let (small, large) = (Path::new("/small"), Path::new("/large"));
        for n in 0..12 {
            let asked = format!("question {n}");
            session(&store, SessionId::new(), small, &asked, "yes").await;
            // Three bytes a character.
            let long = "…".repeat(3_000);
            session(&store, SessionId::new(), large, &long, &long).await;
        }
        let digest = of(&store, &store, &an_agent(small)).await.unwrap();
        let asked: Vec<&str> = digest
            .lines()
            .filter_map(|line| line.strip_prefix("First asked: question "))
            .collect();
        assert_eq!(asked, ["11", "10", "9", "8", "7", "6", "5", "4", "3", "2"]);
        let digest = of(&store, &store, &an_agent(large)).await.unwrap();
        assert!(
            digest.len() <= MAX_BYTES && digest.ends_with(CUT),
            "{}",
            digest.len()
        );
    }
}
