//! What settings files of a project may say: with trust most things, without it only what makes us
//! stricter; the sandbox and the servers of the user never.
//!
//! ```text
//!                       deny, ask, plan   allow, env, model …   sandbox, servers, bypass
//! untrusted project     counts            left out              left out
//! trusted project       counts            counts                error
//! ```
//!
//! The error names the key and where the user can set it.

use std::path::Path;

use codespar_policy::Mode;

use super::{
    ChannelSettings, File, Permissions, SandboxSettings, ServerSettings, TerminalSettings,
};
use crate::{
    dev::{DevSettings, ForgeName, VerifySettings},
    error::RuntimeError,
};

/// Variables that make the programs of a system load or run something. They would be at work before
/// anything confines a command.
const LOADERS: [&str; 22] = [
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLOBIGNORE",
    "HOSTALIASES",
    "IFS",
    "LOCALDOMAIN",
    "LOCPATH",
    "NIS_PATH",
    "NLSPATH",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "RES_OPTIONS",
    "RUBYOPT",
    "SHELLOPTS",
    "ZDOTDIR",
];
const LOADER_PREFIXES: [&str; 5] = ["BASH_FUNC_", "DYLD_", "GLIBC_", "LD_", "MALLOC_"];

/// Whether a project may never set this variable. Case does not count.
pub(super) fn is_loader(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    LOADERS.contains(&name.as_str()) || LOADER_PREFIXES.iter().any(|start| name.starts_with(start))
}

impl File<'_> {
    /// Only what counts without trust: rules that forbid or ask, plan mode, a verify command
    /// (the sandbox confines it), more protected files, no network, lower limits.
    pub(super) fn without_grants(self) -> Self {
        Self {
            permissions: Permissions {
                ask: self.permissions.ask,
                deny: self.permissions.deny,
                default_mode: self
                    .permissions
                    .default_mode
                    .filter(|mode| *mode == Mode::Plan),
                ..Permissions::default()
            },
            verify: VerifySettings {
                command: self.verify.command,
                setup: self.verify.setup,
                ..VerifySettings::default()
            },
            dev: DevSettings {
                protected: self.dev.protected,
                ..DevSettings::default()
            },
            sandbox: SandboxSettings {
                network: self.sandbox.network.filter(|allowed| !allowed),
                allow_package_hosts: self.sandbox.allow_package_hosts.filter(|allowed| !allowed),
                ..SandboxSettings::default()
            },
            max_tokens: self.max_tokens,
            max_wall_seconds: self.max_wall_seconds,
            ..Self::default()
        }
    }

    /// A trusted project may grant, but not choose the sandbox or what only a person can know.
    /// Checked by comparing with the default, so that a key of the sandbox that is added later is
    /// refused until somebody decides otherwise.
    pub(super) fn refuse_widening(&self, path: &Path) -> Result<(), RuntimeError> {
        let sandbox = SandboxSettings {
            network: self.sandbox.network.filter(|allowed| *allowed),
            allow_package_hosts: self.sandbox.allow_package_hosts.filter(|allowed| *allowed),
            ..self.sandbox.clone()
        };
        let loader = self.env.keys().find(|name| is_loader(name));
        let refused = if self.permissions.default_mode == Some(Mode::BypassPermissions) {
            "permissions.defaultMode = bypassPermissions".to_owned()
        } else if sandbox != SandboxSettings::default() {
            "sandbox (other than switching the network off)".to_owned()
        } else if let Some(name) = loader {
            format!("env.{name}")
        } else if self.verify.network == Some(true) {
            "verify.network = true".to_owned()
        } else if self.forge == Some(ForgeName::Github) {
            "forge = github".to_owned()
        } else if !self.permissions.additional_directories.is_empty() {
            "permissions.additionalDirectories".to_owned()
        } else if !self.mcp_servers.is_empty() {
            // A project's servers stand in .mcp.json, where somebody has to allow them.
            "mcpServers".to_owned()
        } else if !self.enabled_mcp_servers.is_empty() {
            "enabledMcpServers".to_owned()
        } else if self.enable_all_project_mcp_servers == Some(true) {
            "enableAllProjectMcpServers".to_owned()
        } else if self.cleanup_period_days.is_some() {
            "cleanupPeriodDays".to_owned()
        } else if self.terminal != TerminalSettings::default() {
            "terminal".to_owned()
        } else if self.channels != ChannelSettings::default() {
            "channels".to_owned()
        } else if self.server != ServerSettings::default() {
            "server".to_owned()
        } else if self.project_hooks.is_some() {
            "projectHooks".to_owned()
        } else if self.disable_all_hooks.is_some() {
            "disableAllHooks".to_owned()
        } else {
            return Ok(());
        };
        Err(RuntimeError::Usage(format!(
            "{}: {refused} cannot be set by a project; set it in settings.json of the state \
             directory (~/.codespar) or by a flag",
            path.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_cannot_set_a_command_for_the_status_line() {
        let text = r#"{"terminal": {"statusCommand": "curl evil.example"}}"#;
        let parse = || serde_json::from_str::<File<'_>>(text).unwrap();
        assert!(parse().terminal.status_command.is_some());
        let refused = parse().refuse_widening(Path::new("settings.json"));
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("terminal cannot be set by a project"),
            "{refused}"
        );
        let untrusted = parse().without_grants();
        assert_eq!(untrusted.terminal, TerminalSettings::default());
    }

    #[test]
    fn a_project_cannot_say_who_may_change_it_from_a_channel() {
        let text = r#"{"channels": {"access": {"slack": {"everyone": "admin"}}}}"#;
        let parse = || serde_json::from_str::<File<'_>>(text).unwrap();
        assert_ne!(parse().channels, ChannelSettings::default());
        let refused = parse().refuse_widening(Path::new("settings.json"));
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("channels cannot be set by a project"),
            "{refused}"
        );
        assert_eq!(
            parse().without_grants().channels,
            ChannelSettings::default()
        );
    }

    #[test]
    fn a_project_cannot_say_who_signs_in_to_the_server() {
        let text = r#"{"server": {"signIn": {"x": {"issuer": "https://evil.example", "clientId": "x",
            "everyone": "read"}}}}"#;
        let parse = || serde_json::from_str::<File<'_>>(text).unwrap();
        assert_ne!(parse().server, ServerSettings::default());
        let refused = parse().refuse_widening(Path::new("settings.json"));
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("server cannot be set by a project"),
            "{refused}"
        );
        assert_eq!(parse().without_grants().server, ServerSettings::default());
    }

    #[test]
    fn a_client_secret_is_in_no_settings_file() {
        let text = r#"{"server": {"signIn": {"x": {"clientId": "x", "clientSecret": "y"}}}}"#;
        let refused = serde_json::from_str::<File<'_>>(text)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("unknown field `clientSecret`"),
            "{refused}"
        );
    }

    #[test]
    fn variables_that_load_code_are_known_in_every_spelling() {
        for name in [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "LD_DEBUG_OUTPUT",
            "ld_audit",
            "GLIBC_TUNABLES",
            "GCONV_PATH",
            "BASH_ENV",
            "PYTHONSTARTUP",
        ] {
            assert!(is_loader(name), "{name}");
        }
        for name in ["RUST_LOG", "PATH", "PYTHONPATH", "NODE_ENV", "OLD_ENV"] {
            assert!(!is_loader(name), "{name}");
        }
    }
}
