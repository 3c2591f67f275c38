//! The providers at which people sign in, from the settings of the user.
//!
//! Secrets of providers are named by the settings and read from the environment or a file, so that
//! a settings file can be shared and backed up without them.

use codespar_runtime::{
    ProjectDir, ServerSettings, SignInKind, SignInSettings, github_api, github_proxy, github_server,
};
use codespar_server::{ListenPlan, ProviderAddress, ProviderSetup, SignInSetup};
use secrecy::SecretString;
use url::Url;

use crate::error::CommandError;

/// Half a setup is a mistake, and not a provider that is silently missing. The public name of the
/// server is one that it answers to.
pub(super) fn find(
    settings: &ServerSettings,
    project_dir: &ProjectDir,
    plan: &mut ListenPlan,
) -> Result<SignInSetup, CommandError> {
    let usage = |error: &dyn std::fmt::Display| CommandError::Usage(error.to_string());
    let public_url = settings.public_url.as_deref().map(Url::parse).transpose();
    let public_url =
        public_url.map_err(|error| CommandError::Usage(format!("server.publicUrl: {error}")))?;
    if let Some(host) = public_url.as_ref().and_then(|url| url.host_str()) {
        let host = host.to_lowercase();
        if !plan.hosts.contains(&host) {
            plan.hosts.push(host);
        }
    }
    let mut providers = Vec::new();
    for (name, provider) in &settings.sign_in {
        let address = address(name, provider, project_dir)?;
        let secret = secret(name, provider, project_dir)?;
        let proxy = match &address {
            ProviderAddress::GitHub { api, .. } => github_proxy(project_dir, api)?,
            ProviderAddress::Oidc(issuer) => match Url::parse(issuer) {
                Ok(url) => github_proxy(project_dir, &url)?,
                Err(_) => None,
            },
        };
        let made = ProviderSetup::new(name, provider, address, secret, proxy);
        providers.push(made.map_err(|error| usage(&error))?);
    }
    Ok(SignInSetup {
        public_url,
        providers,
    })
}

fn address(
    name: &str,
    provider: &SignInSettings,
    project_dir: &ProjectDir,
) -> Result<ProviderAddress, CommandError> {
    match (provider.kind, &provider.issuer) {
        (SignInKind::Oidc, Some(issuer)) => Ok(ProviderAddress::Oidc(issuer.clone())),
        (SignInKind::Oidc, None) => Err(CommandError::Usage(format!(
            "server.signIn.{name}.issuer is missing"
        ))),
        (SignInKind::Github, None) => Ok(ProviderAddress::GitHub {
            server: github_server(project_dir)
                .parse()
                .map_err(|error| CommandError::Usage(format!("GITHUB_SERVER_URL: {error}")))?,
            api: github_api(project_dir)?,
        }),
        (SignInKind::Github, Some(_)) => Err(CommandError::Usage(format!(
            "server.signIn.{name}.issuer: GitHub has none; GITHUB_SERVER_URL names an enterprise's \
             server"
        ))),
    }
}

/// From the environment or a file; never from the settings themselves.
fn secret(
    name: &str,
    provider: &SignInSettings,
    project_dir: &ProjectDir,
) -> Result<Option<SecretString>, CommandError> {
    let text = match (&provider.client_secret_env, &provider.client_secret_file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(CommandError::Usage(format!(
                "server.signIn.{name}: give clientSecretEnv or clientSecretFile, not both"
            )));
        }
        (Some(variable), None) => {
            project_dir
                .var(variable)
                .map(str::to_owned)
                .ok_or_else(|| {
                    CommandError::Usage(format!(
                        "server.signIn.{name}.clientSecretEnv: {variable} is not set"
                    ))
                })?
        }
        (None, Some(file)) => std::fs::read_to_string(file).map_err(|error| {
            CommandError::Usage(format!(
                "server.signIn.{name}.clientSecretFile: {}: {error}",
                file.display()
            ))
        })?,
    };
    match text.trim() {
        "" => Err(CommandError::Usage(format!(
            "server.signIn.{name}: the client secret is empty"
        ))),
        text => Ok(Some(SecretString::from(text.to_owned()))),
    }
}
