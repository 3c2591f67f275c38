//! One process with two projects: agents run in both at once, each by the rules, servers and budget
//! of its own project.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak, mpsc},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use codespar_protocol::{Answer, Message, Outcome, Question, RunResult, Usage, Usd};
use codespar_runtime::{
    Environment, ProcessRole, Project, ProjectConfig, ProjectDir, ProjectOptions, Runtime,
    ServerText, Surface, WhichSession,
};
use codespar_tasks::{AtEnd, Attendance, Respondent, RunnerLimits};
use codespar_testkit::{
    Conversation, Gate, Matcher, Script, ScriptedModel, Turn,
    mcp::{Host, HostSetup, serve_http},
};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);

/// A state directory and two projects, in each of which `notes.txt` says where it is.
struct Setup {
    base: PathBuf,
    environment: Arc<Environment>,
}

impl Setup {
    fn new(base: &Path, model: &ScriptedModel) -> Self {
        for name in ["state", "home", "a/.git", "a/.codespar", "b/.git"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in ["a", "b"] {
            fs::write(base.join(name).join("notes.txt"), format!("in {name}")).unwrap();
        }
        let deny = json!({"permissions": {"deny": ["Read(notes.txt)"]}});
        fs::write(base.join("a/.codespar/settings.json"), deny.to_string()).unwrap();
        let var = |name: &str, value: String| (name.into(), value.into());
        let environment = Environment {
            home: Some(base.join("home")),
            state: base.join("state"),
            vars: vec![
                var("PATH", std::env::var("PATH").unwrap()),
                var("ANTHROPIC_BASE_URL", model.url()),
                var("ANTHROPIC_API_KEY", "a-key-for-this-test-0001".to_owned()),
            ],
            program: PathBuf::from("/nonexistent/codespar"),
        };
        Self {
            base: base.to_path_buf(),
            environment: Arc::new(environment),
        }
    }

    fn root(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    fn open(&self, runtime: &Arc<Runtime>, name: &str, options: ProjectOptions) -> Arc<Project> {
        self.open_attended(runtime, name, options, Attendance::Nobody)
    }

    fn open_attended(
        &self,
        runtime: &Arc<Runtime>,
        name: &str,
        options: ProjectOptions,
        attendance: Attendance,
    ) -> Arc<Project> {
        let dir = ProjectDir::find(self.environment.clone(), &self.root(name)).unwrap();
        let config = ProjectConfig::load(dir, options).unwrap();
        let project = runtime.open_project(config, attendance);
        project.mcp.begin();
        project
    }
}

/// An MCP server over HTTP, for as long as the process lives, and the file that names it.
fn server_file(dir: &Path) -> PathBuf {
    let host = Host::start(HostSetup::default()).unwrap();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || serve_http(&host, 0, |address| tell.send(address).unwrap()));
    let url = told.recv_timeout(PATIENCE).unwrap();
    let file = dir.join("servers.json");
    let servers = json!({"mcpServers": {"kit": {"type": "http", "url": url}}});
    fs::write(&file, servers.to_string()).unwrap();
    file
}

fn read_notes(name: &str, root: &Path) -> Turn {
    let file = root.join(name).join("notes.txt");
    let dear = Usage {
        input_tokens: 10,
        output_tokens: 30_000,
        ..Usage::default()
    };
    Turn::tool("Read", &json!({"file_path": file})).usage(dear)
}

/// A subagent reads the notes, then the agent itself reads them three times.
fn conversations(script: Script, name: &str, root: &Path, gate: &Gate) -> Script {
    let task = json!({
        "description": "read",
        "prompt": format!("subtask of {name}"),
        "subagent_type": "general-purpose",
    });
    let main = Conversation::new(
        format!("main {name}"),
        Matcher::first_user_contains(format!("begin in {name}")),
    )
    .turn(Turn::tool("Task", &task).held_by(gate))
    .turns((0..3).map(|_| read_notes(name, root)))
    .turn(Turn::text("Done."));
    let subagent = Conversation::new(
        format!("subagent {name}"),
        Matcher::first_user_contains(format!("subtask of {name}")),
    )
    .turn(Turn::tool(
        "Read",
        &json!({"file_path": root.join(name).join("notes.txt")}),
    ))
    .turn(Turn::text(format!("read in {name}")));
    script.conversation(main).conversation(subagent)
}

async fn run(project: Arc<Project>, prompt: String) -> (Vec<String>, RunResult) {
    project.mcp.settled().await;
    let session = project.open_session(&WhichSession::New).await.unwrap();
    let tools = project.tool_names(&session);
    let surface = Surface {
        sink: Arc::new(|_| {}),
        note: None,
        steering: None,
    };
    let mut agent = project.main_agent(session, surface, AtEnd::Wait).unwrap();
    let result = agent.run(Some(Message::user(prompt)), CancellationToken::new());
    (tools, result.await)
}

/// What the tools of a conversation said, in order.
fn results(model: &ScriptedModel, first_user: &str) -> Vec<String> {
    let requests = model.requests();
    let of_it = requests.iter().filter(|request| {
        let body = String::from_utf8_lossy(request.body()).into_owned();
        body.contains(first_user) && !body.contains(&format!("\"prompt\":\"{first_user}\""))
    });
    let last = of_it.max_by_key(|request| request.tool_results().len());
    let results = last.map(|request| request.tool_results());
    let results = results.unwrap_or_default();
    results.into_iter().map(|result| result.text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_two_projects_run_at_once_each_by_its_own_rules_servers_and_budget() {
    let gate = Gate::closed();
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let script = conversations(Script::new(), "a", &base, &gate);
    let script = conversations(script, "b", &base, &gate);
    let model = ScriptedModel::start(script).await.unwrap();
    let setup = Setup::new(&base, &model);

    let runtime = Runtime::open(
        setup.environment.clone(),
        ProcessRole::Session,
        RunnerLimits::default(),
        ProjectOptions::default(),
    )
    .await
    .unwrap();
    let a = setup.open(
        &runtime,
        "a",
        ProjectOptions {
            max_budget_usd: Usd::from_dollars(0.5),
            mcp_config: vec![ServerText::File(server_file(&setup.root("state")))],
            ..ProjectOptions::default()
        },
    );
    let b = setup.open(&runtime, "b", ProjectOptions::default());

    let both = tokio::spawn(async move {
        tokio::join!(
            run(a, "begin in a".to_owned()),
            run(b, "begin in b".to_owned())
        )
    });
    // Neither is answered before both have asked.
    model.wait_for_requests(2).await.unwrap();
    gate.open();
    let ((tools_a, result_a), (tools_b, result_b)) =
        timeout(PATIENCE, both).await.unwrap().unwrap();

    // Servers: only the project that names one has its tools.
    let is_of_server = |name: &String| name.starts_with("mcp__kit__");
    assert!(tools_a.iter().any(is_of_server), "{tools_a:?}");
    assert!(!tools_b.iter().any(is_of_server), "{tools_b:?}");

    // Rules: those of the one do not hold in the other, for subagents neither.
    for conversation in ["begin in a", "subtask of a"] {
        let results = results(&model, conversation);
        let is_denied = |text: &String| text.contains("notes.txt") && !text.contains("in a");
        assert!(results.iter().any(is_denied), "{conversation}: {results:?}");
    }
    for conversation in ["begin in b", "subtask of b"] {
        let results = results(&model, conversation);
        let is_read = |text: &String| text.contains("in b");
        assert!(results.iter().any(is_read), "{conversation}: {results:?}");
    }

    // Budget: the same calls are too dear in the one and not in the other.
    assert_eq!(result_a.outcome, Outcome::ErrorMaxBudgetUsd, "{result_a:?}");
    assert_eq!(result_b.outcome, Outcome::Success, "{result_b:?}");
    assert_eq!(result_b.result, "Done.");
    runtime.close().await.unwrap();
}

/// Somebody at this process who knows the project, as a client of the SDK does.
#[derive(Default)]
struct Onlooker(OnceLock<Weak<Project>>);

#[async_trait]
impl Respondent for Onlooker {
    async fn answer(&self, _: Question) -> Answer {
        let knows = self.0.get().and_then(Weak::upgrade).is_some();
        Answer::No {
            reason: Some(format!("the project is known: {knows}")),
        }
    }

    fn name(&self) -> &'static str {
        "onlooker"
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_nobody_uses_is_freed_with_what_its_hub_owns() {
    let gate = Gate::closed();
    gate.open();
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let script = conversations(Script::new(), "b", &base, &gate);
    let model = ScriptedModel::start(script).await.unwrap();
    let setup = Setup::new(&base, &model);
    let runtime = Runtime::open(
        setup.environment.clone(),
        ProcessRole::Session,
        RunnerLimits::default(),
        ProjectOptions::default(),
    )
    .await
    .unwrap();
    let onlooker = Arc::new(Onlooker::default());
    let attendance = Attendance::Here(onlooker.clone());
    let project = setup.open_attended(&runtime, "b", ProjectOptions::default(), attendance);
    onlooker.0.set(Arc::downgrade(&project)).unwrap();
    let answers = Arc::downgrade(&onlooker);
    drop(onlooker);
    let freed_project = Arc::downgrade(&project);

    // The last use of the project outside of the runtime.
    let running = run(project, "begin in b".to_owned());
    let (_, result) = timeout(PATIENCE, running).await.unwrap();
    assert_eq!(result.outcome, Outcome::Success, "{result:?}");
    runtime.close().await.unwrap();

    // What runs in the background ends by itself, a moment later.
    let freed = async {
        while freed_project.strong_count() + answers.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = timeout(Duration::from_secs(20), freed).await;
    let left = (freed_project.strong_count(), answers.strong_count());
    assert!(waited.is_ok(), "still held: {left:?}");
    drop(runtime);
}
