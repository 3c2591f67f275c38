//! What commands can read: the system and the workspace, and of the home directory only what
//! compilers and package managers keep there.
//!
//! The home directory is hidden as a whole and single entries are shown again, since nobody can
//! list all that is private in it. Within what is shown, credentials are hidden once more. The
//! lists are names below a home; which of them exist is looked up for each command, as tools may
//! have been installed meanwhile.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::{SandboxPolicy, listing::Listings};

/// Directories of the system that hold homes.
const HOMES: [&str; 2] = ["/home", "/root"];

/// What tools keep in the home directory and need to work. Shown read-only: a build that has to
/// write to a cache needs `sandbox.allowWrite`.
const TOOLS: &[&str] = &[
    ".asdf",
    ".bun",
    ".cabal",
    ".cache",
    ".cargo",
    ".conda",
    ".config/git",
    ".config/nix",
    ".config/pip",
    ".deno",
    ".dotnet",
    ".elan",
    ".fnm",
    ".gem",
    ".ghcup",
    ".gitconfig",
    ".gitignore",
    ".go",
    ".gradle",
    ".hex",
    ".ivy2",
    ".jdks",
    ".julia",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/share/virtualenvs",
    ".m2",
    ".mix",
    ".nix-profile",
    ".npm",
    ".nuget",
    ".nvm",
    ".opam",
    ".pnpm-store",
    ".poetry",
    ".pub-cache",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sbt",
    ".sdkman",
    ".stack",
    ".swiftly",
    ".volta",
    ".yarn",
    ".zig",
    "anaconda3",
    "go",
    "miniconda3",
    "miniforge3",
];

/// Variables that name a directory of a tool. Only those that point into a hidden directory matter;
/// one that names a hidden directory itself, or one around it, is ignored.
const TOOL_VARIABLES: &[&str] = &[
    "CARGO_HOME",
    "CONDA_PREFIX",
    "GOPATH",
    "GOROOT",
    "GRADLE_USER_HOME",
    "JAVA_HOME",
    "NVM_DIR",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
];

/// Keys, tokens, mail and what browsers know. Hidden also where something around it is shown, be it
/// by [`TOOLS`] or by a setting.
const SECRETS: &[&str] = &[
    ".aws",
    ".azure",
    ".bash_history",
    ".bundle/config",
    ".cache/BraveSoftware",
    ".cache/chromium",
    ".cache/google-chrome",
    ".cache/keyring",
    ".cache/microsoft-edge",
    ".cache/mozilla",
    ".cache/thunderbird",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".codex",
    ".composer/auth.json",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/composer/auth.json",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/github-copilot",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/hub",
    ".config/microsoft-edge",
    ".config/op",
    ".config/opera",
    ".config/pip/pip.conf",
    ".config/rclone",
    ".config/vivaldi",
    ".docker",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".kube",
    ".local/share/keyrings",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".mozilla",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".nuget/NuGet/NuGet.Config",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".sbt/.credentials",
    ".ssh",
    ".terraform.d",
    ".thunderbird",
    ".var/app",
    ".vault-token",
    ".yarnrc.yml",
    "Library/Keychains",
    "_netrc",
    "snap/chromium",
    "snap/firefox",
];

/// What the system keeps for root alone; commands that root starts do not see it either.
const SYSTEM_SECRETS: &[&str] = &[
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
];

/// Where things are that decide about reading. Made when the sandbox is configured;
/// [`Reads::apply`] is called for each command.
#[derive(Debug, Default)]
pub(super) struct Reads {
    pub(super) home: Option<PathBuf>,
    /// Our own directory: transcripts, settings, the database.
    pub(super) state: Option<PathBuf>,
    /// What settings add.
    pub(super) allowed: Vec<PathBuf>,
    /// What is in the homes.
    pub(super) listings: Listings,
}

impl Reads {
    /// Adds to a policy what its command can see and what not. Every path is resolved first, so a
    /// symlink in the home is shown or hidden at the place it leads to; what does not exist is left
    /// out.
    ///
    /// `env` is the command's environment, from which only `PATH` and [`TOOL_VARIABLES`] are used.
    /// The state directory is always secret. Commands of root get the system's password files
    /// hidden, which ordinary users cannot read anyway.
    pub(super) fn apply(&self, policy: &mut SandboxPolicy, env: &[(OsString, OsString)]) {
        let home = self.home.as_deref().and_then(real);
        policy.hidden = HOMES
            .iter()
            .map(Path::new)
            .chain(home.as_deref())
            .filter_map(real)
            .filter(|path| path.parent().is_some())
            .collect();
        policy.secret.extend(self.state.as_deref().and_then(real));
        if rustix::process::geteuid().is_root() {
            let kept = SYSTEM_SECRETS.iter().map(Path::new);
            policy.secret.extend(kept.filter_map(real));
        }
        let others = other_homes(env, &policy.hidden);
        for home in home.iter().chain(&others) {
            let shown = self.listings.likely(home, TOOLS);
            policy.visible.extend(shown.filter_map(|path| real(&path)));
            let secrets = self.listings.likely(home, SECRETS);
            policy.secret.extend(secrets.filter_map(|path| real(&path)));
        }
        let allowed = self.allowed.iter().filter_map(|path| real(path));
        policy.visible.extend(allowed);
        let (hidden, mut visible) = (policy.hidden.clone(), Vec::new());
        visible.extend(named_tools(env).filter(|path| is_below(path, &hidden)));
        visible.retain(|path| hidden.iter().all(|hidden| !hidden.starts_with(path)));
        policy.visible.append(&mut visible);
    }
}

/// Homes besides the user's from which programs are run: a tool on the search path needs what it
/// keeps beside it. As on a machine where root runs what another user has installed. Each is
/// treated like the user's own: its tools are shown, its secrets stay hidden.
fn other_homes(env: &[(OsString, OsString)], hidden: &[PathBuf]) -> Vec<PathBuf> {
    let path = env.iter().find(|(name, _)| name == "PATH");
    let on_path = path
        .into_iter()
        .flat_map(|(_, path)| std::env::split_paths(path));
    let mut homes: Vec<PathBuf> = on_path
        .filter_map(|dir| real(&dir))
        .filter_map(|dir| {
            let root = hidden.iter().find(|root| dir.starts_with(root))?;
            if root.as_path() == Path::new("/home") {
                let name = dir.strip_prefix(root).ok()?.iter().next()?;
                Some(root.join(name))
            } else {
                Some(root.clone())
            }
        })
        .collect();
    homes.sort();
    homes.dedup();
    homes
}

/// Directories of programs on the search path and those that variables name.
fn named_tools(env: &[(OsString, OsString)]) -> impl Iterator<Item = PathBuf> {
    let value = |wanted: &str| -> Option<&OsStr> {
        let found = env.iter().find(|(name, _)| name == wanted)?;
        Some(found.1.as_os_str())
    };
    let on_path = value("PATH").into_iter().flat_map(std::env::split_paths);
    let programs = on_path.filter_map(|dir| real(&dir)).map(installation);
    let named = TOOL_VARIABLES
        .iter()
        .filter_map(|name| real(Path::new(value(name)?)));
    programs.chain(named).collect::<Vec<_>>().into_iter()
}

/// A program in `…/tool/bin` needs what is beside that directory. That must lie two levels below a
/// home such as `/home/ann` at least, or the directory is shown alone.
fn installation(dir: PathBuf) -> PathBuf {
    let is_bin = dir.file_name().is_some_and(|name| name == "bin");
    let around = dir.parent().filter(|around| {
        // `~/.local/bin` and `~/bin` stand beside things that are not theirs.
        let is_local = around.file_name().is_some_and(|name| name == ".local");
        !is_local && around.components().count() > 4
    });
    match around {
        Some(around) if is_bin => around.to_path_buf(),
        _ => dir,
    }
}

fn is_below(path: &Path, trees: &[PathBuf]) -> bool {
    trees.iter().any(|tree| path.starts_with(tree))
}

/// The path without links, if it is there. Most of what is asked for is not, and looking is much
/// cheaper than resolving: this runs before every command.
fn real(path: &Path) -> Option<PathBuf> {
    let is_there = path.is_absolute() && path.symlink_metadata().is_ok();
    is_there.then(|| path.canonicalize().ok()).flatten()
}
