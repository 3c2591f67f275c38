//! How types of other crates look in the description of the API.
//!
//! The enums here are never made: a field has the protocol's own type and names one of these as its
//! schema. A test compares them with the words that the protocol writes.

#![allow(dead_code, reason = "only their schemas are used")]

use codespar_protocol::Usage;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(ToSchema)]
#[schema(as = TaskStatus, rename_all = "snake_case")]
pub(super) enum StatusSchema {
    Pending,
    Running,
    Completed,
    Failed,
    Killed,
}

#[derive(ToSchema)]
#[schema(as = TaskType, rename_all = "snake_case")]
pub(super) enum TypeSchema {
    LocalBash,
    LocalAgent,
    RemoteAgent,
    InProcessTeammate,
    LocalWorkflow,
    MonitorMcp,
    Dream,
}

#[derive(ToSchema)]
#[schema(as = AccessRole, rename_all = "snake_case")]
pub(super) enum RoleSchema {
    Read,
    Write,
    Merge,
    Admin,
}

#[derive(ToSchema)]
#[schema(as = MergeStrategy, rename_all = "snake_case")]
pub(super) enum StrategySchema {
    Merge,
    Squash,
    Rebase,
}

#[derive(ToSchema)]
#[schema(as = RunnerState, rename_all = "snake_case")]
pub(super) enum RunnerStateSchema {
    Alive,
    Silent,
    Gone,
}

#[derive(ToSchema)]
#[schema(as = LimitScope, rename_all = "snake_case")]
pub(super) enum LimitScopeSchema {
    All,
    Repository,
    User,
    Labels,
}

/// Tokens, as providers count them.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct ApiUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
}

impl From<Usage> for ApiUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "this is a test")]

    use codespar_protocol::{AccessRole, MergeStrategy, TaskStatus, TaskType};
    use codespar_store::{LimitScope, RunnerState};
    use serde_json::json;
    use utoipa::PartialSchema;

    use super::*;

    fn words<T: PartialSchema>() -> serde_json::Value {
        serde_json::to_value(T::schema()).unwrap()["enum"].clone()
    }

    #[test]
    fn the_schemas_have_the_words_of_the_protocol() {
        assert_eq!(words::<StatusSchema>(), json!(TaskStatus::ALL));
        assert_eq!(words::<TypeSchema>(), json!(TaskType::ALL));
        assert_eq!(words::<RoleSchema>(), json!(AccessRole::ALL));
        assert_eq!(words::<RunnerStateSchema>(), json!(RunnerState::ALL));
        assert_eq!(words::<LimitScopeSchema>(), json!(LimitScope::ALL));
        let strategies = [
            MergeStrategy::Merge,
            MergeStrategy::Squash,
            MergeStrategy::Rebase,
        ];
        assert_eq!(words::<StrategySchema>(), json!(strategies));
    }
}
