//! Which hosts commands may reach, from the settings and the package managers' configuration.

use codespar_tools::{
    egress::{AllowedDomains, Egress, packages::PackageConfig},
    sandbox::Sandbox,
};

use crate::{error::CommandError, place::Place, settings::Settings};

/// The hosts that commands may reach, if there are any.
pub(crate) fn egress(place: &Place, settings: &Settings) -> Result<Option<Egress>, CommandError> {
    let named = &settings.sandbox.allowed_domains;
    let with_packages = settings.sandbox.allow_package_hosts == Some(true);
    if named.is_empty() && !with_packages {
        return Ok(None);
    }
    if settings.sandbox.network == Some(true) {
        return Err(CommandError::Usage(
            "sandbox.network = true opens every host to commands; leave it out, or leave out \
             sandbox.allowedDomains and sandbox.allowPackageHosts"
                .to_owned(),
        ));
    }
    let named = AllowedDomains::new(named.clone());
    let egress = Egress::new(named, place.state.join("egress"));
    Ok(Some(if with_packages {
        egress.with_packages(PackageConfig {
            home: place.home.clone(),
            vars: place.vars.clone(),
            project: place.root.clone(),
        })
    } else {
        egress
    }))
}

/// What `codespar doctor` says.
pub(crate) struct NetworkReport {
    pub(crate) says: String,
    /// What keeps a setting from having its effect.
    pub(crate) problems: Vec<String>,
}

/// Says which hosts commands reach. `None` where nothing but the sandbox decides.
pub(crate) async fn report(settings: &Settings, sandbox: &Sandbox) -> Option<NetworkReport> {
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
