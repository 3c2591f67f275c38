//! Which page a request comes from, and by which name the server was asked for.

use axum::http::{HeaderMap, header};
use url::Url;

use crate::error::ApiError;

/// Refuses a change with a cookie that does not come from a page of this server. Browsers say where
/// a change comes from; a client that says nothing is no browser, and has no business with a cookie.
pub(crate) fn refuse_foreign_page(headers: &HeaderMap) -> Result<(), ApiError> {
    match is_own_page(headers) {
        Some(true) => Ok(()),
        Some(false) | None => Err(ApiError::forbidden(
            "foreign_page",
            "a change with a cookie must come from a page of this server",
        )),
    }
}

/// Whether the page that sends the request is of this server; unknown where the headers do not say.
/// `none` of `Sec-Fetch-Site` is a person at the address bar, who makes no changes.
pub(crate) fn is_own_page(headers: &HeaderMap) -> Option<bool> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let by_site = text("sec-fetch-site").map(|site| site == "same-origin");
    let by_origin = text(header::ORIGIN.as_str()).map(|origin| {
        let host = text(header::HOST.as_str());
        host.is_some_and(|host| is_origin_of(origin, host))
    });
    match (by_site, by_origin) {
        (None, None) => None,
        (site, origin) => Some(site != Some(false) && origin != Some(false)),
    }
}

/// The scheme is not compared: behind a proxy the server does not know its own.
fn is_origin_of(origin: &str, host: &str) -> bool {
    let Ok(url) = Url::parse(origin) else {
        return false;
    };
    let is_web = matches!(url.scheme(), "http" | "https");
    let named = url.host_str().map(|name| match url.port() {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    });
    let usual = match url.scheme() {
        "https" => ":443",
        _ => ":80",
    };
    let host = host.to_lowercase();
    let host = host.strip_suffix(usual).unwrap_or(&host);
    is_web && named.is_some_and(|named| named == host)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "this is a test")]

    use super::*;

    fn own(pairs: &[(&'static str, &'static str)]) -> Option<bool> {
        let mut headers = HeaderMap::new();
        headers.insert("host", "127.0.0.1:4180".parse().unwrap());
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        is_own_page(&headers)
    }

    #[test]
    fn a_page_is_known_by_what_the_browser_says_of_it() {
        let site = "sec-fetch-site";
        assert_eq!(own(&[]), None);
        assert_eq!(own(&[(site, "same-origin")]), Some(true));
        assert_eq!(own(&[("origin", "http://127.0.0.1:4180")]), Some(true));
        for other in ["cross-site", "same-site", "none", ""] {
            assert_eq!(own(&[(site, other)]), Some(false), "{other}");
        }
        let others = [
            "null",
            "http://127.0.0.1:4181",
            "http://127.0.0.1",
            "http://evil.example",
            "http://127.0.0.1:4180.evil.example",
            "file://127.0.0.1:4180",
        ];
        for other in others {
            assert_eq!(own(&[("origin", other)]), Some(false), "{other}");
        }
        // Both must agree.
        let origin = ("origin", "http://evil.example");
        assert_eq!(own(&[(site, "same-origin"), origin]), Some(false));
    }
}
