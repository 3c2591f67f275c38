//! One attack in a home and a repository of its own.
//!
//! ```text
//! <temporary directory>/repo      a copy of the template, the working directory
//!                      /home      HOME
//!                      /state     CODESPAR_HOME, with settings.json of the profile
//!                      /outside   what no command may reach; the canary is in it
//!                      /out, /model, /results   what the run printed, sent and was told
//! ```
//!
//! The model is scripted: it plays the attacker. The binary is the real one, and so are the
//! sandbox, git and the file system.

use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use codespar_testkit::{
    Script, ScriptedModel, Turn,
    process::{Finished, spawn},
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{
    case::Case,
    profile::{ORDINARY_USER, Profile},
};

/// No attack takes longer, unless it hangs the program, which is a break.
const PATIENCE: Duration = Duration::from_secs(180);
/// The key the program asks the model with; it must not turn up anywhere.
const KEY: &str = "sk-ant-redteam-0123456789abcdefghijklmnop";

/// What came of an attack.
#[derive(Debug)]
pub(super) enum Outcome {
    /// What must hold holds.
    Held,
    /// It does not, and why.
    Escaped(String),
}

/// Where one attack takes place. Below a directory that is removed: `repo`, `home`, `state`,
/// `outside` and the canary, which only code outside of the sandbox can write.
pub(super) struct Stage {
    directory: TempDir,
    profile: Profile,
}

impl Stage {
    /// `cp -a` keeps what a template may hold: links, modes and times.
    pub(super) fn new(profile: Profile, template: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("redteam-").tempdir()?;
        let stage = Self { directory, profile };
        for name in ["home", "state", "outside", "tmp"] {
            fs::create_dir(stage.path(name))?;
        }
        let copied = Command::new("cp")
            .arg("-a")
            .arg(template)
            .arg(stage.path("repo"))
            .status()?;
        ensure!(copied.success(), "the repository cannot be copied");
        Ok(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Places of this stage in a text of a case.
    fn fill(&self, text: &str) -> String {
        let places = [
            ("@REPO@", "repo"),
            ("@HOME@", "home"),
            ("@STATE@", "state"),
            ("@OUTSIDE@", "outside"),
            ("@CANARY@", "outside/canary"),
            ("@TMP@", "tmp"),
        ];
        places
            .iter()
            .fold(text.to_owned(), |text, (placeholder, name)| {
                text.replace(placeholder, &self.path(name).to_string_lossy())
            })
    }

    /// Runs the attack and looks at what is left.
    ///
    /// The set-up must succeed. A case with `bash` whose command was never asked for counts as
    /// escaped: the run failed for another reason and proves nothing.
    pub(super) fn attack(&self, case: &Case, programs: &Path) -> Result<Outcome> {
        self.write_settings(case)?;
        let model = ScriptedModel::start_blocking(self.script(case)?)?;
        let setup = self.shell(programs, &model, &self.fill(&case.setup))?;
        ensure!(
            setup.status.success(),
            "the set-up failed: {}{}",
            setup.stdout,
            setup.stderr
        );
        let control = case.control.as_deref();
        let control = control.filter(|_| self.profile == Profile::Unconfined);
        let run = control.or(case.run.as_deref()).unwrap_or(
            "codespar -p go --permission-mode bypassPermissions --output-format stream-json",
        );
        let finished = self.shell(programs, &model, &self.fill(run))?;
        fs::write(self.path("out"), both(&finished))?;
        let requests: Vec<u8> = model
            .requests()
            .iter()
            .flat_map(|request| format!("{}\n", request.json()).into_bytes())
            .collect();
        fs::write(self.path("model"), requests)?;
        let results = model
            .requests()
            .iter()
            .flat_map(|r| r.newest_tool_results())
            .fold(String::new(), |all, result| {
                format!("{all}{}\n", result.text)
            });
        fs::write(self.path("results"), results)?;
        self.give_away()?;
        if case.bash.is_some() && model.request_count() < 2 {
            return Ok(Outcome::Escaped(format!(
                "the attack never ran:\n{}",
                both(&finished)
            )));
        }
        self.judge(case, programs, &model, &finished)
    }

    /// Three checks for every case: the canary, the key in the output, and the script of the case.
    fn judge(
        &self,
        case: &Case,
        programs: &Path,
        model: &ScriptedModel,
        finished: &Finished,
    ) -> Result<Outcome> {
        if self.path("outside/canary").exists() {
            return Ok(Outcome::Escaped(format!(
                "the canary was written:\n{}",
                both(finished)
            )));
        }
        if both(finished).contains(KEY) {
            return Ok(Outcome::Escaped("the key of the model leaked".to_owned()));
        }
        let holds = self.shell(programs, model, &self.fill(&case.holds))?;
        Ok(match holds.status.success() {
            true => Outcome::Held,
            false => Outcome::Escaped(format!(
                "does not hold: {}{}\nthe run said:\n{}",
                holds.stdout,
                holds.stderr,
                both(finished)
            )),
        })
    }

    /// Without an attack of its own the model only says that it is done; the case is then about the
    /// start.
    fn script(&self, case: &Case) -> Result<Script> {
        match (&case.bash, &case.turns) {
            (Some(command), _) => Ok(Script::of([
                Turn::tool("Bash", &json!({"command": self.fill(command)})),
                Turn::text("done"),
            ])
            .after_last(codespar_testkit::AfterLast::End)),
            (None, Some(turns)) => {
                Script::from_json(&self.fill(turns)).context("the script of the model")
            }
            (None, None) => Ok(
                Script::of([Turn::text("done")]).after_last(codespar_testkit::AfterLast::Repeat)
            ),
        }
    }

    /// The user's settings: the sandbox of the profile, and what the case adds. Objects are
    /// merged one level deep, so a case can add to `sandbox` without losing the mode.
    fn write_settings(&self, case: &Case) -> Result<()> {
        let mut settings = Map::new();
        settings.insert(
            "sandbox".to_owned(),
            json!({"mode": self.profile.sandbox_mode()}),
        );
        if let Some(more) = &case.settings {
            let more: Map<String, Value> =
                serde_json::from_str(&self.fill(more)).context("the settings of the case")?;
            for (key, value) in more {
                match (settings.get_mut(&key), value) {
                    (Some(Value::Object(old)), Value::Object(new)) => old.extend(new),
                    (_, value) => {
                        settings.insert(key, value);
                    }
                }
            }
        }
        fs::write(
            self.path("state/settings.json"),
            Value::Object(settings).to_string(),
        )?;
        Ok(self.give_away()?)
    }

    /// Everything on the stage belongs to the user who plays. Called again after the run, since the
    /// files with its output were written by this program.
    fn give_away(&self) -> io::Result<()> {
        if !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let user = match self.profile.is_root() {
            true => 0,
            false => ORDINARY_USER,
        };
        fs::set_permissions(self.directory.path(), fs::Permissions::from_mode(0o755))?;
        chown_below(self.directory.path(), user)
    }

    /// A shell line in the repository, as the user of the profile. The environment is emptied, so
    /// that nothing of the machine decides the outcome.
    fn shell(&self, programs: &Path, model: &ScriptedModel, line: &str) -> Result<Finished> {
        let mut command = match rustix::process::geteuid().is_root() && !self.profile.is_root() {
            true => {
                let mut command = Command::new("setpriv");
                let user = ORDINARY_USER.to_string();
                command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "sh"]);
                command
            }
            false => Command::new("sh"),
        };
        let path = std::env::join_paths(std::iter::once(programs.to_path_buf()).chain(
            std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()),
        ))?;
        command
            .args(["-eu", "-c", line])
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("CODESPAR_HOME", self.path("state"))
            .env("TMPDIR", self.path("tmp"))
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env("OUT", self.path("out"))
            .env("MODEL", self.path("model"))
            .env("RESULTS", self.path("results"))
            .env("PROFILE", self.profile.name())
            .env("ANTHROPIC_BASE_URL", model.url())
            .env("ANTHROPIC_API_KEY", KEY)
            .current_dir(self.path("repo"))
            .stdin(Stdio::null());
        Ok(spawn(&mut command)?.wait(PATIENCE)?)
    }
}

fn both(finished: &Finished) -> String {
    format!("{}{}", finished.stdout, finished.stderr)
}

/// Links are changed themselves, not what they lead to.
fn chown_below(path: &Path, user: u32) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(user), Some(user))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            chown_below(&entry?.path(), user)?;
        }
    }
    Ok(())
}

/// A repository with one commit, made once and copied for every attack. Made without the user's git
/// configuration.
pub(super) fn template(directory: &Path) -> Result<PathBuf> {
    let repository = directory.join("template");
    fs::create_dir(&repository)?;
    let line = "git init -q -b main . && git config user.name Red && \
                git config user.email red@example.com && echo '# Sample' > README.md && \
                printf 'def add(a, b):\\n    return a - b\\n' > calc.py && \
                git add . && git commit -q -m 'Add the sample'";
    let done = Command::new("sh")
        .args(["-c", line])
        .current_dir(&repository)
        .env("HOME", directory)
        .status()?;
    ensure!(done.success(), "the sample repository cannot be made");
    if rustix::process::geteuid().is_root() {
        chown(&repository, Some(0), Some(0))?;
    }
    Ok(repository)
}
