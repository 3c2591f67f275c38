//! The environment of child processes: what they need, without secrets.
//!
//! Variables go by name, by prefix, by the shape of the name ([`is_secret_name`]) and by the shape
//! of the value ([`looks_secret`]). A variable is dropped when any of these applies; what remains
//! is inherited, because builds depend on variables that no list could name. Only a name that the
//! settings pass on purpose gets through all of them.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};

use codespar_policy::{is_secret_name, looks_secret};

/// Run code in, or change the meaning of, whatever is started; nobody sees them at work.
const MEDDLING: [&str; 20] = [
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GLOBIGNORE",
    "IFS",
    "LOCPATH",
    "NLSPATH",
    "PERL5DB",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONINSPECT",
    "PYTHONSTARTUP",
    "PYTHONWARNINGS",
    "RESOLV_HOST_CONF",
    "RUBYOPT",
    "SHELLOPTS",
    "TMPPREFIX",
    "ZDOTDIR",
];

/// Lead to somebody who acts in the user's name: agents that sign, prompts that hand out
/// passwords.
const PROXIES: [&str; 9] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "GIT_ASKPASS",
    "GPG_AGENT_INFO",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SUDO_ASKPASS",
    "VSCODE_GIT_IPC_HANDLE",
    "VSCODE_IPC_HOOK_CLI",
];

/// As a whole: ours and the providers', because a new one may be secret before this list knows it;
/// those of the dynamic loader; sessions of password managers.
const PREFIXES: [&str; 9] = [
    "ANTHROPIC_",
    "BASH_FUNC_",
    "BW_",
    "CODESPAR_",
    "DYLD_",
    "GLIBC_",
    "LD_",
    "OPENAI_",
    "OP_SESSION",
];

/// Addresses that are a secret: whoever knows one can post there.
const WEBHOOKS: [&str; 7] = [
    "hooks.slack.com/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    ".webhook.office.com/",
    "api.telegram.org/bot",
    "chat.googleapis.com/v1/spaces/",
    "hooks.zapier.com/",
];

/// The environment for child processes: `vars` with `extra` (from the settings) over it, secrets
/// and meddling variables taken out of both. A name in `pass` gets through whatever it is: a person
/// hands it in on purpose.
pub fn child_environment(
    vars: impl Iterator<Item = (OsString, OsString)>,
    extra: impl IntoIterator<Item = (OsString, OsString)>,
    pass: &[String],
) -> Vec<(OsString, OsString)> {
    let mut all: BTreeMap<OsString, OsString> = vars.collect();
    all.extend(extra);
    all.into_iter()
        .filter(|(name, value)| {
            let passed = pass
                .iter()
                .any(|passed| name.as_os_str() == passed.as_str());
            passed || is_harmless(name, value)
        })
        .collect()
}

/// Names of the lists above are compared as they are written, as the programs concerned do.
/// `LD_LIBRARY_PATH` stays, as the only one of the loader's variables.
fn is_harmless(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    // A command may need its libraries; nothing outside of the sandbox gets to see it.
    let is_library_path = name == "LD_LIBRARY_PATH";
    let dropped = MEDDLING.contains(&&*name)
        || PROXIES.contains(&&*name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !is_library_path;
    let lower = value.to_lowercase();
    let is_webhook = name.to_uppercase().contains("WEBHOOK")
        || WEBHOOKS.iter().any(|address| lower.contains(address));
    !dropped && !is_webhook && !is_secret_name(&name) && !looks_secret(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn secrets_go_by_name_and_by_shape_and_the_rest_stays() {
        let given = vars(&[
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/home/someone"),
            ("LANG", "C.UTF-8"),
            ("CARGO_HOME", "/home/someone/.cargo"),
            ("ANTHROPIC_API_KEY", "x"),
            ("ANTHROPIC_BASE_URL", "http://localhost"),
            ("CODESPAR_DATABASE_URL", "postgres://u:p@h/d"),
            ("OPENAI_BASE_URL", "http://localhost"),
            ("GITHUB_TOKEN", "x"),
            ("HARMLESS", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("SSH_AUTH_SOCK", "/run/agent"),
        ]);
        assert_eq!(
            child_environment(given.into_iter(), [], &[]),
            vars(&[
                ("CARGO_HOME", "/home/someone/.cargo"),
                ("HOME", "/home/someone"),
                ("LANG", "C.UTF-8"),
                ("PATH", "/usr/bin:/bin"),
            ])
        );
    }

    #[test]
    fn sessions_of_password_managers_and_webhook_addresses_are_dropped() {
        let given = vars(&[
            ("BW_SESSION", "x"),
            ("OP_SESSION_team", "x"),
            ("ALERTS", "https://hooks.slack.com/services/T0/B0/x"),
            ("NOTIFY", "https://Discord.com/api/webhooks/1/x"),
            ("DEPLOY_WEBHOOK_URL", "https://ci.example/x"),
            ("DOCS", "https://example.com/webhooks"),
        ]);
        assert_eq!(
            child_environment(given.into_iter(), [], &[]),
            vars(&[("DOCS", "https://example.com/webhooks")])
        );
    }

    #[test]
    fn what_would_run_code_unseen_is_dropped() {
        let given = vars(&[
            ("LD_PRELOAD", "/x.so"),
            ("LD_DEBUG_OUTPUT", "/x"),
            ("GLIBC_TUNABLES", "x"),
            ("GCONV_PATH", "/x"),
            ("PYTHONSTARTUP", "/x"),
            ("BASH_ENV", "/x"),
            ("ENV", "/x"),
            ("PROMPT_COMMAND", "x"),
            ("BASH_FUNC_ls%%", "() { x; }"),
        ]);
        assert_eq!(child_environment(given.into_iter(), [], &[]), vec![]);
    }

    #[test]
    fn settings_win_and_only_a_passed_name_lets_a_secret_through() {
        let given = vars(&[("RUST_LOG", "info"), ("NPM_TOKEN", "handed in")]);
        let extra = vars(&[("RUST_LOG", "debug"), ("API_KEY", "for us alone")]);
        assert_eq!(
            child_environment(given.into_iter(), extra, &["NPM_TOKEN".to_owned()]),
            vars(&[("NPM_TOKEN", "handed in"), ("RUST_LOG", "debug")])
        );
    }
}
