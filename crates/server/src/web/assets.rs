//! The files that pages load: style, scripts, icon. They are part of the binary.

use axum::{
    extract::Path,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use std::sync::LazyLock;

use ring::digest::{SHA256, digest};

use crate::error::ApiError;

const FILES: [(&str, &str, &str); 4] = [
    (
        "style.css",
        "text/css; charset=utf-8",
        include_str!("assets/style.css"),
    ),
    (
        "app.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/app.js"),
    ),
    (
        "theme.js",
        "text/javascript; charset=utf-8",
        include_str!("assets/theme.js"),
    ),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// Differs for every other content of any file, so that a new version is loaded at once.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: String = FILES.iter().map(|(_, _, content)| *content).collect();
    let hash = digest(&SHA256, all.as_bytes());
    let digits = hash.as_ref().iter().take(6);
    digits.map(|byte| format!("{byte:02x}")).collect()
});

/// The address of a file.
pub(super) fn address(name: &str) -> String {
    format!("/assets/{name}?v={}", *VERSION)
}

pub(crate) async fn show(
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let file = FILES.iter().find(|(known, _, _)| *known == name);
    let Some((_, kind, content)) = file else {
        return Err(ApiError::not_found("there is nothing at this path"));
    };
    let tag = format!("\"{}\"", *VERSION);
    let answer_headers = [
        (header::CONTENT_TYPE, (*kind).to_owned()),
        (header::CACHE_CONTROL, "max-age=3600".to_owned()),
        (header::ETAG, tag.clone()),
    ];
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == tag.as_bytes());
    match is_known {
        true => Ok((StatusCode::NOT_MODIFIED, answer_headers).into_response()),
        false => Ok((answer_headers, *content).into_response()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_small_and_ask_for_nothing_from_elsewhere() {
        let total: usize = FILES.iter().map(|(_, _, content)| content.len()).sum();
        assert!(total < 80_000, "{total} bytes");
        for (name, _, content) in FILES {
            let content = content.replace("http://www.w3.org/2000/svg", "");
            assert!(!content.contains("http:"), "{name}");
            assert!(!content.contains("https:"), "{name}");
            assert!(!content.contains("eval("), "{name}");
            assert!(!content.contains("innerHTML"), "{name}");
        }
    }
}
