//! The projects of this server.
//!
//! A project is named by its key, which is made from its directory. Requests have no other way to
//! name one, so none can reach a directory that the server was not started for.

use axum::{Json, extract::State};
use codespar_protocol::RepositoryRef;
use codespar_runtime::which;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{error::ApiError, scope::ProjectKey, state::Shared};

#[derive(Serialize, ToSchema)]
pub(super) struct ApiProject {
    key: String,
    /// The name of its directory.
    name: String,
    /// `owner/name` where pull requests are on GitHub; absent where they are records of this server.
    repository: Option<String>,
    /// The model of its agents.
    model: String,
    /// No model can be called: runs are simulated.
    simulated: bool,
    /// Why the project cannot be opened, if so.
    error: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Projects {
    projects: Vec<ApiProject>,
}

/// List the projects of this server.
#[utoipa::path(
    get, path = "/api/v1/projects", tag = "projects",
    responses((status = 200, body = Projects))
)]
pub(super) async fn list(State(state): State<Shared>) -> Result<Json<Projects>, ApiError> {
    let projects = state.scope.roots().iter().map(|root| {
        let name = root.file_name().unwrap_or(root.as_os_str());
        let mut shown = ApiProject {
            key: ProjectKey::of(root).as_str().to_owned(),
            name: name.to_string_lossy().into_owned(),
            repository: None,
            model: String::new(),
            simulated: false,
            error: None,
        };
        match state.runtime.project_at(root) {
            Ok(project) => {
                shown.model = project.provider.choice.id.clone();
                shown.simulated = project.provider.is_simulated();
                if let Ok(RepositoryRef::GitHub { owner, name }) =
                    which(&project.dir, &project.settings, None)
                {
                    shown.repository = Some(format!("{owner}/{name}"));
                }
            }
            Err(error) => shown.error = Some(error.to_string()),
        }
        shown
    });
    Ok(Json(Projects {
        projects: projects.collect(),
    }))
}
