//! Who is signed in, and errors as pages: a browser is sent to the sign-in page, not given JSON.

use axum::{
    extract::Request,
    http::{StatusCode, Uri},
    middleware::Next,
    response::{Html, IntoResponse, Redirect, Response},
};
use maud::html;

use super::layout;
use crate::error::ApiError;

/// Shows errors of the layers inside as pages.
pub(crate) async fn as_page(request: Request, next: Next) -> Response {
    let asked = request.uri().clone();
    let response = next.run(request).await;
    let Some(error) = response.extensions().get::<ApiError>() else {
        return response;
    };
    match error.status() {
        StatusCode::UNAUTHORIZED => Redirect::to(&sign_in_address(&asked)).into_response(),
        status => (status, Html(page(error).into_string())).into_response(),
    }
}

/// Leads back to the page that was asked for.
fn sign_in_address(asked: &Uri) -> String {
    let wanted = asked.path_and_query().map_or("/", |wanted| wanted.as_str());
    match wanted {
        "/" => "/login".to_owned(),
        wanted => {
            let next: String = url::form_urlencoded::byte_serialize(wanted.as_bytes()).collect();
            format!("/login?next={next}")
        }
    }
}

/// A path of this server to go to after signing in; anything else leads to the first page. It is also
/// resolved as a browser does it: whatever it is made of, the host must stay.
pub(super) fn own_path(next: Option<&str>) -> &str {
    let stays = |path: &str| {
        let here = url::Url::parse("http://here.invalid/").ok();
        let there = here.as_ref().and_then(|here| here.join(path).ok());
        there.is_some_and(|there| Some(there.origin()) == here.map(|here| here.origin()))
    };
    let is_own = |path: &&str| {
        path.starts_with('/')
            && !path.starts_with("//")
            && !path.contains(|c: char| c == '\\' || c.is_control())
            && stays(path)
    };
    next.filter(is_own).unwrap_or("/")
}

fn page(error: &ApiError) -> maud::Markup {
    let title = match error.status() {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        StatusCode::SERVICE_UNAVAILABLE => "Not available",
        _ => "This did not work",
    };
    layout::bare(
        title,
        &html! {
            h1 { (title) }
            p { (codespar_runtime::printable(error.message())) }
            p { a href="/" { "Inbox" } " · " a href="/board" { "Board" } }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_no_other_site() {
        for path in [
            "/",
            "/board?project=a",
            "/tasks/w-1",
            "/%2f%2fevil.example",
            "/%5cevil",
        ] {
            assert_eq!(own_path(Some(path)), path);
        }
        let foreign = [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "javascript:alert(1)",
            "/a\nb",
            "/\t/evil.example",
            "\\\\evil.example",
            "\\/evil.example",
            "http:evil.example",
            "evil.example",
            "@evil.example",
            " //evil.example",
            "%2f%2fevil.example",
            "",
        ];
        for path in foreign {
            assert_eq!(own_path(Some(path)), "/", "{path}");
        }
    }
}
