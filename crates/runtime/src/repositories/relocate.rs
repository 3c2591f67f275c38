//! A task with the paths of this host in place of those of the host that made it.

use std::path::{Path, PathBuf};

use codespar_protocol::{AgentSpec, Authority, TaskSpec};
use codespar_tasks::Control;

/// Only paths below the project root change; the record in the store does not.
pub(super) fn relocated(mut control: Control, to: &Path) -> Control {
    let Some(authority) = &mut control.record.authority else {
        return control;
    };
    let moved = Moved {
        from: authority.project_root.clone(),
        to: to.to_owned(),
    };
    moved.authority(authority);
    if let Some(spec) = &mut control.record.spec {
        moved.spec(spec);
    }
    control
}

struct Moved {
    from: PathBuf,
    to: PathBuf,
}

impl Moved {
    fn path(&self, path: &mut PathBuf) {
        if let Ok(below) = path.strip_prefix(&self.from) {
            // Joined with nothing, it would end in a slash.
            *path = match below.as_os_str().is_empty() {
                true => self.to.clone(),
                false => self.to.join(below),
            };
        }
    }

    /// Directories elsewhere are those of another host: without them it is the narrower.
    fn authority(&self, authority: &mut Authority) {
        self.path(&mut authority.project_root);
        authority
            .extra_dirs
            .retain(|dir| dir.starts_with(&self.from));
        for dir in &mut authority.extra_dirs {
            self.path(dir);
        }
        for base in authority
            .rules
            .iter_mut()
            .filter_map(|rule| rule.base.as_mut())
        {
            self.path(base);
        }
    }

    fn spec(&self, spec: &mut TaskSpec) {
        match spec {
            TaskSpec::Shell(shell) => {
                self.path(&mut shell.root);
                self.path(&mut shell.cwd);
            }
            TaskSpec::Agent(agent) | TaskSpec::RemoteAgent(agent) | TaskSpec::Dream(agent) => {
                self.agent(agent);
            }
            TaskSpec::Teammate(teammate) => self.agent(&mut teammate.agent),
            TaskSpec::Workflow(workflow) => {
                self.path(&mut workflow.file);
                self.path(&mut workflow.root);
                self.path(&mut workflow.cwd);
            }
            TaskSpec::Monitor(monitor) => self.path(&mut monitor.root),
            // Those of a directory do not run elsewhere, and the others name none.
            TaskSpec::Dev(_) | TaskSpec::FollowPullRequest(_) | TaskSpec::TeamItem(_) => {}
        }
    }

    fn agent(&self, agent: &mut AgentSpec) {
        self.path(&mut agent.root);
        self.path(&mut agent.cwd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_the_root_moves() {
        let moved = Moved {
            from: "/home/ann/api".into(),
            to: "/var/lib/codespar/repositories/github.com/acme/api".into(),
        };
        let path = |text: &str| {
            let mut path = PathBuf::from(text);
            moved.path(&mut path);
            path.into_os_string().into_string().unwrap()
        };
        let to = moved.to.to_str().unwrap();
        assert_eq!(path("/home/ann/api"), to);
        assert_eq!(path("/home/ann/api/sub/dir"), format!("{to}/sub/dir"));
        assert_eq!(path("/home/ann/api-two"), "/home/ann/api-two");
        assert_eq!(path("/etc"), "/etc");
    }
}
