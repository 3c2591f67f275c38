//! Reading requests, with errors of our own shape.
//!
//! The extractors of the framework refuse in words of their own. These refuse with an `ApiError`,
//! so a client needs to understand one shape of errors whatever is wrong with its request, and a
//! message says which field it was.

use axum::{
    Json,
    extract::{
        FromRequest, FromRequestParts, Path, Query, Request,
        rejection::{BytesRejection, FailedToBufferBody, JsonRejection},
    },
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use crate::{access::Client, error::ApiError, shield::body_limit, state::Shared};

/// A body with pictures may take so many times as long.
const LARGE_BODY_TIMES: u32 = 6;

/// A body as JSON.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequest<Shared> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Shared) -> Result<Self, ApiError> {
        let limits = &state.limits;
        let most = body_limit(request.uri().path(), limits);
        let time = match most > limits.body_bytes {
            true => limits.body_time * LARGE_BODY_TIMES,
            false => limits.body_time,
        };
        let read = Json::<T>::from_request(request, state);
        match tokio::time::timeout(time, read).await {
            Err(_) => Err(ApiError::timeout()),
            Ok(Ok(Json(value))) => Ok(Self(value)),
            Ok(Err(rejection)) => Err(refusal(&rejection, most)),
        }
    }
}

fn refusal(rejection: &JsonRejection, limit: usize) -> ApiError {
    match rejection {
        JsonRejection::MissingJsonContentType(_) => ApiError::unsupported_media_type(),
        JsonRejection::JsonDataError(error) => ApiError::unprocessable(error.body_text()),
        JsonRejection::BytesRejection(BytesRejection::FailedToBufferBody(
            FailedToBufferBody::LengthLimitError(_),
        )) => ApiError::too_large(limit),
        other => ApiError::bad_request(other.body_text()),
    }
}

/// The part of an address after `?`.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, ApiError> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        let Query(value) = read.map_err(|error| ApiError::bad_request(error.body_text()))?;
        Ok(Self(value))
    }
}

/// The variable parts of a path. One that cannot be read names nothing.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Named<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, ApiError> {
        let read = Path::<T>::from_request_parts(parts, state).await;
        let Path(value) = read.map_err(|error| ApiError::not_found(error.body_text()))?;
        Ok(Self(value))
    }
}

impl FromRequestParts<Shared> for Client {
    type Rejection = ApiError;

    /// Whoever is let through is known; a route without that check serves nobody.
    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, ApiError> {
        let client = parts.extensions.get::<Self>().cloned();
        client.ok_or_else(ApiError::unauthorized)
    }
}

/// How many of a list, within bounds.
pub(super) fn page_size(asked: Option<u32>, usual: u32, most: u32) -> Result<u32, ApiError> {
    match asked {
        None => Ok(usual),
        Some(size) if (1..=most).contains(&size) => Ok(size),
        Some(_) => Err(ApiError::bad_request(format!("`limit` is 1 to {most}"))),
    }
}

/// A text of a request that must say something and not too much.
pub(super) fn checked_text(name: &str, text: &str, most: usize) -> Result<(), ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::unprocessable(format!("`{name}` is empty")));
    }
    if text.len() > most {
        return Err(ApiError::unprocessable(format!(
            "`{name}` is longer than {most} bytes"
        )));
    }
    match text.contains('\0') {
        true => Err(ApiError::unprocessable(format!(
            "`{name}` has a zero byte in it"
        ))),
        false => Ok(()),
    }
}
