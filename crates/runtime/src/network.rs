//! Which hosts commands may reach, from the settings and the package managers' configuration.
//!
//! Without either setting commands have no network at all. With one, they reach the named hosts
//! through a proxy of this process, provided that the sandbox has a network namespace; otherwise
//! they still reach nothing, which `report` says.

use std::path::Path;

use codespar_tools::{
    egress::{AllowedDomains, Egress, packages::PackageConfig},
    sandbox::Sandbox,
};

use crate::{error::RuntimeError, project_dir::ProjectDir, settings::Settings};

/// The hosts that commands may reach, if there are any.
///
/// `None` if no host is named. An open network together with a list is refused: one of the two is a
/// mistake.
pub(crate) fn egress(
    project_dir: &ProjectDir,
    settings: &Settings,
) -> Result<Option<Egress>, RuntimeError> {
    let named = &settings.sandbox.allowed_domains;
    let with_packages = settings.sandbox.allow_package_hosts == Some(true);
    if named.is_empty() && !with_packages {
        return Ok(None);
    }
    if settings.sandbox.network == Some(true) {
        return Err(RuntimeError::Usage(
            "sandbox.network = true opens every host to commands; leave it out, or leave out \
             sandbox.allowedDomains and sandbox.allowPackageHosts"
                .to_owned(),
        ));
    }
    Ok(Some(if with_packages {
        installer_egress(project_dir, settings)
    } else {
        named_only(project_dir, settings)
    }))
}

fn named_only(project_dir: &ProjectDir, settings: &Settings) -> Egress {
    let named = AllowedDomains::new(settings.sandbox.allowed_domains.clone());
    Egress::new(named, project_dir.state().join("egress"))
}

/// The hosts that are named, and those that package managers are configured to use.
pub(crate) fn installer_egress(project_dir: &ProjectDir, settings: &Settings) -> Egress {
    named_only(project_dir, settings).with_packages(PackageConfig {
        home: project_dir.home().map(Path::to_path_buf),
        vars: project_dir.environment.vars.clone(),
        project: project_dir.root.clone(),
    })
}

/// What `codespar doctor` says.
pub struct NetworkReport {
    /// Which hosts commands reach, in words.
    pub says: String,
    /// What keeps a setting from having its effect.
    pub problems: Vec<String>,
}

/// Says which hosts commands reach. `None` where nothing but the sandbox decides.
pub async fn report(settings: &Settings, sandbox: &Sandbox) -> Option<NetworkReport> {
    let is_asked_for = !settings.sandbox.allowed_domains.is_empty()
        || settings.sandbox.allow_package_hosts == Some(true);
    if !is_asked_for {
        return None;
    }
    let Some(egress) = sandbox.egress() else {
        return Some(NetworkReport {
            says: "commands reach no host".to_owned(),
            problems: vec![
                "sandbox.allowedDomains needs a sandbox with a network namespace; install the \
                 package `bubblewrap`"
                    .to_owned(),
            ],
        });
    };
    Some(NetworkReport {
        says: format!("commands reach {}", egress.allowed().await),
        problems: egress.notes().await.to_vec(),
    })
}
