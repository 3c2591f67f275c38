//! A token of the user for a server: from GitHub's `gh`, or from the credential helpers that the
//! user's own git configuration names.
//!
//! Both run outside of every repository, so no configuration of one can name a helper, and they are
//! not looked for in the directory that is worked in. They get no terminal and a few seconds.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use std::os::unix::process::CommandExt;

use crate::{GitCall, GitError, GitLimits, environment::find_program, pump::Pump};

/// They read a file or ask a key ring.
const LIMITS: GitLimits = GitLimits {
    bytes: 64 << 10,
    time: Duration::from_secs(5),
    memory: 4 << 30,
};

/// Where they find the user's files and key ring.
const VARIABLES: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "GH_CONFIG_DIR",
];

/// None of them may ask anybody.
const SILENT: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GCM_INTERACTIVE", "never"),
];

/// What `gh auth token` prints for a host. `None` if it is not installed or not signed in there. It
/// is not looked for within `outside_of`.
pub fn gh_token(host: &str, outside_of: &Path) -> Result<Option<String>, GitError> {
    const NAME: &str = "gh auth token";
    let (Some(program), path) = find_program("gh", Some(outside_of)) else {
        return Ok(None);
    };
    let child = Command::new(program)
        .args(["auth", "token", "--hostname", host])
        .env_clear()
        .env("PATH", path)
        .envs(
            VARIABLES
                .iter()
                .filter_map(|name| Some((name, env::var_os(name)?))),
        )
        .envs(SILENT.iter().copied())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|source| GitError::Start {
            command: NAME.to_owned(),
            source,
        })?;
    let output = Pump::new(child, NAME.to_owned(), LIMITS, Arc::default()).run()?;
    Ok(token_in(output.code, &output.text()))
}

/// The password that the user's credential helpers have for a server, such as `https` and
/// `github.com`. `None` if there is no helper, or none that knows it.
pub fn helper_token(
    scheme: &str,
    host: &str,
    outside_of: &Path,
) -> Result<Option<String>, GitError> {
    // One more line would be another question.
    if [scheme, host]
        .iter()
        .any(|text| text.contains(['\n', '\r', '\0']))
    {
        return Ok(None);
    }
    let mut call = GitCall::detached(["credential", "fill"], Path::new("/"))
        .of_repository(Some(outside_of), None)
        .with_person()
        .without_guard("credential.helper")
        // No repository, also if `/` is in one.
        .env("GIT_DIR", "/dev/null")
        .input(format!("protocol={scheme}\nhost={host}\n\n"))
        .limits(LIMITS);
    for name in VARIABLES {
        if let Some(value) = env::var_os(name) {
            call = call.env(*name, value);
        }
    }
    for (name, value) in SILENT {
        call = call.env(*name, *value);
    }
    let output = call.run()?;
    let text = output.text();
    let password = text.lines().find_map(|line| line.strip_prefix("password="));
    Ok(password.and_then(|password| token_in(output.code, password)))
}

/// A token has no white space and is ASCII; anything else is a message.
fn token_in(code: Option<i32>, text: &str) -> Option<String> {
    let text = text.trim();
    let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    (code == Some(0) && is_token).then(|| text.to_owned())
}
