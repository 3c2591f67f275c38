//! Who runs the tasks of a project, and how a process finds them by project.
//!
//! The scheduler knows one runner for each type of task, `ByProject`. It looks up the project in
//! the task's authority and passes the task on to the runner of that project, so a process with
//! several projects never runs a task with the settings of the wrong one.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use async_trait::async_trait;
use codespar_dev::{DevRunner, Workflows};
use codespar_policy::Mode;
use codespar_protocol::TaskType;
use codespar_tasks::{
    AgentRunner, Control, DreamRunner, MonitorRunner, Runner, ShellRunner, TaskOutcome,
    TeammateRunner, WorkflowRunner,
};

use crate::{
    ProcessRole, Project, Runtime,
    agents::ProjectAgents,
    dev,
    mcp::ProjectServers,
    repositories::{LocalTask, not_here},
};

/// The runners of one project by type of task.
pub(crate) type Runners = HashMap<TaskType, Arc<dyn Runner>>;

/// Runners of a project know it weakly: it owns them.
///
/// Remote agents are for workers only: a session would take them from the worker they are meant
/// for.
pub(crate) fn of_project(project: &Project, weak: &Weak<Project>, role: ProcessRole) -> Runners {
    let hub = &project.hub;
    let agents = Arc::new(AgentRunner {
        maker: Arc::new(ProjectAgents(weak.clone())),
        hub: hub.clone(),
    });
    let dreams = DreamRunner {
        agents: agents.clone(),
    };
    let teammates = TeammateRunner {
        agents: agents.clone(),
    };
    let monitors = MonitorRunner {
        servers: Arc::new(ProjectServers(weak.clone())),
        hub: hub.clone(),
        redactor: project.redactor.clone(),
    };
    let mut runners: Runners = HashMap::new();
    if role == ProcessRole::Worker {
        runners.insert(TaskType::RemoteAgent, agents.clone());
    }
    runners.insert(TaskType::LocalAgent, agents);
    runners.insert(TaskType::Dream, Arc::new(dreams));
    runners.insert(TaskType::InProcessTeammate, Arc::new(teammates));
    runners.insert(TaskType::MonitorMcp, Arc::new(monitors));
    // A session in plan mode runs no command and publishes nothing, not even what was approved
    // before in another mode: that waits for a process that may.
    if role == ProcessRole::Worker || project.mode.get() != Mode::Plan {
        let workflows = Workflows {
            files: WorkflowRunner { hub: hub.clone() },
            dev: DevRunner {
                setup: dev::setup(project, weak),
                hub: hub.clone(),
            },
        };
        let shell = project.shell_setup(project.sandbox.clone());
        runners.insert(TaskType::LocalBash, Arc::new(ShellRunner(shell)));
        runners.insert(TaskType::LocalWorkflow, Arc::new(workflows));
    }
    runners
}

/// Hands a task to the runner of its own project, which is opened if need be.
pub(crate) struct ByProject {
    pub(crate) runtime: Weak<Runtime>,
    pub(crate) task_type: TaskType,
}

impl ByProject {
    /// Errors fail the task; they are those of a project that cannot be opened or of a type that
    /// its mode excludes.
    fn find(
        &self,
        runtime: &Arc<Runtime>,
        control: &Control,
    ) -> Result<(Arc<Project>, Arc<dyn Runner>), String> {
        let authority = control.authority()?;
        let project = runtime.project_of(authority).map_err(|error| {
            let root = authority.project_root.display();
            format!("the project {root} cannot be opened: {error}")
        })?;
        let runner = project.runners.get(&self.task_type).cloned();
        let runner = runner.ok_or_else(|| {
            format!(
                "tasks of type {} do not run here in this mode",
                self.task_type
            )
        })?;
        Ok((project, runner))
    }
}

#[async_trait]
impl Runner for ByProject {
    async fn run(&self, control: Control) -> TaskOutcome {
        let Some(runtime) = self.runtime.upgrade() else {
            return TaskOutcome::failed("the process is leaving");
        };
        let local = match LocalTask::find(runtime.environment(), control).await {
            Ok(local) => local,
            Err((control, reason)) => return not_here(&runtime, &control, reason).await,
        };
        let found = self.find(&runtime, &local.control);
        // The process may close it while the task runs.
        drop(runtime);
        match found {
            // The project and the files stay for as long as the task runs.
            Ok((_project, runner)) => runner.run(local.control.clone()).await,
            Err(error) => TaskOutcome::failed(error),
        }
    }
}
