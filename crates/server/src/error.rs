//! The one shape of errors, and which status an error of the layers below has.
//!
//! Clients decide by the status and the `code`, which never change for a case; the message is for
//! people and may. A layer below has its own errors, and the conversions here are the only place
//! that says what they mean over HTTP. Whatever could tell of the server itself (a path, an address
//! of a database) becomes `internal`, with its reason in the log.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use codespar_pulls::{ForgeError, MergeRefusal, ReviewError};
use codespar_runtime::RuntimeError;
use codespar_store::StoreError;
use codespar_tasks::HubError;
use serde::Serialize;
use utoipa::ToSchema;

/// What every error looks like.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
}

/// The content of every error, whatever the route.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ErrorDetail {
    /// For programs; stable.
    code: String,
    /// For people.
    message: String,
    /// Each thing that speaks against it, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
}

/// Why a request was not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    reasons: Vec<String>,
}

impl ApiError {
    /// Only through one of the constructors below, so that a status always has the same code.
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            reasons: Vec::new(),
        }
    }

    /// The request could not be read: a client that repeats it gets the same answer.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    /// The same for a missing and a wrong token: nobody learns which tokens there are.
    pub(crate) fn unauthorized() -> Self {
        let message =
            "send a token as `Authorization: Bearer cspr_…`; `codespar token create` makes one";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// The client is known and may not. The code says what is missing, such as a role or a page of
    /// this server.
    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// What another project has does not exist here.
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "this path does not take that method";
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            message,
        )
    }

    /// Well formed, but not as things stand: a task that is over, a question that is answered.
    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    pub(crate) fn unsupported_media_type() -> Self {
        let message = "send the body as JSON, with `Content-Type: application/json`";
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            message,
        )
    }

    pub(crate) fn timeout() -> Self {
        let message = "the body of the request did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
    }

    /// It can be read and makes no sense: an unknown branch, an amount below zero.
    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unprocessable", message)
    }

    /// With `Retry-After`, which clients obey without knowing our limits.
    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message)
    }

    /// What this server needs does not answer at the moment. The same request may succeed later.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
    }

    /// The log has the reason; the client does not: it may name files of the server.
    pub(crate) fn internal(reason: impl std::fmt::Display) -> Self {
        tracing::error!("a request failed: {reason}");
        let message = "the request failed; the server's log has the reason";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let error = ErrorDetail {
            code: self.code.to_owned(),
            message: self.message.clone(),
            reasons: self.reasons.clone(),
        };
        let mut response = (self.status, Json(ErrorBody { error })).into_response();
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            _ => {}
        }
        // Pages show it in their own way.
        response.extensions_mut().insert(self);
        response
    }
}

/// What does not exist and what belongs to another project have become the same before they get
/// here.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::NoSuchSession(_)
            | StoreError::NoSuchTask(_)
            | StoreError::NoSuchQuestion(_)
            | StoreError::NoSuchToken(_)
            | StoreError::NoSuchMessage(_)
            | StoreError::NoSuchPull { .. } => Self::not_found(message),
            StoreError::QuestionNotOpen { .. } => Self::conflict("question_not_open", message),
            StoreError::WrongAnswer { .. } => Self::unprocessable(message),
            StoreError::NoSuchStep { .. }
            | StoreError::WrongState { .. }
            | StoreError::HeldByRunner(_)
            | StoreError::StillWaiting { .. }
            | StoreError::PullMerged { .. } => Self::conflict("wrong_state", message),
            StoreError::Busy { .. } => Self::unavailable("the database is busy; try again"),
            StoreError::Unreachable { .. } => {
                Self::unavailable("the database cannot be reached; try again")
            }
            StoreError::Objects { .. } => {
                Self::unavailable("the object store cannot be reached; try again")
            }
            other => Self::internal(other),
        }
    }
}

impl From<RuntimeError> for ApiError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Usage(message) => Self::unprocessable(message),
            RuntimeError::Failed(message) => Self::conflict("failed", message),
            RuntimeError::Store(error) => error.into(),
            RuntimeError::Io(error) => Self::internal(error),
        }
    }
}

impl From<HubError> for ApiError {
    fn from(error: HubError) -> Self {
        match error {
            HubError::Store(error) => error.into(),
            HubError::Refused(message) => Self::conflict("refused", message),
        }
    }
}

/// A forge that is down must not look like a mistake of the client, nor like one of this server.
impl From<ForgeError> for ApiError {
    fn from(error: ForgeError) -> Self {
        let message = error.to_string();
        match error {
            ForgeError::NotFound(_) => Self::not_found(message),
            ForgeError::Forbidden { .. } => Self::forbidden("forge_forbids", message),
            ForgeError::Moved { .. } | ForgeError::Conflict(_) | ForgeError::Refused(_) => {
                Self::conflict("forge_refused", message)
            }
            ForgeError::Unavailable { .. } | ForgeError::RateLimited(_) => {
                Self::unavailable(message)
            }
        }
    }
}

impl From<MergeRefusal> for ApiError {
    fn from(error: MergeRefusal) -> Self {
        match error {
            MergeRefusal::Checks { number, reasons } => Self {
                reasons,
                ..Self::conflict("merge_refused", format!("#{number} was not merged"))
            },
            MergeRefusal::Forge { error, .. } => error.into(),
        }
    }
}

impl From<ReviewError> for ApiError {
    fn from(error: ReviewError) -> Self {
        match error {
            ReviewError::Forge(error) => error.into(),
            other => Self::conflict("review_failed", other.to_string()),
        }
    }
}
